use std::collections::VecDeque;
use std::future::Future;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use afflux_engine::{Nanos, Platform};
use afflux_frontend::{Output, ProtocolError, ProtocolMachine, Segment};
use bytes::{Buf, Bytes, BytesMut};
use rustix::event::epoll;
use rustix::process::Pid;

use super::*;
use afflux_linux_device::{IoChoice, LinuxPlatform, Reactors};
use afflux_scratch::TestDirectory as Scratch;

/// A call with this bit in its number of copies is never parked.
const URGENT: u32 = 1 << 31;

const CHOICES: [IoChoice; 2] = [IoChoice::Auto, IoChoice::Syscalls];

/// The test's control of its running machines.
#[derive(Default)]
struct Gate {
    /// Calls are parked.
    closed: AtomicBool,
    /// Bytes of parked calls that make a machine want no more input.
    bytes_max: usize,
    wakers: Mutex<Vec<Waker>>,
    /// Bytes of output that exist.
    output: Arc<AtomicUsize>,
    /// The messages about refused connections.
    refused: Mutex<Vec<String>>,
    /// How often machines were asked to shrink.
    shrunk: AtomicUsize,
    /// How often machines were asked to go on with calls without output.
    calls_polled: AtomicUsize,
}

impl Gate {
    fn open(&self) {
        self.closed.store(false, Ordering::SeqCst);
        self.wakers.lock().unwrap().drain(..).for_each(Waker::wake);
    }
}

/// Counts itself as long as it lives.
struct Counted(Bytes, Arc<AtomicUsize>);

impl Counted {
    fn segment(bytes: Bytes, count: &Arc<AtomicUsize>) -> Segment {
        count.fetch_add(bytes.len(), Ordering::SeqCst);
        Segment::Bytes(Bytes::from_owner(Self(bytes, Arc::clone(count))))
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.len(), Ordering::SeqCst);
    }
}

/// Records of length, copies and bytes; the answer repeats the bytes `copies` times, in small segments.
struct Echo {
    gate: Arc<Gate>,
    calls: VecDeque<(u32, Bytes)>,
    bytes: usize,
}

impl ProtocolMachine for Echo {
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        while let Some((len, copies)) = header(input) {
            if len > 4 << 20 {
                return Err(ProtocolError { reason: format!("a record of {len} bytes") });
            }
            if input.len() < 8 + len {
                break;
            }
            input.advance(8);
            self.bytes += len;
            self.calls.push_back((copies, input.split_to(len).freeze()));
        }
        Ok(())
    }

    fn needs_input(&self) -> bool {
        self.gate.bytes_max == 0 || self.bytes < self.gate.bytes_max
    }

    fn input_hint(&self, input: &BytesMut) -> usize {
        header(input).map_or(8, |(len, _)| (8 + len).saturating_sub(input.len()))
    }

    fn poll_output(&mut self, cx: &mut Context<'_>, output: &mut dyn Output) -> Poll<()> {
        if self.calls.is_empty() {
            return Poll::Pending;
        }
        self.gate.wakers.lock().unwrap().push(cx.waker().clone());
        if self.gate.closed.load(Ordering::SeqCst) && self.calls[0].0 & URGENT == 0 {
            return Poll::Pending;
        }
        let (copies, bytes) = self.calls.pop_front().unwrap();
        self.bytes -= bytes.len();
        for _ in 0..copies & !URGENT {
            output.push(Counted::segment(bytes.slice(..bytes.len() / 2), &self.gate.output));
            output.push(Counted::segment(bytes.slice(bytes.len() / 2..), &self.gate.output));
        }
        Poll::Ready(())
    }

    fn poll_calls(&mut self, _cx: &mut Context<'_>) {
        self.gate.calls_polled.fetch_add(1, Ordering::SeqCst);
    }

    fn calls_in_progress(&self) -> usize {
        self.calls.len()
    }

    fn held_bytes(&self) -> u64 {
        self.bytes as u64
    }

    fn shrink(&mut self) {
        self.gate.shrunk.fetch_add(1, Ordering::SeqCst);
    }
}

fn header(input: &BytesMut) -> Option<(usize, u32)> {
    let header = input.get(..8)?;
    let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
    Some((number(0) as usize, number(4)))
}

fn record(copies: u32, bytes: &[u8]) -> Vec<u8> {
    let mut record = (bytes.len() as u32).to_be_bytes().to_vec();
    record.extend(copies.to_be_bytes());
    record.extend(bytes);
    record
}

struct Rig {
    platform: LinuxPlatform,
    address: SocketAddr,
    /// A copy of the listening socket: once the port is closed, another socket may get it.
    listening: OwnedFd,
    handle: ServeHandle,
    gate: Arc<Gate>,
    _reactors: Reactors,
}

impl Rig {
    fn new(choice: IoChoice, gate: Gate, connections_max: usize, address: &str) -> Self {
        Self::limited(choice, gate, limits(connections_max), address)
    }

