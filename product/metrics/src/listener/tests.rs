mod request;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A guard against hangs, far above the duration of any step here.
const PATIENCE: Duration = Duration::from_secs(60);

const FOR_EVER: Duration = Duration::from_secs(3_600);

struct Rig {
    address: SocketAddr,
    made: Arc<AtomicUsize>,
}

impl Rig {
    fn new(bounds: Bounds, text: &str) -> Self {
        let listener = MetricsListener::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let (address, made) = (listener.address().unwrap(), Arc::new(AtomicUsize::new(0)));
        let (counter, text) = (Arc::clone(&made), text.to_owned());
        let figures = move || {
            counter.fetch_add(1, Ordering::SeqCst);
            text.clone()
        };
        listener.start_within(bounds, figures).unwrap();
        Self { address, made }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn ask(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        rest(&mut stream)
    }
}

fn rest(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

const ALL: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
const WIDE: Bounds = Bounds { connections: 16, lasting: FOR_EVER, reuse: FOR_EVER };

#[test]
fn figures_are_given_and_made_once_for_many() {
    let rig = Rig::new(WIDE, "t 1\n");
    for _ in 0..20 {
        assert!(rig.ask(ALL).ends_with("\r\n\r\nt 1\n"));
    }
    assert_eq!(rig.made.load(Ordering::SeqCst), 1);
    let rig = Rig::new(Bounds { reuse: Duration::ZERO, ..WIDE }, "t 1\n");
    (0..3).for_each(|_| drop(rig.ask(ALL)));
    assert_eq!(rig.made.load(Ordering::SeqCst), 3);
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let rig = Rig::new(WIDE, "t 1\n");
    let mut stream = rig.connect();
    stream.set_nodelay(true).unwrap();
    for byte in ALL {
        stream.write_all(&[*byte]).unwrap();
    }
    assert!(rest(&mut stream).ends_with("t 1\n"));
}

#[test]
fn who_says_nothing_makes_room_for_who_asks() {
    let rig = Rig::new(WIDE, "t 1\n");
    let mut silent: Vec<TcpStream> = (0..3 * WIDE.connections).map(|_| rig.connect()).collect();
    for slow in &mut silent {
        // A connection that was closed for others may already get an error.
        let _ = slow.write_all(b"GET /metrics HT");
    }
    assert!(rig.ask(ALL).ends_with("t 1\n"));
    // The first of them is gone, and the last is not.
    assert!(matches!(silent[0].read(&mut [0]), Ok(0) | Err(_)));
    let last = silent.last_mut().unwrap();
    last.write_all(b"TP/1.1\r\n\r\n").unwrap();
    assert!(rest(last).ends_with("t 1\n"));
}

#[test]
fn a_connection_has_its_time_whatever_it_does() {
    let rig = Rig::new(Bounds { lasting: Duration::from_millis(50), ..WIDE }, "t 1\n");
    let mut silent = rig.connect();
    let mut halting = rig.connect();
    halting.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    for over in [&mut silent, &mut halting] {
        let read = over.read(&mut [0]);
        assert!(matches!(&read, Ok(0)) || read.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    }
}

#[test]
fn one_who_takes_nothing_is_in_nobodys_way() {
    let text = "t 1\n".repeat(1 << 20);
    let rig = Rig::new(WIDE, &text);
    let mut deaf = rig.connect();
    deaf.write_all(ALL).unwrap();
    for _ in 0..3 {
        assert!(rig.ask(ALL).ends_with("t 1\n"));
    }
    assert_eq!(rest(&mut deaf).split_once("\r\n\r\n").unwrap().1.len(), text.len());
}

#[test]
fn what_is_no_request_is_told_so() {
    let rig = Rig::new(WIDE, "t 1\n");
    let begins = |request: &[u8], with: &str| {
        let answer = rig.ask(request);
        assert!(answer.starts_with(with), "{answer}");
    };
    begins(b"GET /elsewhere HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ");
    begins(b"DELETE /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ");
    begins(b"\0\x01\x02\xff\n", "HTTP/1.1 400 ");
    // Longer than the server reads: the answer still arrives.
    begins(&[b'A'; 100_000], "HTTP/1.1 431 ");
    assert_eq!(rig.made.load(Ordering::SeqCst), 0);
}

#[test]
fn a_port_that_is_taken_is_an_error_before_anybody_is_served() {
    let first = MetricsListener::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let error = MetricsListener::bind(first.address().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
}
