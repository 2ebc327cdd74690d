//! The question for TLS, and calls before and after the handshake.

use std::future::Future;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::pin::Pin;
use std::sync::Arc;

use afflux_frontend::{HostUsers, OwnerKind, ProtocolMachine, UserGroups};
use afflux_nfs::{AdmittedPeers, ClientMemory, Rules, Squash, TlsUse};
use nfs3_types::nfs3::{MKDIR3args, diropargs3, sattr3};

use crate::peer::{NFS, Peer, call_record, marked, packed};
use crate::world::{CLIENT, World};

const TLS: u32 = 7;
const REJECTED: &[u32] = &[1, 1, 2];
const BAD_CREDENTIAL: &[u32] = &[1, 1, 1];
const TOO_WEAK: &[u32] = &[1, 1, 5];

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn probe(program: u32, version: u32) -> Vec<u8> {
    words(&[1, 0, 2, program, version, 0, TLS, 0, 0, 0])
}

/// The reply that tells the client to begin.
fn begin() -> Vec<u8> {
    [&words(&[1, 1, 0, 0, 8])[..], b"STARTTLS", &words(&[0])].concat()
}

fn refused(with: &[u32]) -> Vec<u8> {
    [words(&[1, 1]), words(with)].concat()
}

fn ask(peer: &mut Peer, record: &[u8]) -> Vec<u8> {
    peer.send(&marked(record)).unwrap();
    peer.replies(1).remove(0)
}

fn world(how: TlsUse) -> World {
    let world = World::new();
    world.server.offer_version_4(ClientMemory::default());
    world.server.offer_tls(how);
    world
}

#[test]
fn a_client_that_asks_is_told_to_begin() {
    let world = world(TlsUse::Offered);
    for (program, version) in [(100_003, 3), (100_003, 4), (100_005, 1), (100_005, 3)] {
        let mut peer = Peer::new(&world, CLIENT);
        assert!(peer.call(NFS, 0, &[]).is_empty());
        assert!(!peer.connection.is_to_be_secured());
        assert_eq!(ask(&mut peer, &probe(program, version)), begin());
        assert!(peer.connection.is_to_be_secured());
        peer.connection.secured(None);
        assert!(!peer.connection.is_to_be_secured());
        peer.root();
        // There is one handshake on a connection.
        assert_eq!(ask(&mut peer, &probe(program, version)), refused(REJECTED));
        assert!(!peer.connection.is_to_be_secured());
    }
}

#[test]
fn a_question_in_another_form_begins_nothing() {
    let world = world(TlsUse::Offered);
    let call = |program, version, procedure, rest: &[u32]| {
        words(&[&[1, 0, 2, program, version, procedure, TLS], rest].concat())
    };
    let table = [
        (call(100_003, 3, 1, &[0, 0, 0]), BAD_CREDENTIAL),
        (call(100_003, 4, 1, &[0, 0, 0]), BAD_CREDENTIAL),
        (call(100_003, 3, 0, &[4, 9, 0, 0]), BAD_CREDENTIAL),
        (call(100_003, 3, 0, &[0, 1, 0]), BAD_CREDENTIAL),
        (call(100_003, 3, 0, &[0, 0, 4, 9]), BAD_CREDENTIAL),
        (call(100_003, 2, 0, &[0, 0, 0]), &[0, 0, 0, 2, 3, 4][..]),
        (call(100_000, 2, 0, &[0, 0, 0]), &[0, 0, 0, 1]),
        (call(100_003, 3, 22, &[0, 0, 0]), &[0, 0, 0, 3]),
        (call(100_003, 3, 0, &[0, 0]), &[0, 0, 0, 4]),
    ];
    let mut peer = Peer::new(&world, CLIENT);
    for (record, expected) in table {
        assert_eq!(ask(&mut peer, &record), refused(expected), "{record:?}");
        assert!(!peer.connection.is_to_be_secured());
    }
    assert_eq!(ask(&mut peer, &probe(100_003, 3)), begin());
    assert!(world.server.calls().iter().any(|row| row.name == "rpc_auth_bad" && row.count == 5));
}

#[test]
fn bytes_behind_the_question_keep_the_connection_in_the_clear() {
    let world = world(TlsUse::Offered);
    let null = call_record(2, NFS, 0, &[]);
    for behind in [marked(&null), marked(&null)[..30].to_vec(), (9_u32).to_be_bytes().to_vec()] {
        let mut peer = Peer::new(&world, CLIENT);
        // The beginning of a record in several fragments is as much a part of a call as a whole one.
        let fragment = match behind.len() {
            4 => [&8_u32.to_be_bytes()[..], &[0; 8]].concat(),
            _ => behind,
        };
        peer.send(&[marked(&probe(100_003, 3)), fragment.clone()].concat()).unwrap();
        let whole = fragment == marked(&null);
        let replies = peer.replies(if whole { 2 } else { 1 });
        // The half of a record in one fragment stays with the world, which gives it to the handshake.
        let is_left = !peer.input.is_empty();
        assert_eq!(replies[0], if is_left { begin() } else { refused(REJECTED) });
        assert_eq!(peer.connection.is_to_be_secured(), is_left);
    }
}

#[test]
fn a_server_without_tls_says_so() {
    let mut peer = Peer::new(&World::new(), CLIENT);
    assert_eq!(ask(&mut peer, &probe(100_003, 3)), refused(REJECTED));
    assert!(!peer.connection.is_to_be_secured());
}