    fn limited(choice: IoChoice, gate: Gate, limits: ServeLimits, address: &str) -> Self {
        let reactors = Reactors::start(2, choice).unwrap();
        let platform = reactors.platform();
        let listener = Listener::tcp(address.parse().unwrap()).unwrap();
        let address = listener.internet_address().unwrap();
        let listening = listener.fd.try_clone().unwrap();
        let gate = Arc::new(gate);
        let handle = serve_limited(&platform, listener, limits, &gate);
        Self { platform, address, listening, handle, gate, _reactors: reactors }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    fn until(&self, condition: impl Fn(ServeCounts) -> bool) {
        while !condition(self.handle.counts()) {
            std::thread::yield_now();
        }
    }

    fn finish(&self, after_ns: u64) -> usize {
        self.platform.block_on(self.handle.finish(self.platform.now().after(after_ns)))
    }
}

/// As many connections from one address as in all, and no bound on their silence.
fn limits(connections_max: usize) -> ServeLimits {
    ServeLimits {
        connections_max,
        peer_connections_max: connections_max,
        idle_ns: 0,
        request_bytes_max: 1 << 30,
        unread_ns: 0,
    }
}

fn serve_echo(platform: &LinuxPlatform, listener: Listener, connections_max: usize, gate: &Arc<Gate>) -> ServeHandle {
    serve_limited(platform, listener, limits(connections_max), gate)
}

fn serve_limited(platform: &LinuxPlatform, listener: Listener, limits: ServeLimits, gate: &Arc<Gate>) -> ServeHandle {
    let (gate, refused) = (Arc::clone(gate), Arc::clone(gate));
    let on_refused = move |connection: &RefusedConnection| refused.refused.lock().unwrap().push(connection.to_string());
    serve(
        platform,
        vec![listener],
        move || limits,
        on_refused,
        move |_| Box::new(Echo { gate: Arc::clone(&gate), calls: VecDeque::new(), bytes: 0 }),
    )
}

fn exchange(stream: &mut (impl Read + Write), copies: u32, bytes: &[u8]) {
    stream.write_all(&record(copies, bytes)).unwrap();
    let mut answer = vec![0; bytes.len() * (copies & !URGENT) as usize];
    stream.read_exact(&mut answer).unwrap();
    assert!(answer.chunks(bytes.len().max(1)).all(|chunk| chunk == bytes));
}

fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + seed * 7 + at / 253) as u8).collect()
}

#[test]
fn many_connections_by_every_kind_of_socket() {
    for choice in CHOICES {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let rig = Rig::new(choice, Gate::default(), CONNECTIONS_MAX, address);
            let clients: Vec<_> = (0..40)
                .map(|client| {
                    let mut stream = rig.connect();
                    std::thread::spawn(move || {
                        for (round, len) in [1, 100, 8_000, 70_000, 1 << 20, 3, 0, 300_000].into_iter().enumerate() {
                            exchange(&mut stream, 1, &bytes(client + round, len));
                        }
                    })
                })
                .collect();
            clients.into_iter().for_each(|client| client.join().unwrap());
            rig.until(|counts| counts.connections == 0);
            let counts = rig.handle.counts();
            let total = 40 * (1 + 100 + 8_000 + 70_000 + (1 << 20) + 3 + 300_000);
            assert_eq!((counts.accepted, counts.bytes_out), (40, total));
            assert_eq!(counts.bytes_in, total + 40 * 8 * 8);
            assert_eq!(counts.calls_in_progress, 0);
            assert_eq!(rig.gate.output.load(Ordering::SeqCst), 0);
        }
        let (place, gate) = (Scratch::new(), Arc::new(Gate::default()));
        let path = place.path().join("control");
        let reactors = Reactors::start(1, choice).unwrap();
        let handle = serve_echo(&reactors.platform(), Listener::local(&path).unwrap(), 5, &gate);
        exchange(&mut UnixStream::connect(&path).unwrap(), 2, &bytes(1, 100_000));
        handle.stop_accepting();
        while path.exists() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn pipelined_calls_are_all_answered_in_pieces() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate::default(), 10, "127.0.0.1:0");
        let mut stream = rig.connect();
        let mut reading = stream.try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            for round in 0..2_000 {
                // Cut at odd offsets: three writes a record.
                let record = record(3, &bytes(round, round % 5_000));
                let (head, rest) = record.split_at(round % 8);
                let (middle, tail) = rest.split_at(rest.len() / 2);
                for part in [head, middle, tail] {
                    stream.write_all(part).unwrap();
                }
            }
        });
        for round in 0..2_000 {
            let expected = bytes(round, round % 5_000);
            for _ in 0..3 {
                let mut got = vec![0; expected.len()];
                reading.read_exact(&mut got).unwrap();
                assert!(got == expected, "round {round}");
            }
        }
        writer.join().unwrap();
    }
}

#[test]
fn long_answers_go_out_in_partial_sends() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate::default(), 10, "127.0.0.1:0");
        let mut stream = rig.connect();
        // 20,000 copies of 2 segments: many more than one system call takes; then fewer, larger copies.
        exchange(&mut stream, 20_000, &bytes(1, 1_001));
        exchange(&mut stream, 60, &bytes(2, 1 << 20));
        drop(stream);
        rig.until(|counts| counts.connections == 0);
        assert_eq!(rig.gate.output.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn peers_that_vanish_take_everything_with_them() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate::default(), 100, "127.0.0.1:0");
        for round in 0..20_usize {
            let mut stream = rig.connect();
            stream.write_all(&record(200, &bytes(1, 1 << 20))).unwrap();
            let mut some = vec![0; 1 + round * 100_000];
            stream.read_exact(&mut some).unwrap();
            // In the middle of a record, too.
            stream.write_all(&record(1, &bytes(1, 50_000))[..10 + round * 1_000]).unwrap();
        }
        rig.until(|counts| counts.connections == 0);
        assert_eq!(rig.gate.output.load(Ordering::SeqCst), 0, "segments are left");
        exchange(&mut rig.connect(), 1, b"still there");
    }
}

#[test]
fn half_closed_peers_get_their_answers() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate { closed: true.into(), ..Gate::default() }, 10, "127.0.0.1:0");
        let mut stream = rig.connect();
        stream.write_all(&record(5, b"last words")).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        rig.until(|counts| counts.calls_in_progress == 1);
        rig.gate.open();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"last words".repeat(5));
        rig.until(|counts| counts.connections == 0);
    }
}

