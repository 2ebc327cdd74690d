//! Connections that end before their calls, over a host that does not answer.
//!
//! rule: a call that goes on without its connection counts for its party until it ends
//! kept in: `product/frontend/src/quota/mod.rs`, `product/nfs/src/connection.rs`

use std::ops::RangeInclusive;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Waker};

use afflux_frontend::{ProtocolMachine, Segment};
use afflux_nfs::{ClientMemory, NfsKnob};
use afflux_nfs_client::sessions::{ANONYMOUS, Compound, NFS_4, Outcome};
use nfs3_types::nfs3::{
    CREATE3args, LOOKUP3args, MKDIR3args, Nfs3Option, REMOVE3args, SETATTR3args, SYMLINK3args, createhow3, diropargs3,
    nfs_fh3, nfspath3, sattr3, symlinkdata3,
};
use nfs3_types::xdr_codec::Opaque;

use crate::compounds::ops;
use crate::peer::{NFS, Peer, accepted, call_record, marked, packed};
use crate::world::{CLIENT, HOST_THREADS, World};

const OTHER: [u8; 4] = [127, 0, 0, 9];
/// Connections that are tried at most.
const CONNECTIONS_MAX: usize = 10_000;
/// Most bytes of calls without a connection: half of four times the bytes of a connection.
const LEFT_BYTES_MAX: usize = 2 << 20;
/// The bytes of one of these calls: at least, at most.
const CALL_BYTES: [usize; 2] = [12 << 10, 24 << 10];

/// The numbers of calls that a party may leave: all up to the call that reaches the bound.
fn left_calls() -> RangeInclusive<usize> {
    let [least, most] = CALL_BYTES.map(|bytes| LEFT_BYTES_MAX.div_ceil(bytes));
    most..=least
}

/// Keeps all threads that call the host about the directory, until it is dropped.
struct FrozenHost(Arc<(Mutex<bool>, Condvar)>);

impl FrozenHost {
    fn of(world: &World) -> Self {
        let gate: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let (entered, all_entered) = std::sync::mpsc::channel();
        for _ in 0..HOST_THREADS {
            let (gate, entered) = (Arc::clone(&gate), entered.clone());
            world.pool.post(move || {
                entered.send(()).unwrap();
                let (is_open, opened) = &*gate;
                drop(opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
            });
        }
        (0..HOST_THREADS).for_each(|_| all_entered.recv().unwrap());
        Self(gate)
    }
}

impl Drop for FrozenHost {
    fn drop(&mut self) {
        let (is_open, opened) = &*self.0;
        *is_open.lock().unwrap() = true;
        opened.notify_all();
    }
}

/// A world whose parties may have the least in progress.
fn small() -> World {
    let world = World::new();
    world.volume.engine().set_knob(NfsKnob::InflightBytes, 1 << 20).unwrap();
    world.server.offer_version_4(ClientMemory::default());
    world
}

/// Begins a call, and ends its connection. False if the server does not read it.
fn try_leave(mut peer: Peer, record: &[u8]) -> bool {
    let begins = peer.connection.needs_input();
    if begins {
        peer.send(record).unwrap();
        let mut segments: Vec<Segment> = Vec::new();
        let polled = peer.connection.poll_output(&mut Context::from_waker(Waker::noop()), &mut segments);
        assert!(polled.is_pending() && peer.connection.calls_in_progress() == 1, "the call waits for the host");
    }
    begins
}

fn place(dir: &nfs_fh3, name: &str) -> diropargs3<'static> {
    diropargs3 { dir: nfs_fh3 { data: Opaque::owned(dir.data.to_vec()) }, name: name.as_bytes().to_vec().into() }
}

fn directories(world: &World) -> usize {
    std::fs::read_dir(&world.path).unwrap().count()
}

#[test]
fn changes_of_connections_that_were_reset_are_bounded_and_go_on_to_their_end() {
    let world = small();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    let file = world.create(&mut peer, &root, b"file");
    std::fs::create_dir(world.path.join("made")).unwrap();
    world.lookup(&mut peer, &root, b"made");
    let attributes = sattr3::default;
    let change = |number: usize| {
        let new = || place(&root, &format!("new.{number}"));
        match number % 4 {
            0 => (9, packed(&MKDIR3args { where_: new(), attributes: attributes() })),
            1 => (8, packed(&CREATE3args { where_: new(), how: createhow3::UNCHECKED(attributes()) })),
            2 => {
                let symlink = symlinkdata3 {
                    symlink_attributes: attributes(),
                    symlink_data: nfspath3(Opaque::borrowed(b"target")),
                };
                (10, packed(&SYMLINK3args { where_: new(), symlink }))
            }
            _ => {
                let (mode, guard) = (Nfs3Option::Some(0o600 + number as u32 % 8), Nfs3Option::None);
                let new_attributes = sattr3 { mode, ..attributes() };
                (2, packed(&SETATTR3args { object: file.clone(), new_attributes, guard }))
            }
        }
    };
    let frozen = FrozenHost::of(&world);
    let begins = |number: &usize| {
        let (procedure, arguments) = change(*number);
        let record = marked(&call_record(5000 + *number as u32, NFS, procedure, &arguments));
        try_leave(Peer::new(&world, CLIENT), &record)
    };
    let begun = (0..CONNECTIONS_MAX).take_while(begins).count();
    assert!(left_calls().contains(&begun), "{begun} of {CONNECTIONS_MAX}");
    assert!(!Peer::new(&world, CLIENT).connection.needs_input(), "the party has left too many");
    assert!(Peer::new(&world, OTHER).connection.needs_input(), "another has not");
    drop(frozen);
    let mut peer = Peer::new(&world, CLIENT);
    peer.poll_until(|_, connection| connection.needs_input());
    assert!(peer.call(NFS, 0, &[]).is_empty());
    let made = (0..begun).filter(|number| number % 4 != 3).count();
    afflux_scratch::eventually("each change is made", || directories(&world) == 2 + made);
}

