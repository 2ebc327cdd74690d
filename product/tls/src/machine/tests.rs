use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use afflux_frontend::{Origin, Output, Peer, ProtocolError, ProtocolMachine, Segment};
use afflux_tls_client::{Authority, Issued, Purpose, Trust};
use bytes::{Bytes, BytesMut};
use rustls::ClientConnection;

use super::TlsMachine;
use crate::{TlsIdentity, TlsServer};

/// Answers `begin` with `go on` and asks for TLS; gives all other bytes back.
#[derive(Default)]
struct Echo {
    given: Vec<Bytes>,
    begins: bool,
    is_secured: bool,
    user: Option<String>,
}

impl ProtocolMachine for Echo {
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        if input.starts_with(b"begin") && !self.is_secured {
            input.truncate(5);
            self.begins = true;
        }
        self.given.push(input.split().freeze());
        Ok(())
    }

    fn needs_input(&self) -> bool {
        true
    }

    fn input_hint(&self, _: &BytesMut) -> usize {
        4
    }

    fn poll_output(&mut self, _: &mut Context<'_>, output: &mut dyn Output) -> Poll<()> {
        if self.given.is_empty() {
            return Poll::Pending;
        }
        for bytes in self.given.drain(..) {
            output.push(Segment::Bytes(if &bytes[..] == b"begin" { Bytes::from_static(b"go on") } else { bytes }));
        }
        output.end_reply();
        Poll::Ready(())
    }

    fn poll_calls(&mut self, _cx: &mut Context<'_>) {}

    fn calls_in_progress(&self) -> usize {
        0
    }

    fn is_to_be_secured(&self) -> bool {
        self.begins && !self.is_secured
    }

    fn secured(&mut self, user: Option<&str>) {
        self.is_secured = true;
        self.user = user.map(str::to_owned);
    }
}

/// A server, and the handshakes that failed at it.
struct Rig {
    authority: Authority,
    server: Arc<TlsServer>,
    failed: Arc<Mutex<Vec<String>>>,
}

impl Rig {
    fn new(has_clients: bool) -> Self {
        let (authority, failed) = (Authority::new(), Arc::<Mutex<Vec<String>>>::default());
        let told = Arc::clone(&failed);
        let identity = identity(&authority, "server", has_clients);
        let on_failed = move |_, reason: &str| told.lock().unwrap().push(reason.to_owned());
        let server = TlsServer::new(&identity, on_failed).unwrap();
        Self { authority, server, failed }
    }

    /// A connection whose peer was asked to begin TLS.
    fn begun(&self) -> TlsMachine<Echo> {
        self.begun_from(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST).into())
    }

    fn begun_from(&self, peer: Peer) -> TlsMachine<Echo> {
        let mut machine = TlsMachine::new(Echo::default(), Arc::clone(&self.server), peer);
        assert_eq!(given(&mut machine, b"hello").unwrap(), b"hello");
        assert_eq!(given(&mut machine, b"begin").unwrap(), b"go on");
        machine
    }

    fn trust(&self, own: Option<&Issued>) -> Trust {
        Trust::new(&self.authority, own)
    }

    fn failures(&self) -> Vec<String> {
        self.failed.lock().unwrap().clone()
    }
}

/// A peer on another host.
fn elsewhere(last: u8) -> Peer {
    std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)).into()
}

fn identity(authority: &Authority, name: &str, has_clients: bool) -> TlsIdentity {
    let Issued { certificate, key } = authority.issue(name, Purpose::Server);
    let clients = has_clients.then(|| authority.certificate.clone().into_bytes());
    TlsIdentity { certificates: certificate.into(), key: key.into(), clients }
}

/// Gives bytes to the machine; the bytes that come out of it.
fn given(machine: &mut TlsMachine<Echo>, bytes: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    let mut input = BytesMut::from(bytes);
    machine.receive(&mut input)?;
    assert!(input.is_empty());
    let (mut segments, mut output) = (Vec::new(), Vec::new());
    while machine.poll_output(&mut Context::from_waker(Waker::noop()), &mut segments).is_ready() {}
    for segment in &segments {
        match segment {
            Segment::Bytes(bytes) => output.extend_from_slice(bytes),
            Segment::Lent(bytes) => output.extend_from_slice(bytes),
            Segment::Pages(_) => unreachable!(),
        }
    }
    Ok(output)
}