// rule: where TLS is required, a client gets no answer before it but to its question
#[test]
fn where_tls_is_required_nothing_else_is_answered_before_it() {
    let world = world(TlsUse::Required);
    let mut peer = Peer::new(&world, CLIENT);
    for (program, procedure) in
        [(NFS, 0), (NFS, 1), ((100_003, 4), 0), ((100_003, 4), 1), ((100_005, 3), 1), ((100_005, 3), 5)]
    {
        assert_eq!(
            ask(&mut peer, &call_record(1, program, procedure, &[])),
            refused(TOO_WEAK),
            "{program:?} {procedure}"
        );
    }
    // Nor does a change of the rules let anybody in.
    world.server.admit(afflux_nfs::AdmittedPeers::AnyPeer);
    assert_eq!(ask(&mut peer, &call_record(1, NFS, 0, &[])), refused(TOO_WEAK));
    assert_eq!(ask(&mut peer, &probe(100_003, 3)), begin());
    peer.connection.secured(None);
    peer.root();
    world.server.admit(afflux_nfs::AdmittedPeers::AnyPeer);
    peer.root();
}

/// Users with names.
struct NamedUsers;

impl HostUsers for NamedUsers {
    fn find(&self, _uid: u32) -> Option<UserGroups> {
        Some(UserGroups { gid: Some(4003), further: vec![4004] })
    }

    fn look_up(&self, _uid: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    fn give_up(&self, _uid: u32) {}

    fn number_of(&self, kind: OwnerKind, name: &str) -> Pin<Box<dyn Future<Output = Option<u32>> + Send>> {
        let number = [("anna", 4002), ("root", 0)].iter().find(|(own, _)| kind == OwnerKind::User && *own == name);
        Box::pin(std::future::ready(number.map(|(_, number)| *number)))
    }

    fn age(&self) -> u64 {
        0
    }
}

// rule: where users of certificates count, no claim of a call makes its caller another user
#[test]
fn a_client_whose_certificate_names_a_user_is_that_user() {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return afflux_scratch::skipped!("only root has files of several users");
    }
    let users: Arc<dyn HostUsers> = Arc::new(NamedUsers);
    let rules = |squash| Rules {
        any_port: true,
        squash,
        networks: vec!["0.0.0.0/0".parse().unwrap()],
        ..Rules::of_callers(Arc::clone(&users))
    };
    let made_by = |how, squash, user: Option<&str>| {
        let world = World::new();
        let root = Peer::new(&world, CLIENT).root();
        world.server.offer_tls(how);
        std::fs::set_permissions(&world.path, PermissionsExt::from_mode(0o777)).unwrap();
        world.server.admit(rules(squash).into());
        let mut peer = Peer::new(&world, CLIENT);
        assert_eq!(ask(&mut peer, &probe(100_003, 3)), begin());
        peer.connection.secured(user);
        // MKDIR as user 4009.
        let place = diropargs3 { dir: root, name: b"made".to_vec().into() };
        let made = packed(&MKDIR3args { where_: place, attributes: sattr3::default() });
        let credential = words(&[1, 20, 0, 0, 4009, 4009, 0, 0, 0]);
        let reply = ask(&mut peer, &[&words(&[1, 0, 2, 100_003, 3, 9])[..], &credential, &made].concat());
        let made = std::fs::metadata(world.path.join("made")).ok().map(|made| made.uid());
        (reply[4..] == words(&[1, 1, 1, 5])[..], made)
    };
    let certified = TlsUse::CertificateUsers;
    assert_eq!(made_by(certified, Squash::Root, Some("anna@example.org")), (false, Some(4002)));
    assert_eq!(made_by(certified, Squash::Root, Some("root")), (false, Some(NOBODY)));
    assert_eq!(made_by(certified, Squash::None, Some("root")), (false, Some(0)));
    assert_eq!(made_by(certified, Squash::All, Some("anna")), (false, Some(NOBODY)));
    assert_eq!(made_by(certified, Squash::Root, None), (false, Some(4009)), "it names nobody");
    assert_eq!(made_by(certified, Squash::Root, Some("stranger")), (true, None));
    assert_eq!(made_by(TlsUse::Required, Squash::Root, Some("anna")), (false, Some(4009)), "names do not count");
}

// rule: a peer that is not admitted is not told to begin TLS
#[test]
fn a_peer_that_is_not_admitted_begins_no_handshake() {
    for how in [TlsUse::Offered, TlsUse::Required] {
        let world = world(how);
        // Nobody elsewhere is admitted.
        world.server.admit(Rules::of_serving_user(0).into());
        for (program, version) in [(100_003, 3), (100_003, 4), (100_005, 3), (100_000, 2)] {
            let mut peer = Peer::new(&world, CLIENT);
            assert_eq!(ask(&mut peer, &probe(program, version)), refused(TOO_WEAK), "{how:?} {program}");
            assert!(!peer.connection.is_to_be_secured());
            // Once the rules admit it, the same connection may begin.
            world.server.admit(AdmittedPeers::AnyPeer);
            let admitted = ask(&mut peer, &probe(program, version));
            assert_eq!(admitted == begin(), program != 100_000);
            world.server.admit(Rules::of_serving_user(0).into());
        }
    }
}
