//! A process without a free descriptor takes new connections. The test has a process of its own, since it lowers the
//! limit of the process.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use afflux_frontend::{Output, ProtocolError, ProtocolMachine, Segment};
use afflux_linux_device::{IoChoice, Reactors};
use afflux_linux_server::{Listener, ServeHandle, ServeLimits, serve};
use bytes::BytesMut;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Sends all bytes back.
#[derive(Default)]
struct Echo(BytesMut);

impl ProtocolMachine for Echo {
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        self.0.unsplit(input.split());
        Ok(())
    }

    fn needs_input(&self) -> bool {
        true
    }

    fn input_hint(&self, _: &BytesMut) -> usize {
        1
    }

    fn poll_output(&mut self, _: &mut Context<'_>, output: &mut dyn Output) -> Poll<()> {
        if self.0.is_empty() {
            return Poll::Pending;
        }
        output.push(Segment::Bytes(self.0.split().freeze()));
        Poll::Ready(())
    }

    fn calls_in_progress(&self) -> usize {
        usize::from(!self.0.is_empty())
    }

    fn held_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn shrink(&mut self) {}
}

fn exchange(mut stream: &TcpStream) {
    stream.write_all(b"words").unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"words");
}

/// Takes all free numbers.
fn take_all(taken: &mut Vec<OwnedFd>) {
    loop {
        match open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(one) => taken.push(one),
            Err(error) => return assert_eq!(error, Errno::MFILE),
        }
    }
}

fn serve_echo(reactors: &Reactors) -> (ServeHandle, SocketAddr) {
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.internet_address().unwrap();
    let limits = ServeLimits {
        connections_max: 1_024,
        peer_connections_max: 1_024,
        idle_ns: 0,
        request_bytes_max: 1 << 30,
        unread_ns: 0,
    };
    let factory = |_| -> Box<dyn ProtocolMachine> { Box::new(Echo::default()) };
    (serve(&reactors.platform(), vec![listener], move || limits, |_| {}, factory), address)
}

// rule: a process without a free descriptor takes new connections in place of idle ones
#[test]
fn new_connections_are_served_while_others_take_each_free_descriptor() {
    const IDLE: usize = 96;
    const NEW: u64 = 24;
    for choice in [IoChoice::Auto, IoChoice::Syscalls] {
        let reactors = Reactors::start(2, choice).unwrap();
        let (handle, address) = serve_echo(&reactors);
        let idle: Vec<TcpStream> = (0..IDLE).map(|_| TcpStream::connect(address).unwrap()).collect();
        idle.iter().for_each(exchange);
        // The test's own descriptors are there before none is left.
        let socket = || socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let new: Vec<OwnedFd> = (0..NEW).map(|_| socket()).collect();
        let all = getrlimit(Resource::Nofile);
        let numbers = fs::read_dir("/proc/self/fd").unwrap();
        let numbers = numbers.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse::<u64>().unwrap());
        let highest = numbers.max().unwrap();
        setrlimit(Resource::Nofile, Rlimit { current: Some(highest + 16), maximum: all.maximum }).unwrap();
        let mut taken = Vec::new();
        take_all(&mut taken);
        let mut served = Vec::new();
        for socket in new {
            connect(&socket, &address).unwrap();
            served.push(TcpStream::from(socket));
            exchange(&served[served.len() - 1]);
            // A number that a closed connection had left would be gone.
            take_all(&mut taken);
        }
        let counts = handle.counts();
        assert!(counts.closed_for_room > 0 && counts.refused == 0, "{counts:?}");
        assert_eq!(counts.accepted, IDLE as u64 + NEW);
        setrlimit(Resource::Nofile, all).unwrap();
    }
}