#[test]
fn other_calls_end_with_their_connection() {
    let world = small();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    std::fs::write(world.path.join("file"), "").unwrap();
    let _frozen = FrozenHost::of(&world);
    let data = vec![7; 1 << 19];
    for number in 0..100 {
        let name = format!("unknown.{number}");
        let record = match number % 2 {
            0 => call_record(number, NFS, 3, &packed(&LOOKUP3args { what: place(&root, &name) })),
            _ => {
                let file = ops().put_root().lookup(name.as_bytes()).write(ANONYMOUS, 0, 0, &data);
                call_record(number, NFS_4, 1, &file.arguments(1))
            }
        };
        let mut peer = Peer::new(&world, CLIENT);
        assert!(peer.connection.needs_input(), "call {number}");
        peer.send(&marked(&record)).unwrap();
        let mut segments: Vec<Segment> = Vec::new();
        let _ = peer.connection.poll_output(&mut Context::from_waker(Waker::noop()), &mut segments);
    }
}

/// The slots of a session, each used once.
struct Slots {
    session: [u8; 16],
    count: u32,
}

impl Slots {
    fn begin(peer: &mut Peer, owner: &[u8]) -> Self {
        const COUNT: u32 = 64;
        let mut call = |it: Compound| Outcome::read(&peer.call(NFS_4, 1, &it.arguments(1))).unwrap().results;
        let client = call(ops().exchange_id(owner, [7; 8], 0))[8..16].try_into().unwrap();
        let made = call(ops().create_session(u64::from_be_bytes(client), 1, 16, COUNT));
        let session = made[8..24].try_into().unwrap();
        call(ops().sequence(session, 1, 0, false).reclaim_complete());
        Self { session, count: COUNT }
    }

    /// The record of a compound on a slot that has had none.
    fn record(&self, slot: u32, operations: &Compound) -> Vec<u8> {
        let compound = ops().sequence(self.session, 1, slot, false).followed_by(operations);
        marked(&call_record(slot, NFS_4, 1, &compound.arguments(1)))
    }
}

#[test]
fn compounds_that_have_changed_something_are_bounded_and_others_end_with_their_connection() {
    let world = small();
    let sessions = 10;
    let mut peer = Peer::new(&world, CLIENT);
    let slots: Vec<Slots> = (0..sessions).map(|number| Slots::begin(&mut peer, &[number])).collect();
    let places = || slots.iter().flat_map(|it| (1..it.count).map(move |slot| (it, slot)));
    let data = vec![7; 1 << 18];
    let frozen = FrozenHost::of(&world);
    // The first thing that waits is no change: the rest of the compound never begins.
    for (number, (session, slot)) in places().take(100).enumerate() {
        let name = format!("unknown.{number}");
        let waits = ops().put_root().lookup(name.as_bytes()).write(ANONYMOUS, 0, 0, &data).make_directory(b"never");
        assert!(try_leave(Peer::new(&world, CLIENT), &session.record(slot, &waits)), "compound {number}");
    }
    let make = |number: usize| ops().put_root().make_directory(format!("made.{number}").as_bytes());
    let rest = places().skip(100).enumerate();
    let begun = rest
        .take_while(|(number, (session, slot))| {
            try_leave(Peer::new(&world, CLIENT), &session.record(*slot, &make(*number)))
        })
        .count();
    assert!(left_calls().contains(&begun), "{begun}");
    drop(frozen);
    let mut peer = Peer::new(&world, CLIENT);
    peer.poll_until(|_, connection| connection.needs_input());
    afflux_scratch::eventually("each directory is made", || directories(&world) == begun);
    // A call that was dropped runs when it comes again.
    let (session, slot) = places().next().unwrap();
    peer.send(&session.record(slot, &ops().put_root().lookup(b"made.0").make_directory(b"within"))).unwrap();
    let (_, results) = accepted(&peer.replies(1)[0]);
    assert_eq!(Outcome::read(&results).unwrap().status, 0);
    assert!(world.path.join("made.0/within").exists() && !world.path.join("never").exists());
}

#[test]
fn a_removal_whose_connection_was_reset_has_its_reply_for_the_next_connection() {
    let world = small();
    let mut peer = Peer::new(&world, CLIENT);
    let root = peer.root();
    world.create(&mut peer, &root, b"file");
    let record = marked(&call_record(77, NFS, 12, &packed(&REMOVE3args { object: place(&root, "file") })));
    let frozen = FrozenHost::of(&world);
    assert!(try_leave(Peer::new(&world, CLIENT), &record));
    drop(frozen);
    let mut peer = Peer::new(&world, CLIENT);
    peer.send(&record).unwrap();
    assert_eq!(accepted(&peer.replies(1)[0]).1[..4], [0; 4]);
    assert!(!world.path.join("file").exists());
}