#[test]
fn input_is_left_in_the_socket_while_it_is_not_wanted() {
    for choice in CHOICES {
        let bytes_max = 100_000;
        let gate = Gate { closed: true.into(), bytes_max, ..Gate::default() };
        let rig = Rig::new(choice, gate, 10, "127.0.0.1:0");
        let mut stream = rig.connect();
        let call = record(1, &bytes(3, 10_000));
        stream.set_nonblocking(true).unwrap();
        let (mut written, mut refused) = (0, 0);
        // The kernel's buffers fill in the end; then nothing moves any more. On a busy machine the reactor may take its
        // part late, and the test waits for it.
        let deadline = Instant::now() + Duration::from_secs(60);
        while refused < 1_000 || (rig.handle.counts().calls_in_progress < 9 && Instant::now() < deadline) {
            match stream.write(&call[written % call.len()..]) {
                Ok(count) => (written, refused) = (written + count, 0),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    refused += 1;
                    std::thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
        }
        let taken = rig.handle.counts().bytes_in as usize;
        assert!(taken <= bytes_max + (256 << 10), "{taken} bytes were taken of {written}");
        assert!(written < 16 << 20, "the kernel holds {written} bytes");
        assert!(rig.handle.counts().calls_in_progress >= 9);
        rig.gate.open();
        stream.set_nonblocking(false).unwrap();
        let rest = call.len() - written % call.len();
        let writer = std::thread::spawn({
            let mut stream = stream.try_clone().unwrap();
            let tail = call[call.len() - rest..].to_vec();
            move || stream.write_all(&tail).unwrap()
        });
        let calls = (written + rest) / call.len();
        let mut answer = vec![0; 10_000];
        for _ in 0..calls {
            stream.read_exact(&mut answer).unwrap();
            assert!(answer == bytes(3, 10_000));
        }
        writer.join().unwrap();
    }
}

/// Fills a connection with calls that are parked, until the server and the kernel's buffers take no more.
fn fill(rig: &Rig, stream: &mut TcpStream) {
    stream.set_nonblocking(true).unwrap();
    let call = record(1, &bytes(3, 10_000));
    let mut refused = 0;
    while refused < 1_000 && rig.handle.counts().closed_unread == 0 {
        match stream.write(&call) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => refused += 1,
            Ok(count) if count < call.len() => refused += 1,
            Ok(_) => refused = 0,
            Err(_) => return,
        }
        std::thread::yield_now();
    }
}

// rule: a connection that cannot be read for long is reset
// kept in: `product/linux-server/src/net/serve.rs`
#[test]
fn a_connection_that_is_not_read_for_too_long_is_reset() {
    for choice in CHOICES {
        let gate = Gate { closed: true.into(), bytes_max: 100_000, ..Gate::default() };
        let rig = Rig::limited(choice, gate, ServeLimits { unread_ns: 1, ..limits(10) }, "127.0.0.1:0");
        // The calls of this connection are parked, but all of its bytes were received.
        let mut parked = rig.connect();
        parked.write_all(&record(1, &bytes(1, 100_000))).unwrap();
        rig.until(|counts| counts.calls_in_progress == 1);
        let mut unread = rig.connect();
        fill(&rig, &mut unread);
        rig.until(|counts| counts.closed_unread == 1 && counts.connections == 1 && counts.calls_in_progress == 1);
        unread.set_nonblocking(false).unwrap();
        let error = unread.read(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "what it sent is not taken for received");
        rig.gate.open();
        let mut answer = vec![0; 100_000];
        parked.read_exact(&mut answer).unwrap();
        assert!(answer == bytes(1, 100_000));
    }
}

/// Users of the tests; only root can act as them.
const USERS: [u32; 3] = [4001, 4002, 4003];

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        afflux_scratch::skipped!("only root can be several users");
    }
    root
}

/// A client process of this user.
fn connect_as(user: u32, to: SocketAddr) -> TcpStream {
    connect_of(Some(user), Ipv4Addr::LOCALHOST, to)
}

fn connect_of(user: Option<u32>, source: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    std::os::unix::fs::fchown(&socket, user, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((source, 0))).unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

/// Keeps a connection at work for ever: its replies exceed the kernel's buffers, and are not read.
fn deafen(stream: &mut TcpStream) {
    stream.write_all(&record(URGENT | 200, &bytes(1, 1 << 20))).unwrap();
    stream.read_exact(&mut [0]).unwrap();
}

fn is_served(stream: &mut TcpStream) -> bool {
    stream.write_all(&record(URGENT | 1, b"served")).is_ok() && stream.read_exact(&mut [0; 6]).is_ok()
}

#[test]
fn connections_at_work_are_bounded_and_one_party_has_as_many_as_it_may() {
    for choice in CHOICES {
        let gate = Gate { closed: true.into(), ..Gate::default() };
        let limits = ServeLimits { peer_connections_max: 3, ..limits(10) };
        let rig = Rig::limited(choice, gate, limits, "127.0.0.1:0");
        let mut served: Vec<_> = (0..3).map(|_| rig.connect()).collect();
        served.iter_mut().for_each(|stream| stream.write_all(&record(1, b"in")).unwrap());
        rig.until(|counts| counts.calls_in_progress == 3);
        // All connections of one user are at work, so another is refused on any address, and the refusal is reported.
        for mut refused in [rig.connect(), connect_from(Ipv4Addr::new(127, 0, 0, 2), rig.address)] {
            assert!(matches!(refused.read(&mut [0]), Ok(0) | Err(_)));
        }
        assert_eq!((rig.handle.counts().connections, rig.handle.counts().accepted), (3, 3));
        assert_eq!(rig.handle.counts().refused, 2);
        let said = rig.gate.refused.lock().unwrap().clone();
        let user = format!("user {}, which has 3", rustix::process::geteuid().as_raw());
        assert!(said.iter().all(|said| said.contains(&user)), "{said:?}");
        rig.gate.open();
        for mut stream in served {
            let mut answer = [0; 2];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"in");
        }
    }
}

