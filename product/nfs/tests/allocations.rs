//! The allocations of WRITE and COMMIT on a connection in use, and the memory of an open file. A server that is part of
//! its own host's reclaim must not ask the host for memory in order to write.
//!
//! All allocations of the process count, except those of the thread that plays the client.

#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub, dead_code, reason = "tests")]

//! rule: a WRITE or COMMIT over a connection in use allocates no memory, except for its own writeback
//! kept in: `product/nfs/src/workers.rs`, `product/nfs/src/wire/batch.rs`

#[path = "protocol/peer.rs"]
mod peer;
#[path = "protocol/world.rs"]
mod world;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use afflux_nfs::ClientMemory;
use afflux_nfs_client::sessions::{CURRENT, Compound, Session, Stateid};
use afflux_nfs_client::{Client, Kind, Load, Sending, stable_how};
use world::World;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Bytes in use; those that the client frees may have been the server's.
static BYTES: AtomicI64 = AtomicI64::new(0);
static SIZES: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

thread_local! {
    static IS_CLIENT: Cell<bool> = const { Cell::new(false) };
}

fn count(bytes: usize) {
    if !IS_CLIENT.get() {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        SIZES[(bytes / 8).min(SIZES.len() - 1)].fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: all is the system allocator's; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes);
        BYTES.fetch_add(bytes as i64 - layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, bytes) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const ROUNDS: u64 = 64;
/// Background work allocates now and then: the repeat with the least is the calls' own.
const REPEATS: u64 = 8;
const WARM_UP: u64 = 4;

/// More than fits into the cache.
const COLD_BYTES: u64 = 128 << 20;
const COLD_CALLS: u64 = 4_000;

/// Allocations of at least 8 KiB by READs of uncached data at random places, 64 in flight.
fn large_ones_of_cold_reads(client: &mut Client, file: &[u8]) -> u64 {
    let (kind, sending, duration) = (Kind::Read(4096), Sending::Batched, Duration::MAX);
    let load = Load { kind, window: 64, sending, file_bytes: COLD_BYTES, sequential: false, duration, seed: 3 };
    client.load_each_once(file, &load, COLD_CALLS).unwrap();
    let large = &SIZES[SIZES.len() - 1];
    large.store(0, Ordering::Relaxed);
    client.load_each_once(file, &Load { file_bytes: COLD_BYTES / 2, ..load }, COLD_CALLS).unwrap();
    large.load(Ordering::Relaxed)
}

/// Allocations of one call, rounded down: the least of several repeats, divided by the calls of a repeat.
fn a_call(what: &str, mut call: impl FnMut(u64)) -> u64 {
    let mut repeat = |at: u64| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        (0..ROUNDS).for_each(|round| call(at * ROUNDS + round));
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    (0..WARM_UP).for_each(|at| {
        repeat(at);
    });
    SIZES.iter().for_each(|size| size.store(0, Ordering::Relaxed));
    let counts: Vec<u64> = (WARM_UP..WARM_UP + REPEATS).map(&mut repeat).collect();
    eprintln!("{what}: allocations of {ROUNDS} calls {counts:?}, a call by size");
    for (at, size) in SIZES.iter().enumerate() {
        let calls = size.load(Ordering::Relaxed) as f64 / (REPEATS * ROUNDS) as f64;
        if calls > 0.01 {
            eprintln!("    {:5} bytes: {calls:.2}", at * 8);
        }
    }
    counts.into_iter().min().unwrap() / ROUNDS
}

/// A new file in the root, open for reading and writing.
fn opened(session: &mut Session) -> (Stateid, Vec<u8>) {
    let opened =
        session.must(Compound::default().put_root().open((3, 0), b"owner", b"of version 4", true).get_handle());
    let opened = opened.unwrap();
    let mut reader = opened.reader();
    reader.next_result().unwrap();
    reader.next_result().unwrap();
    let stateid = reader.stateid().unwrap();
    reader.skip_open().unwrap();
    reader.next_result().unwrap();
    (stateid, reader.opaque().unwrap().to_vec())
}

/// Each test counts all allocations of the process.
static COUNTS: Mutex<()> = Mutex::new(());

#[test]
fn read_write_and_commit_of_a_compound_allocate_nothing() {
    let _alone = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    IS_CLIENT.set(true);
    let world = World::new();
    world.server.offer_version_4(ClientMemory::default());
    let mut session = Session::begin(Client::connect(world.serve()).unwrap(), b"test", 2).unwrap();
    let (stateid, file) = opened(&mut session);
    session.keeps = false;
    let page = vec![7; 4096];
    let of_file = || Compound::default().put(&file);
    for at in 0..32 {
        session.must(of_file().write(stateid, at * 4096, 0, &page)).unwrap();
    }
    let writes = a_call("WRITE and GETATTR", |at| {
        session
            .must(of_file().write(stateid, at % 16 * 4096, 0, &page).attributes(&[0x0010_011a, 0x00b0_a23a]))
            .unwrap();
    });
    let reads = a_call("READ and GETATTR", |at| {
        session.must(of_file().read(stateid, at % 16 * 4096, 4096).attributes(&[0x0010_011a, 0x00b0_a23a])).unwrap();
    });
    const READ_PLUS: u32 = 68;
    let plus = a_call("READ_PLUS", |at| {
        let places = [(at % 16 * 4096).to_be_bytes().as_slice(), &4096_u32.to_be_bytes()].concat();
        let arguments = [&stateid.0.to_be_bytes()[..], &stateid.1, &places].concat();
        session.must(of_file().raw(READ_PLUS, &arguments)).unwrap();
    });
    session.must(of_file().commit()).unwrap();
    let commits = a_call("COMMIT of nothing", |_| {
        session.must(of_file().commit()).unwrap();
    });
    assert_eq!((writes, reads, plus, commits), (0, 0, 0, 0));
}

#[test]
fn an_open_of_a_known_file_takes_at_most_500_bytes() {
    const FILES: u64 = 4096;
    let _alone = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let world = World::over(|path| (0..FILES).for_each(|at| std::fs::write(path.join(at.to_string()), "").unwrap()));
    world.server.offer_version_4(ClientMemory::default());
    let mut session = Session::begin(Client::connect(world.serve()).unwrap(), b"test", 2).unwrap();
    session.keeps = false;
    // As long as Linux's name of an owner.
    const OWNER: [u8; 24] = *b"open id: 000000000000000";
    let opens = |at: u64| Compound::default().put_root().open((3, 0), &OWNER, at.to_string().as_bytes(), false);
    for at in 0..FILES {
        session.must(opens(at).close(CURRENT)).unwrap();
    }
    let before = BYTES.load(Ordering::Relaxed);
    for at in 0..FILES {
        session.must(opens(at)).unwrap();
    }
    let bytes = (BYTES.load(Ordering::Relaxed) - before) / FILES as i64;
    eprintln!("{bytes} bytes for an open of a file that is known");
    assert!((100..=500).contains(&bytes), "{bytes} bytes");
}

#[test]
fn write_and_commit_allocate_nothing() {
    let _alone = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    IS_CLIENT.set(true);
    let world = World::over(|path| {
        std::fs::File::create(path.join("cold")).unwrap().set_len(COLD_BYTES).unwrap();
    });
    let mut client = Client::connect(world.serve()).unwrap();
    let root = client.mount("/").unwrap();
    let (cold, _) = client.lookup(&root, b"cold").unwrap();
    let large = large_ones_of_cold_reads(&mut client, &cold);
    eprintln!("READs of what is not cached: {large} allocations of 8 KiB and more in {COLD_CALLS}");
    // Each call has an existing worker, the largest object that it needs.
    assert!(large * 8 < COLD_CALLS, "{large} in {COLD_CALLS} READs");
    let file = client.create_empty(&root, b"file").unwrap();
    let page = vec![7; 4096];
    client.write_all(&file, 0, &vec![1; 1 << 20], 65_536, 4).unwrap();

    let overwrites = a_call("WRITE over what is dirty", |at| {
        client.write(&file, at % 16 * 4096, &page, stable_how::UNSTABLE).unwrap();
    });
    let new_pages = a_call("WRITE of new pages", |at| {
        client.write(&file, (1 << 20) + at * 4096, &page, stable_how::UNSTABLE).unwrap();
    });
    let commits = a_call("COMMIT of nothing", |_| {
        client.commit(&file, 0, 0).unwrap();
    });
    let written = a_call("WRITE and COMMIT of a page", |at| {
        client.write(&file, at % 16 * 4096, &page, stable_how::UNSTABLE).unwrap();
        client.commit(&file, 0, 0).unwrap();
    });
    // A call that is answered at once allocates nothing: the connection has its buffers and the memory of its
    // operations. A call that may have to wait has a worker with its future, and the previous call's copy of the record
    // and reply buffer.
    assert_eq!(overwrites, 0);
    assert_eq!(new_pages, 0);
    assert_eq!(commits, 0);
    // The engine reuses the tasks of syncs, the ends of requests and the answers. The device reuses its flights, and
    // the tree of names the calls that set a time.
    assert_eq!(written, 0);
}