/// Moves bytes in both directions, `step` at a time, until the client has nothing more to send.
fn exchange(client: &mut ClientConnection, machine: &mut TlsMachine<Echo>, step: usize) -> Result<(), ProtocolError> {
    loop {
        let mut sent = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut sent).unwrap();
        }
        if sent.is_empty() {
            return Ok(());
        }
        for piece in sent.chunks(step) {
            let received = given(machine, piece)?;
            let mut received = &received[..];
            while !received.is_empty() {
                client.read_tls(&mut received).unwrap();
                client.process_new_packets().unwrap();
            }
        }
    }
}

fn said(client: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = vec![0; client.process_new_packets().unwrap().plaintext_bytes_to_read()];
    client.reader().read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn bytes_are_encrypted_from_the_handshake_on() {
    let rig = Rig::new(false);
    for step in [1, 7, 1 << 20] {
        let (mut machine, mut client) = (rig.begun(), rig.trust(None).session());
        exchange(&mut client, &mut machine, step).unwrap();
        assert!(machine.inner.is_secured && !client.is_handshaking());
        assert_eq!(rig.server.secured().len(), 1);
        assert_eq!(rig.server.secured()[0].name, None);
        client.writer().write_all(b"begin again").unwrap();
        exchange(&mut client, &mut machine, step).unwrap();
        assert_eq!(said(&mut client), b"begin again");
        drop(machine);
        assert!(rig.server.secured().is_empty());
    }
    assert!(rig.failures().is_empty());
}

#[test]
fn large_pieces_come_back_whole_and_the_received_buffer_is_released() {
    let rig = Rig::new(false);
    let (mut machine, mut client) = (rig.begun(), rig.trust(None).session());
    exchange(&mut client, &mut machine, 1 << 20).unwrap();
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    client.set_buffer_limit(None);
    client.writer().write_all(&large).unwrap();
    let (mut sent, mut back) = (Vec::new(), Vec::new());
    while client.wants_write() {
        client.write_tls(&mut sent).unwrap();
    }
    assert!(!sent.windows(64).any(|piece| piece == &large[..64]), "in the clear");
    for piece in sent.chunks(300_000) {
        let mut input = BytesMut::from(piece);
        machine.receive(&mut input).unwrap();
        assert_eq!(input.capacity(), 0);
        assert_eq!(machine.held_bytes(), 0, "the decrypted bytes are the protocol's");
        let received = given(&mut machine, b"").unwrap();
        let mut received = &received[..];
        while !received.is_empty() {
            client.read_tls(&mut received).unwrap();
            back.extend(said(&mut client));
        }
    }
    assert_eq!(back, large);
}

#[test]
fn a_failed_handshake_ends_with_its_reason_for_both_sides() {
    const ALERT: u8 = 21;
    let rig = Rig::new(true);
    let stranger = Authority::new().issue("stranger", Purpose::Client);
    let late = rig.authority.issue("late", Purpose::ClientInThePast);
    let server = rig.authority.issue("server", Purpose::Server);
    let known = rig.authority.issue("known", Purpose::Client);
    let clients = [
        (rig.trust(None), "peer sent no certificates"),
        (rig.trust(Some(&stranger)), "UnknownIssuer"),
        (rig.trust(Some(&late)), "expired"),
        (rig.trust(Some(&server)), "extended key usage"),
        (rig.trust(Some(&known)).for_protocol(b"http/1.1"), "any known protocol"),
    ];
    for (trust, expected) in clients {
        let (mut machine, mut client) = (rig.begun(), trust.session());
        let error = exchange(&mut client, &mut machine, 1 << 20).unwrap_err();
        let told = rig.failures().pop().unwrap();
        assert_eq!(told, error.reason);
        let shown = told.to_lowercase();
        assert!(shown.contains(&expected.to_lowercase()), "{told}, not {expected}");
        assert!(!machine.last_words().is_empty() && machine.last_words().is_empty());
        assert!(!machine.inner.is_secured && rig.server.secured().is_empty());
    }
    let mut machine = rig.begun();
    given(&mut machine, b"GET / HTTP/1.1\r\n\r\n").unwrap_err();
    assert_eq!(machine.last_words()[0], ALERT);
    assert_eq!(rig.failures().len(), 6);

    let (mut machine, mut client) = (rig.begun(), rig.trust(Some(&known)).session());
    exchange(&mut client, &mut machine, 1 << 20).unwrap();
    assert_eq!(rig.server.secured()[0].name.as_deref(), Some("known"));
}

// rule: no byte from before a TLS handshake counts as one of the peer that it proves
#[test]
fn bytes_before_the_handshake_and_behind_its_end_are_no_calls() {
    let rig = Rig::new(false);
    let (mut machine, mut client) = (rig.begun(), rig.trust(None).session());
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    // A forger on the network path puts bytes in front of the handshake.
    given(&mut machine, &[b"forged", &hello[..]].concat()).unwrap_err();
    assert!(!machine.inner.is_secured && machine.inner.given.is_empty());

    let (mut machine, mut client) = (rig.begun(), rig.trust(None).session());
    exchange(&mut client, &mut machine, 1 << 20).unwrap();
    // An end is answered with an end, behind the last reply.
    client.writer().write_all(b"last").unwrap();
    client.send_close_notify();
    exchange(&mut client, &mut machine, 1 << 20).unwrap();
    assert_eq!(said(&mut client), b"last");
    assert!(client.process_new_packets().unwrap().peer_has_closed());
    given(&mut machine, b"forged").unwrap_err();
    assert!(machine.inner.given.is_empty());
}

#[test]
fn a_renewed_identity_acts_from_the_next_handshake_on() {
    let rig = Rig::new(false);
    let (mut machine, mut client) = (rig.begun(), rig.trust(None).session());
    exchange(&mut client, &mut machine, 1 << 20).unwrap();
    let other = Authority::new();
    rig.server.renew(&identity(&other, "renewed", false)).unwrap();
    let (mut late, mut trusting) = (rig.begun(), Trust::new(&other, None).session());
    exchange(&mut trusting, &mut late, 1 << 20).unwrap();
    client.writer().write_all(b"still here").unwrap();
    exchange(&mut client, &mut machine, 1 << 20).unwrap();
    assert_eq!(said(&mut client), b"still here");

    let mut wrong = identity(&other, "wrong", false);
    wrong.key = identity(&other, "another", false).key;
    rig.server.renew(&wrong).unwrap_err();
    let (mut late, mut trusting) = (rig.begun(), Trust::new(&other, None).session());
    exchange(&mut trusting, &mut late, 1 << 20).unwrap();
}

// rule: handshakes of one client take a bounded part of the server's time
// kept in: `product/tls/src/permits.rs`
#[test]
fn a_client_that_begins_many_handshakes_waits_and_others_do_not() {
    let rig = Rig::new(false);
    let mut many: Vec<_> = (0..200).map(|_| rig.begun()).collect();
    let may_begin = |machines: &[TlsMachine<Echo>]| machines.iter().filter(|it| it.needs_input()).count();
    assert_eq!(may_begin(&many), 50);
    let (mut other, mut client) = (rig.begun_from(elsewhere(7)), rig.trust(None).session());
    exchange(&mut client, &mut other, 1 << 20).unwrap();
    assert!(other.inner.is_secured && other.inner.user.is_none());
    // Waiting bytes stay in the sockets.
    assert!(!many[199].needs_input());
    many.drain(..150);
    rig.server.refill();
    for machine in &mut many {
        given(machine, b"").unwrap();
    }
    // The handshakes above were measured, and a busy machine makes the next ones dearer.
    assert!((1..=50).contains(&may_begin(&many)));
    let next = many.iter_mut().find(|machine| machine.needs_input()).unwrap();
    let mut client = rig.trust(None).session();
    exchange(&mut client, next, 1 << 20).unwrap();
    assert!(next.inner.is_secured);
}

#[test]
fn users_of_this_host_have_each_their_turns() {
    let rig = Rig::new(false);
    let user = |uid| Peer { origin: Origin::User(uid), ..std::net::IpAddr::V4(Ipv4Addr::LOCALHOST).into() };
    let many: Vec<_> = (0..60).map(|_| rig.begun_from(user(1000))).collect();
    assert_eq!(many.iter().filter(|it| it.needs_input()).count(), 50);
    assert!(rig.begun_from(user(1001)).needs_input());
}

#[test]
fn a_handshake_that_is_given_up_has_taken_its_time() {
    let rig = Rig::new(false);
    let cost = rig.server.permits.cost_ns();
    let (mut machine, mut client) = (rig.begun_from(elsewhere(1)), rig.trust(None).session());
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    assert!(!given(&mut machine, &hello).unwrap().is_empty(), "the server's side, with its signature");
    assert_eq!(rig.server.permits.cost_ns(), cost);
    drop(machine);
    assert_ne!(rig.server.permits.cost_ns(), cost);
}