#[test]
fn two_users_whose_clients_do_not_read_lock_out_neither_another_user_nor_root() {
    if !is_root() {
        return;
    }
    for choice in CHOICES {
        let limits = ServeLimits { peer_connections_max: 24, ..limits(32) };
        let rig = Rig::limited(choice, Gate::default(), limits, "127.0.0.1:0");
        let mut deaf = Vec::new();
        for (user, connections, source) in [(USERS[0], 24, 1), (USERS[1], 6, 2)] {
            for _ in 0..connections {
                let mut stream = connect_of(Some(user), Ipv4Addr::new(127, 0, 0, source), rig.address);
                deafen(&mut stream);
                deaf.push(stream);
            }
        }
        // Root's two slots are free though all others are taken.
        assert_eq!(rig.handle.counts().connections, 30);
        let mut roots: Vec<_> = (0..2).map(|_| connect_as(0, rig.address)).collect();
        assert!(roots.iter_mut().all(is_served));
        assert_eq!(rig.handle.counts().closed_for_room, 0);
        // A third user gets more connections until it has nearly as many as the user with the most.
        let mut third: Vec<_> = (0..6)
            .map(|_| {
                let mut stream = connect_as(USERS[2], rig.address);
                assert!(is_served(&mut stream));
                stream
            })
            .collect();
        assert!(third.iter_mut().chain(&mut roots).all(is_served));
        let counts = rig.handle.counts();
        assert_eq!((counts.connections, counts.closed_for_room, counts.refused), (32, 6, 0));
        assert!(
            deaf[24..].iter_mut().all(|stream| stream.read_exact(&mut [0]).is_ok()),
            "the user with fewer keeps its"
        );
    }
}

#[test]
fn a_burst_of_one_users_connections_does_not_delay_the_first_one_of_another_user() {
    const BURST: u64 = 300;
    if !is_root() {
        return;
    }
    for choice in CHOICES {
        let limits = ServeLimits { peer_connections_max: 4, ..limits(16) };
        let rig = Rig::limited(choice, Gate::default(), limits, "127.0.0.1:0");
        let mut deaf: Vec<_> = (0..4).map(|_| connect_as(USERS[0], rig.address)).collect();
        deaf.iter_mut().for_each(deafen);
        // The server checks only once all have come.
        let (go, wait) = std::sync::mpsc::channel::<()>();
        rig.platform.reactor(0).run(move |_| {
            let _ = wait.recv();
        });
        let burst: Vec<_> = (0..BURST).map(|_| connect_as(USERS[0], rig.address)).collect();
        let mut other = connect_as(USERS[1], rig.address);
        drop(go);
        assert!(is_served(&mut other));
        let counts = rig.handle.counts();
        let before = counts.accepted - 4;
        assert!(before <= crate::net::crowd::PARTY_MAX as u64 + 1, "{before} of {BURST} were served first: {counts:?}");
        drop((deaf, burst));
    }
}

/// A client at another of this machine's addresses.
fn connect_from(source: Ipv4Addr, to: SocketAddr) -> TcpStream {
    connect_of(None, source, to)
}

fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let closed = !matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    closed
}

#[test]
fn silent_connections_lock_nobody_out() {
    let connections_max = 64;
    let limits = ServeLimits { peer_connections_max: 60, ..limits(connections_max) };
    let rig = Rig::limited(IoChoice::Auto, Gate::default(), limits, "127.0.0.1:0");
    let mut used = rig.connect();
    exchange(&mut used, 1, b"used");
    let mut silent: Vec<_> = (0..60).map(|_| rig.connect()).collect();
    // It was used before these came, so it was the first to be evicted; a client connects again.
    let mut further = rig.connect();
    exchange(&mut further, 1, b"further");
    rig.until(|counts| counts.closed_for_room == 2 && counts.connections == 60);
    assert!(is_closed(&mut used) && is_closed(&mut silent[0]));
    assert!(!is_closed(&mut silent[1]), "more were closed than had to make room");
}

#[test]
fn silent_connections_of_one_user_make_room_before_those_of_others() {
    if !is_root() {
        return;
    }
    for choice in CHOICES {
        let limits = ServeLimits { peer_connections_max: 15, ..limits(20) };
        let rig = Rig::limited(choice, Gate::default(), limits, "127.0.0.1:0");
        let mut own: Vec<_> = (0..2).map(|_| connect_as(USERS[0], rig.address)).collect();
        own.iter_mut().for_each(|stream| exchange(stream, 1, b"own"));
        let crowd: Vec<_> = (0..60).map(|_| connect_as(USERS[1], rig.address)).collect();
        rig.until(|counts| counts.accepted == 62 && counts.connections == 17);
        // They are older than all of the crowd, and are still there. With two more, all slots but root's are taken, and
        // six of the crowd go.
        own.extend((0..8).map(|_| connect_as(USERS[0], rig.address)));
        own.iter_mut().for_each(|stream| exchange(stream, 1, b"still"));
        assert!(own.iter_mut().all(|stream| !is_closed(stream)));
        let counts = rig.handle.counts();
        assert_eq!((counts.connections, counts.closed_for_room), (19, 45 + 6));
        drop(crowd);
    }
}

#[test]
fn connections_that_are_silent_for_long_are_closed_and_those_at_work_are_not() {
    for choice in CHOICES {
        let limits = ServeLimits { idle_ns: 50 * Nanos::MILLISECOND, ..limits(10) };
        let rig = Rig::limited(choice, Gate { closed: true.into(), ..Gate::default() }, limits, "127.0.0.1:0");
        let mut working = rig.connect();
        working.write_all(&record(1, b"at work")).unwrap();
        rig.until(|counts| counts.calls_in_progress == 1);
        let (mut silent, mut half) = (rig.connect(), rig.connect());
        half.write_all(&record(1, b"half")[..9]).unwrap();
        for stream in [&mut silent, &mut half] {
            assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed in order");
        }
        rig.until(|counts| counts.connections == 1);
        assert_eq!(rig.handle.counts().closed_silent, 2);
        rig.gate.open();
        let mut answer = [0; 7];
        working.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"at work");
    }
}

const BOUND: u64 = 16 << 20;

fn bounded(connections_max: usize) -> ServeLimits {
    ServeLimits { request_bytes_max: BOUND, ..limits(connections_max) }
}

#[test]
fn parked_calls_hold_at_most_the_bound_and_are_all_answered() {
    const CLIENTS: usize = 60;
    for choice in CHOICES {
        let gate = Gate { closed: true.into(), ..Gate::default() };
        // A part of the slots is for root alone.
        let rig = Rig::limited(choice, gate, bounded(CLIENTS + CLIENTS / 8 + 1), "127.0.0.1:0");
        let within = |counts: ServeCounts| {
            assert!(counts.request_bytes <= BOUND, "{} bytes are held", counts.request_bytes);
            counts
        };
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let mut stream = rig.connect();
                std::thread::spawn(move || exchange(&mut stream, 1, &bytes(client, 1 << 20)))
            })
            .collect();
        rig.until(|counts| {
            let counts = within(counts);
            counts.calls_in_progress >= 8 && counts.calls_in_progress + counts.waiting_for_room >= CLIENTS
        });
        // Others go on, since their unit of memory is always theirs.
        let mut other = rig.connect();
        exchange(&mut other, URGENT | 1, &bytes(1, 10_000));
        assert_eq!(rig.handle.counts().closed_stalled, 0, "they wait for us, not for their peers");
        rig.gate.open();
        drop(other);
        rig.until(|counts| within(counts).connections == 0);
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert_eq!((rig.handle.counts().request_bytes, rig.handle.counts().waiting_for_room), (0, 0));
    }
}

#[test]
fn a_connection_is_at_work_with_half_a_request_a_call_or_an_unsent_reply_and_not_with_its_buffer_alone() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate { closed: true.into(), ..Gate::default() }, 10, "127.0.0.1:0");
        let mut stream = rig.connect();
        let at_work = |connections| rig.until(|counts| counts.connections_at_work == connections);
        exchange(&mut stream, URGENT | 1, &bytes(1, 100));
        at_work(0);
        rig.until(|counts| counts.request_bytes > 0);
        // The reply is larger than the buffers of both sockets.
        let call = record(50, &bytes(1, 1 << 20));
        stream.write_all(&call[..1_000]).unwrap();
        at_work(1);
        stream.write_all(&call[1_000..]).unwrap();
        rig.until(|counts| (counts.calls_in_progress, counts.connections_at_work) == (1, 1));
        rig.gate.open();
        rig.until(|counts| (counts.calls_in_progress, counts.connections_at_work) == (0, 1));
        stream.read_exact(&mut vec![0; 50 << 20]).unwrap();
        at_work(0);
    }
}

#[test]
fn a_greedy_connection_leaves_room_for_others() {
    for choice in CHOICES {
        let gate = Gate { closed: true.into(), ..Gate::default() };
        let rig = Rig::limited(choice, gate, bounded(10), "127.0.0.1:0");
        // Each tries to fill the bound with calls that are not answered. The next one comes when the earlier ones have
        // their full quota.
        let mut greedy: Vec<TcpStream> = Vec::new();
        for others in 0..3 {
            let stream = rig.connect();
            let mut writing = stream.try_clone().unwrap();
            std::thread::spawn(move || {
                let call = record(1, &bytes(1, 1 << 20));
                for _ in 0..2 * (BOUND >> 20) {
                    if writing.write_all(&call).is_err() {
                        return;
                    }
                }
            });
            greedy.push(stream);
            rig.until(|counts| counts.waiting_for_room > others);
            let mut modest = rig.connect();
            exchange(&mut modest, URGENT | 1, &bytes(1, 1 << 20));
            exchange(&mut modest, URGENT | 1, &bytes(2, 1 << 20));
            let counts = rig.handle.counts();
            assert!(counts.request_bytes <= BOUND, "{} bytes", counts.request_bytes);
            // The first has nearly half of the bound, and retains it.
            assert!(counts.request_bytes >= BOUND / 2 - (2 << 20), "{} bytes", counts.request_bytes);
        }
        greedy.iter().for_each(|stream| stream.shutdown(std::net::Shutdown::Both).unwrap());
    }
}

#[test]
fn silent_peers_with_unfinished_records_go_while_others_wait() {
    for choice in CHOICES {
        let rig = Rig::limited(choice, Gate::default(), bounded(100), "127.0.0.1:0");
        let call = record(1, &bytes(1, 1 << 20));
        let mut silent: Vec<_> = (0..40).map(|_| rig.connect()).collect();
        silent.iter_mut().for_each(|stream| stream.write_all(&call[..1_000]).unwrap());
        rig.until(|counts| {
            assert!(counts.request_bytes <= BOUND, "{} bytes are held", counts.request_bytes);
            counts.bytes_in >= 40_000 && counts.request_bytes > BOUND / 2
        });
        // It needs as much memory as the silent ones hold in vain.
        exchange(&mut rig.connect(), 1, &bytes(3, 3 << 20));
        assert!(rig.handle.counts().closed_stalled > 0);
        // A connection stays if it never exceeded its unit, or if no other waits for its memory.
        let left = silent.iter_mut().filter_map(|stream| (!is_closed(stream)).then_some(stream));
        for stream in left.take(1) {
            stream.write_all(&call[1_000..]).unwrap();
            stream.read_exact(&mut vec![0; 1 << 20]).unwrap();
        }
        drop(silent);
        rig.until(|counts| counts.connections == 0);
        assert_eq!(rig.handle.counts().request_bytes, 0);
    }
}

#[test]
fn a_silent_connection_gives_back_the_buffer_that_a_busy_one_had() {
    for choice in CHOICES {
        let rig = Rig::limited(choice, Gate::default(), bounded(10), "127.0.0.1:0");
        let mut stream = rig.connect();
        let mut reading = stream.try_clone().unwrap();
        let reader = std::thread::spawn(move || reading.read_exact(&mut vec![0; 1_600 * 10_000]).unwrap());
        let calls: Vec<u8> = (0..1_600).flat_map(|call| record(1, &bytes(call, 10_000))).collect();
        stream.write_all(&calls).unwrap();
        reader.join().unwrap();
        // The unit of a connection: its buffer may be smaller.
        rig.until(|counts| counts.request_bytes <= 64 << 10);
        exchange(&mut stream, 2, &bytes(1, 100_000));
    }
}

#[test]
fn a_machine_is_told_when_its_connection_is_silent() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate::default(), 10, "127.0.0.1:0");
        let mut stream = rig.connect();
        for _ in 0..2 {
            let told = rig.gate.shrunk.load(Ordering::SeqCst);
            exchange(&mut stream, 2, &bytes(1, 100));
            rig.until(|_| rig.gate.shrunk.load(Ordering::SeqCst) > told);
        }
    }
}

#[test]
fn what_goes_to_a_process_of_this_host_is_not_paced() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let _near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = OwnedFd::from(listener.accept().unwrap().0);
    super::listener::accepted(&far, &mut super::origin::Origins::new()).unwrap();
    let way = rustix::net::sockopt::tcp_congestion(&far).unwrap();
    assert!(["cubic", "reno"].contains(&way.as_str()), "{way}");
}

#[test]
fn unreadable_input_closes_its_connection_alone() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate::default(), 10, "127.0.0.1:0");
        let (mut good, mut bad) = (rig.connect(), rig.connect());
        exchange(&mut good, 1, b"before");
        bad.write_all(&[0xff; 8]).unwrap();
        assert!(matches!(bad.read(&mut [0; 10]), Ok(0) | Err(_)));
        rig.until(|counts| counts.connections == 1);
        assert_eq!(rig.handle.counts().protocol_errors, 1);
        exchange(&mut good, 1, b"after");
    }
}

#[test]
fn finish_answers_calls_in_progress() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate { closed: true.into(), ..Gate::default() }, 10, "127.0.0.1:0");
        let mut streams: Vec<_> = (0..5).map(|_| rig.connect()).collect();
        let idle = rig.connect();
        for stream in &mut streams {
            stream.write_all(&record(100, &bytes(4, 10_000))).unwrap();
        }
        rig.until(|counts| counts.calls_in_progress == 5 && counts.connections == 6);
        let gate = Arc::clone(&rig.gate);
        let clients: Vec<_> = streams
            .into_iter()
            .map(|mut stream| {
                std::thread::spawn(move || {
                    // More calls than are answered: their bytes must not make the end a reset.
                    let _ = stream.write_all(&record(1, &bytes(5, 1_000)));
                    let mut answer = Vec::new();
                    stream.read_to_end(&mut answer).unwrap();
                    assert!(answer.len() >= 1_000_000);
                    assert!(answer[..1_000_000].chunks(10_000).all(|chunk| chunk == bytes(4, 10_000)));
                })
            })
            .collect();
        let finishing = std::thread::spawn({
            let (platform, handle) = (rig.platform.clone(), rig.handle.clone());
            move || platform.block_on(handle.finish(platform.now().after(600 * Nanos::SECOND)))
        });
        gate.open();
        clients.into_iter().for_each(|client| client.join().unwrap());
        drop(idle);
        assert_eq!(finishing.join().unwrap(), 0);
        assert_eq!(rig.handle.counts().connections, 0);
        // `stop_accepting` closes the listener soon: its reactor may be busy.
        while rustix::net::sockopt::socket_acceptconn(&rig.listening).unwrap() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn finish_cuts_what_takes_too_long() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate { closed: true.into(), ..Gate::default() }, 10, "127.0.0.1:0");
        let (mut parked, mut deaf) = (rig.connect(), rig.connect());
        parked.write_all(&record(1, b"never answered")).unwrap();
        rig.until(|counts| counts.calls_in_progress == 1);
        deaf.write_all(&record(URGENT | 200, &bytes(1, 1 << 20))).unwrap();
        // The client reads nothing, so the send is stuck.
        deaf.read_exact(&mut [0]).unwrap();
        assert_eq!(rig.finish(10 * Nanos::MILLISECOND), 2);
        assert_eq!(rig.handle.counts().connections, 0);
        assert_eq!(rig.handle.counts().calls_in_progress, 0);
        assert_eq!(rig.gate.output.load(Ordering::SeqCst), 0, "segments are left");
    }
}

// rule: a call goes on while its client does not take the replies of others: calls of other clients may wait for it
// kept in: `product/linux-server/src/net/connection.rs`, `product/nfs/src/workers.rs`
#[test]
fn calls_of_a_client_that_does_not_read_go_on() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate { closed: true.into(), ..Gate::default() }, 10, "127.0.0.1:0");
        let mut deaf = rig.connect();
        deaf.write_all(&record(URGENT | 200, &bytes(1, 1 << 20))).unwrap();
        deaf.write_all(&record(URGENT | 200, &bytes(1, 1 << 20))).unwrap();
        deaf.write_all(&record(1, b"parked")).unwrap();
        rig.until(|_| rig.gate.calls_polled.load(Ordering::SeqCst) > 0);
        assert_eq!(rig.finish(0), 1);
    }
}

#[test]
fn stopping_the_platform_ends_connections() {
    for choice in CHOICES {
        let Rig { address, handle, gate, _reactors, .. } = Rig::new(choice, Gate::default(), 10, "127.0.0.1:0");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&record(200, &bytes(1, 1 << 20))).unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
        drop(_reactors);
        assert_eq!(handle.counts().connections, 0);
        assert_eq!(gate.output.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_client_that_has_gone_is_seen_on_a_socket_of_an_earlier_server() {
    let first = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = first.internet_address().unwrap();
    let taken = Listener::taken_over(first.descriptor().try_clone_to_owned().unwrap(), address).unwrap();
    let client = TcpStream::connect(address).unwrap();
    let connection = rustix::net::accept(first.descriptor()).unwrap();
    assert!(taken.has_client(&connection) && first.has_client(&connection));
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(!taken.has_client(&connection) && first.has_client(&connection));
}

fn waits_for_epoll(thread: Pid) -> bool {
    let call = std::fs::read_to_string(format!("/proc/self/task/{}/syscall", thread.as_raw_nonzero())).unwrap();
    let number = call.split(' ').next().and_then(|number| number.parse().ok());
    number.is_some_and(|number| [libc::SYS_epoll_wait, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2].contains(&number))
}

// rule: a connection is taken though another waiter at the socket takes the kernel's wake-up
// kept in: `product/linux-server/src/net/socket.rs`
#[test]
fn a_waiter_before_the_server_keeps_no_connection_from_it() {
    for choice in CHOICES {
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.internet_address().unwrap();
        let waiter = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let flags = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
        epoll::add(&waiter, listener.descriptor(), epoll::EventData::new_u64(0), flags).unwrap();
        let (reactors, gate) = (Reactors::start(1, choice).unwrap(), Arc::new(Gate::default()));
        let handle = serve_echo(&reactors.platform(), listener, 5, &gate);
        let calls = || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            exchange(&mut stream, 1, &bytes(1, 1000));
        };
        // From here on the server waits, behind the other.
        calls();
        let (told, heard) = std::sync::mpsc::channel();
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let other = std::thread::spawn(move || {
            told.send(rustix::thread::gettid()).unwrap();
            while !until.load(Ordering::SeqCst) {
                let mut events = [epoll::Event { flags, data: epoll::EventData::new_u64(0) }];
                let most = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
                epoll::wait(&waiter, &mut events[..], Some(&most)).unwrap();
            }
        });
        let other_thread = heard.recv().unwrap();
        while !waits_for_epoll(other_thread) {
            std::thread::yield_now();
        }
        calls();
        ended.store(true, Ordering::SeqCst);
        other.join().unwrap();
        handle.stop_accepting();
    }
}

/// A copy of the socket is the service manager's.
#[test]
fn a_socket_that_was_taken_over_takes_connections_until_a_stop() {
    let first = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = first.internet_address().unwrap();
    let copy = || first.descriptor().try_clone_to_owned().unwrap();
    let connects = || TcpStream::connect(address).is_ok();
    for wanted in [address, "127.0.0.1:0".parse().unwrap()] {
        let taken = Listener::taken_over(copy(), wanted).unwrap();
        assert_eq!(taken.internet_address(), Some(address));
        drop(taken);
        assert!(connects(), "the start that took it over has failed");
    }
    for wanted in ["127.0.0.1:1", "127.0.0.2:0", "[::1]:0"] {
        let Err(error) = Listener::taken_over(copy(), wanted.parse().unwrap()) else { panic!("{wanted}") };
        assert!(matches!(error, ListenError::Unfit { .. }), "{error}");
    }
    let taken = Listener::taken_over(copy(), address).unwrap();
    taken.listen().unwrap();
    drop(taken);
    assert!(!connects(), "the server has stopped");
}

#[test]
fn addresses_that_cannot_be_had_are_named() {
    let taken = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = taken.internet_address().unwrap();
    let Err(error) = Listener::tcp(address) else { panic!("twice at {address}") };
    assert!(matches!(error, ListenError::InUse { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    let Err(error) = Listener::tcp("192.0.2.1:1234".parse().unwrap()) else { panic!("not ours") };
    assert!(error.to_string().contains("192.0.2.1:1234"), "{error}");

    let place = Scratch::new();
    let path = place.path().join("socket");
    let listener = Listener::local(&path).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(matches!(Listener::local(&path), Err(ListenError::InUse { .. })));
    drop(listener);
    assert!(!path.exists());
    // A killed server leaves its path without a listener. Another test may just be starting a program, which has a copy
    // of the socket until it runs, so the test shuts the socket down.
    let killed = std::os::unix::net::UnixListener::bind(&path).unwrap();
    rustix::net::shutdown(&killed, rustix::net::Shutdown::Both).unwrap();
    drop(killed);
    assert!(path.exists());
    drop(Listener::local(&path).unwrap());
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(Listener::local(&path), Err(ListenError::NotASocket { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let long = place.path().join("x".repeat(200));
    let Err(error) = Listener::local(&long) else { panic!("too long") };
    assert!(error.to_string().contains("xxx"), "{error}");
}

/// The copy stands for a program that another thread is just starting.
#[test]
fn a_listener_that_is_dropped_takes_no_connection_though_its_descriptor_was_copied() {
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
    let copy = listener.fd.try_clone().unwrap();
    assert_eq!(rustix::net::sockopt::socket_acceptconn(&copy), Ok(true));
    drop(listener);
    assert_eq!(rustix::net::sockopt::socket_acceptconn(&copy), Ok(false));

    let place = Scratch::new();
    let (path, kept) = (place.path().join("socket"), place.path().join("kept"));
    let listener = Listener::local(&path).unwrap();
    // By a name that the listener does not remove.
    std::fs::hard_link(&path, &kept).unwrap();
    UnixStream::connect(&kept).unwrap();
    let _copy = listener.fd.try_clone().unwrap();
    drop(listener);
    assert_eq!(UnixStream::connect(&kept).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

/// Calls of offset and length, answered from the pages of a file.
struct Pages {
    engine: Arc<afflux_engine::Engine<LinuxPlatform>>,
    file: afflux_engine::File,
    calls: VecDeque<Pin<Box<dyn Future<Output = afflux_engine::PinnedPages> + Send>>>,
}

impl ProtocolMachine for Pages {
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        while let Some((offset, len)) = header(input) {
            input.advance(8);
            let (engine, file) = (Arc::clone(&self.engine), self.file.clone());
            self.calls.push_back(Box::pin(async move {
                engine.read_pinned(&file, offset as u64, len as usize).await.unwrap().expect("little is pinned")
            }));
        }
        Ok(())
    }

    fn needs_input(&self) -> bool {
        self.calls.len() < 4
    }

    fn input_hint(&self, _input: &BytesMut) -> usize {
        8
    }

    fn poll_output(&mut self, cx: &mut Context<'_>, output: &mut dyn Output) -> Poll<()> {
        let Some(call) = self.calls.front_mut() else { return Poll::Pending };
        let pages = std::task::ready!(call.as_mut().poll(cx));
        self.calls.pop_front();
        output.push(Segment::Bytes(Bytes::from_static(b"head")));
        output.push(Segment::Pages(pages));
        Poll::Ready(())
    }

    fn poll_calls(&mut self, _cx: &mut Context<'_>) {}

    fn calls_in_progress(&self) -> usize {
        self.calls.len()
    }
}

#[test]
fn pages_of_a_host_file_go_out_where_they_are() {
    for choice in CHOICES {
        let place = Scratch::new();
        let contents = bytes(11, 3 << 20);
        std::fs::write(place.path().join("file"), &contents).unwrap();
        let reactors = Reactors::start(2, choice).unwrap();
        let platform = reactors.platform();
        let frames = afflux_frames::Frames::new(64 << 20).unwrap();
        let engine =
            afflux_engine::Engine::new(Arc::new(platform.clone()), afflux_engine::settings::Settings::new(), frames);
        let device =
            afflux_linux_device::HostDevice::new(&platform, place.descriptor(), afflux_linux_device::Caching::Auto)
                .unwrap();
        let id = engine.add_device("disk", device);
        let host = afflux_linux_device::HostFile::new(std::fs::File::open(place.path().join("file")).unwrap().into());
        let file = engine.open(id, afflux_engine::Backing::new(Arc::new(host)), contents.len() as u64);
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut stream = TcpStream::connect(listener.internet_address().unwrap()).unwrap();
        let handle = serve(&platform, vec![listener], || limits(1), |_| {}, {
            let (engine, file) = (Arc::clone(&engine), file.clone());
            move |_| Box::new(Pages { engine: Arc::clone(&engine), file: file.clone(), calls: VecDeque::new() })
        });
        let calls: Vec<(usize, usize)> =
            (0..60).map(|call| (call * 37_003 % (2 << 20), [1, 4096, 70_000, 1 << 20][call % 4])).collect();
        let mut writing = stream.try_clone().unwrap();
        let writer = std::thread::spawn({
            let calls = calls.clone();
            move || {
                for (offset, len) in calls {
                    let call = [(offset as u32).to_be_bytes(), (len as u32).to_be_bytes()].concat();
                    writing.write_all(&call).unwrap();
                }
            }
        });
        for (offset, len) in calls {
            let mut answer = vec![0; 4 + len];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer[..4], b"head");
            assert!(answer[4..] == contents[offset..offset + len], "{len} bytes at {offset}");
        }
        writer.join().unwrap();
        // After a sync the host has the bytes written through the engine, with the exact size.
        let tail = bytes(12, 5_001);
        let end = contents.len() as u64;
        platform.block_on(async {
            engine.write(&file, end, &tail).await.unwrap();
            engine.sync(&file, 0..u64::MAX).await.unwrap();
        });
        assert!(std::fs::read(place.path().join("file")).unwrap() == [contents, tail].concat());
        drop(stream);
        assert_eq!(platform.block_on(handle.finish(platform.now().after(600 * Nanos::SECOND))), 0);
        assert_eq!(engine.status().pinned_bytes, 0, "pages are still held");
    }
}

#[test]
fn what_is_served_is_told_by_address() {
    for choice in CHOICES {
        let rig = Rig::new(choice, Gate::default(), 5, "127.0.0.1:0");
        let (mut first, mut second) = (rig.connect(), rig.connect());
        let mut other = connect_from(Ipv4Addr::new(127, 0, 0, 2), rig.address);
        exchange(&mut first, 1, &bytes(1, 1_000));
        exchange(&mut second, 1, &bytes(2, 70_000));
        exchange(&mut other, 1, &bytes(3, 10));
        let of = |last| rig.handle.peers().get(&IpAddr::from([127, 0, 0, last])).copied().unwrap_or_default();
        let told = |counts: PeerCounts| (counts.connections, counts.bytes_in, counts.bytes_out);
        // A reply may arrive before it is counted.
        rig.until(|_| told(of(1)) == (2, 71_000 + 2 * 8, 71_000) && told(of(2)) == (1, 10 + 8, 10));
        drop(other);
        rig.until(|counts| counts.connections == 2);
        assert_eq!((of(2), rig.handle.peers().len()), (PeerCounts::default(), 1));
    }
}
