//! Locks of programs on a mount: by `fcntl` and by `flock`, with others of the same volume.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afflux_engine::Platform;
use afflux_frontend::{MessageMachine, MessageReply, Tried};
use afflux_fuse::MountOptions;
use afflux_volume::{HolderId, Lock, LockFamily, LockHolder, LockMode, LockOwner, LockRefusal, Nanos, Share, Span};
use bytes::Bytes;

use crate::kernel::{Kernel, ROOT, content, longs, name, u32_at, u64_at, words};

const GETLK: u32 = 31;
const SETLK: u32 = 32;
const SETLKW: u32 = 33;
const SETATTR: u32 = 4;
const FLUSH: u32 = 25;
const RELEASE: u32 = 18;
const INTERRUPT: u32 = 36;
const SHARED: u32 = 0;
const EXCLUSIVE: u32 = 1;
const NONE: u32 = 2;
const BY_FLOCK: u32 = 1;
/// The kernel's last byte of a lock without an end.
const END: u64 = i64::MAX as u64;
const AGAIN: i32 = 11;

fn sharing() -> Kernel {
    Kernel::with(MountOptions { shares_locks: true, ..MountOptions::default() })
}

/// The arguments of a lock by `fcntl`.
fn bytes(fh: u64, owner: u64, first: u64, last: u64, kind: u32) -> Vec<u8> {
    [longs(&[fh, owner, first, last]), words(&[kind, 500 + owner as u32, 0, 0])].concat()
}

/// The arguments of a lock by `flock`.
fn whole(fh: u64, owner: u64, kind: u32) -> Vec<u8> {
    [longs(&[fh, owner, 0, END]), words(&[kind, 500, BY_FLOCK, 0])].concat()
}

/// A client of another front end, which can be silent.
struct Elsewhere(std::sync::atomic::AtomicBool);

impl LockHolder for Elsewhere {
    fn has_lapsed(&self, _: Nanos) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn try_revoke(&self, now: Nanos) -> bool {
        self.has_lapsed(now)
    }

    fn name(&self) -> String {
        "elsewhere".to_owned()
    }
}

fn elsewhere(holder: HolderId, mode: LockMode) -> Lock {
    let owner = LockOwner { holder, number: 1, family: LockFamily::Single };
    Lock { owner, span: Span::between(100, 199).unwrap(), mode, process: 0 }
}

#[test]
fn the_kernel_asks_for_locks_only_where_others_share_them() {
    let offered = words(&[7, 45, 131_072, u32::MAX, u32::MAX]);
    for (kernel, asks) in [(Kernel::new(), false), (sharing(), true)] {
        let answer = kernel.call(26, 0, &[offered.clone(), vec![0; 44]].concat()).unwrap();
        assert_eq!(u32_at(&answer, 12) & (1 << 1 | 1 << 10), if asks { 1 << 1 | 1 << 10 } else { 0 });
        let (node, fh) = kernel.create(ROOT, "file");
        let locked = kernel.call(SETLK, node, &bytes(fh, 1, 0, END, EXCLUSIVE));
        assert_eq!(locked.map(|_| ()), if asks { Ok(()) } else { Err(38) });
        // The close of a file that was only read ends locks, so the kernel has to tell of it.
        const NOFLUSH: u32 = 1 << 5;
        let opened = kernel.call(14, node, &words(&[0, 0])).unwrap();
        assert_eq!(u32_at(&opened, 8) & NOFLUSH == 0, asks);
    }
}

#[test]
fn owners_exclude_each_other_and_are_told_by_whom() {
    let kernel = sharing();
    let (node, fh) = kernel.create(ROOT, "file");
    let lock = |owner, first, last, kind| kernel.call(SETLK, node, &bytes(fh, owner, first, last, kind)).map(|_| ());
    let test = |owner, first, last, kind| {
        let answer = kernel.call(GETLK, node, &bytes(fh, owner, first, last, kind)).unwrap();
        (u64_at(&answer, 0), u64_at(&answer, 8), u32_at(&answer, 16), u32_at(&answer, 20))
    };
    lock(1, 10, 19, EXCLUSIVE).unwrap();
    lock(1, 30, END, SHARED).unwrap();
    assert_eq!(lock(2, 0, END, SHARED), Err(AGAIN));
    assert_eq!(test(2, 0, 25, SHARED), (10, 19, EXCLUSIVE, 501));
    assert_eq!(test(2, 25, END, EXCLUSIVE), (30, END, SHARED, 501));
    assert_eq!(test(1, 0, END, EXCLUSIVE), (0, END, NONE, 0));
    lock(2, 20, 40, SHARED).unwrap();
    lock(1, 0, END, NONE).unwrap();
    lock(2, 0, END, EXCLUSIVE).unwrap();
    assert_eq!(lock(2, 9, 8, EXCLUSIVE), Err(22));
    assert_eq!(lock(2, 9, 9, 7), Err(22));
    assert_eq!(kernel.call(SETLK, node, &bytes(99, 1, 0, 1, SHARED)), Err(9));
}

#[test]
fn flock_and_fcntl_do_not_see_each_other_and_end_with_their_files() {
    let kernel = sharing();
    let (node, fh) = kernel.create(ROOT, "file");
    let other = kernel.open(node, 2).unwrap();
    let set = |body: Vec<u8>| kernel.call(SETLK, node, &body).map(|_| ());
    set(whole(fh, 1, EXCLUSIVE)).unwrap();
    set(bytes(fh, 7, 0, END, EXCLUSIVE)).unwrap();
    assert_eq!((set(whole(other, 2, SHARED)), set(bytes(other, 8, 5, 5, SHARED))), (Err(AGAIN), Err(AGAIN)));
    // A close of any descriptor ends the process's locks by fcntl, and the last one of an open file its flock.
    kernel.call(FLUSH, node, &longs(&[other, 0, 7])).unwrap();
    set(bytes(other, 8, 5, 5, EXCLUSIVE)).unwrap();
    assert_eq!(set(whole(other, 2, SHARED)), Err(AGAIN));
    const FLOCK_ENDS: u32 = 2;
    kernel.call(RELEASE, node, &[longs(&[fh]), words(&[0, FLOCK_ENDS]), longs(&[1])].concat()).unwrap();
    set(whole(other, 2, EXCLUSIVE)).unwrap();
    // A change of the mode lets go first: two programs that share would wait for each other.
    let third = kernel.open(node, 2).unwrap();
    set(whole(other, 2, SHARED)).unwrap();
    set(whole(third, 3, SHARED)).unwrap();
    assert_eq!(set(whole(other, 2, EXCLUSIVE)), Err(AGAIN));
    set(whole(third, 3, EXCLUSIVE)).unwrap();
}

/// A call that waits.
fn waits(kernel: &Kernel, message: Vec<u8>) -> impl Future<Output = Option<MessageReply>> + use<> {
    assert!(matches!(kernel.mount.try_answer(&message), Tried::Waits));
    Arc::clone(&kernel.mount).answer(Box::new(message))
}

fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The answer to a call of this number, which waits no more.
fn answered(call: Pin<&mut impl Future<Output = Option<MessageReply>>>, number: u64) -> Result<Vec<u8>, i32> {
    let Poll::Ready(Some(reply)) = poll(call) else { panic!("it still waits") };
    content(reply, number)
}

#[test]
fn a_program_waits_in_line_and_an_interrupt_ends_the_wait_at_once() {
    let kernel = sharing();
    let (node, fh) = kernel.create(ROOT, "file");
    kernel.call(SETLK, node, &bytes(fh, 1, 0, 9, EXCLUSIVE)).unwrap();
    let mut first = pin!(waits(&kernel, kernel.message(SETLKW, node, &bytes(fh, 2, 0, 9, EXCLUSIVE))));
    let first_number = kernel.last();
    let mut second = pin!(waits(&kernel, kernel.message(SETLKW, node, &bytes(fh, 3, 0, 9, SHARED))));
    let second_number = kernel.last();
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    let began = kernel.world.platform().now();
    let interrupting = waits(&kernel, kernel.message(INTERRUPT, 0, &longs(&[first_number])));
    assert!(kernel.world.run(interrupting).unwrap().is_none());
    assert_eq!(answered(first.as_mut(), first_number), Err(4));
    assert_eq!(kernel.world.platform().now(), began, "no time has passed");
    // The one who left is in nobody's way.
    kernel.call(SETLK, node, &bytes(fh, 1, 0, 9, NONE)).unwrap();
    assert_eq!(answered(second.as_mut(), second_number), Ok(Vec::new()));
    assert_eq!(kernel.call(SETLK, node, &bytes(fh, 1, 0, 9, EXCLUSIVE)), Err(AGAIN));
}

/// A lock of this kind by a call, which ends at once or hangs the test.
fn set(kernel: &Kernel, node: u64, fh: u64, owner: u64, first: u64, last: u64, kind: u32) -> Result<(), i32> {
    kernel.call(SETLK, node, &bytes(fh, owner, first, last, kind)).map(|_| ())
}

#[test]
fn a_host_that_stands_still_at_a_file_leaves_the_locks_of_others_alone() {
    let kernel = sharing();
    let programs = Arc::clone(kernel.tree.programs());
    kernel.volume.locks().show_on_host();
    let (file, other) = (kernel.create(ROOT, "file"), kernel.create(ROOT, "other"));
    let number = kernel.tree.number_of("file").unwrap();
    set(&kernel, file.0, file.1, 1, 0, 0, EXCLUSIVE).unwrap();
    programs.stand_still(number);
    let ask =
        |opcode, owner, first, last, kind| kernel.message(opcode, file.0, &bytes(file.1, owner, first, last, kind));
    let mut stuck = pin!(waits(&kernel, ask(SETLK, 1, 5, 9, EXCLUSIVE)));
    let stuck_number = kernel.last();
    assert!(poll(stuck.as_mut()).is_pending());
    set(&kernel, other.0, other.1, 2, 0, END, EXCLUSIVE).unwrap();
    set(&kernel, other.0, other.1, 2, 0, END, NONE).unwrap();
    // Others see the lock that the host has yet to allow.
    assert_eq!(set(&kernel, file.0, file.1, 2, 9, 12, SHARED), Err(AGAIN));
    let tested = kernel.call(GETLK, file.0, &bytes(file.1, 2, 9, 12, SHARED)).unwrap();
    assert_eq!((u64_at(&tested, 0), u32_at(&tested, 16)), (5, EXCLUSIVE));
    // A lock of other bytes goes next, and an unlock ends once the host has seen that unlock.
    let mut next = pin!(waits(&kernel, ask(SETLKW, 3, 20, 29, SHARED)));
    let next_number = kernel.last();
    let mut unlocked = pin!(waits(&kernel, ask(SETLK, 1, 0, 0, NONE)));
    assert!(poll(next.as_mut()).is_pending() && poll(unlocked.as_mut()).is_pending());
    programs.go_on(number);
    assert_eq!(answered(stuck.as_mut(), stuck_number), Ok(Vec::new()));
    assert!(poll(unlocked.as_mut()).is_ready());
    assert_eq!(answered(next.as_mut(), next_number), Ok(Vec::new()));
}

#[test]
fn an_interrupted_lock_of_a_host_that_stands_still_is_nobodys() {
    let kernel = sharing();
    let programs = Arc::clone(kernel.tree.programs());
    kernel.volume.locks().show_on_host();
    let file = kernel.create(ROOT, "file");
    let number = kernel.tree.number_of("file").unwrap();
    set(&kernel, file.0, file.1, 1, 0, 0, SHARED).unwrap();
    for opcode in [SETLK, SETLKW] {
        programs.stand_still(number);
        let mut stuck = pin!(waits(&kernel, kernel.message(opcode, file.0, &bytes(file.1, 1, 0, 9, EXCLUSIVE))));
        let stuck_number = kernel.last();
        assert!(poll(stuck.as_mut()).is_pending());
        let interrupting = waits(&kernel, kernel.message(INTERRUPT, 0, &longs(&[stuck_number])));
        assert!(kernel.world.run(interrupting).unwrap().is_none());
        assert_eq!(answered(stuck.as_mut(), stuck_number), Err(4));
        programs.go_on(number);
        // The owner has its earlier lock.
        set(&kernel, file.0, file.1, 2, 0, 9, SHARED).unwrap();
        assert_eq!(set(&kernel, file.0, file.1, 2, 0, 9, EXCLUSIVE), Err(AGAIN));
        set(&kernel, file.0, file.1, 2, 0, 9, NONE).unwrap();
    }
}

#[test]
fn a_program_of_the_host_is_named_waited_for_and_sees_a_close() {
    let kernel = sharing();
    let programs = Arc::clone(kernel.tree.programs());
    kernel.volume.locks().show_on_host();
    let file = kernel.create(ROOT, "file");
    let number = kernel.tree.number_of("file").unwrap();
    let span = Span::between(3, 4).unwrap();
    set(&kernel, file.0, file.1, 1, 0, 9, SHARED).unwrap();
    programs.lock(number, Some((span, LockMode::Shared)));
    assert_eq!(set(&kernel, file.0, file.1, 1, 0, 9, EXCLUSIVE), Err(AGAIN));
    let tested = kernel.call(GETLK, file.0, &bytes(file.1, 1, 0, 9, EXCLUSIVE)).unwrap();
    assert_eq!((u64_at(&tested, 0), u64_at(&tested, 8), u32_at(&tested, 20)), (3, 4, 77));
    let mut waiting = pin!(waits(&kernel, kernel.message(SETLKW, file.0, &bytes(file.1, 1, 0, 9, EXCLUSIVE))));
    assert!(poll(waiting.as_mut()).is_pending());
    programs.lock(number, None);
    assert!(poll(waiting.as_mut()).is_ready());
    assert_eq!(programs.calls(number).last().unwrap().1, Some(LockMode::Exclusive));
    kernel.call(FLUSH, file.0, &longs(&[file.1, 0, 1])).unwrap();
    assert_eq!(programs.calls(number).last(), Some(&(Span::WHOLE, None)));
}

#[test]
fn two_programs_that_would_wait_for_each_other_are_told() {
    let kernel = sharing();
    let (node, fh) = kernel.create(ROOT, "file");
    for owner in [1, 2] {
        kernel.call(SETLK, node, &bytes(fh, owner, 0, 9, SHARED)).unwrap();
    }
    let mut first = pin!(waits(&kernel, kernel.message(SETLKW, node, &bytes(fh, 1, 0, 9, EXCLUSIVE))));
    assert!(poll(first.as_mut()).is_pending());
    assert_eq!(kernel.call(SETLKW, node, &bytes(fh, 2, 0, 9, EXCLUSIVE)), Err(35));
}

#[test]
fn programs_and_others_exclude_each_other_and_a_silent_one_gives_way() {
    let kernel = sharing();
    let (node, fh) = kernel.create(ROOT, "file");
    let file = kernel.world.run(kernel.volume.mount(b"/")).unwrap().unwrap();
    let file = kernel.world.run(kernel.volume.lookup(&file, b"file")).unwrap().unwrap().0.fileid();
    let locks = kernel.volume.locks();
    let other = Arc::new(Elsewhere(false.into()));
    let holder = locks.register(Arc::clone(&other) as _, 9);
    for body in [bytes(fh, 1, 150, 150, EXCLUSIVE), whole(fh, 1, EXCLUSIVE)] {
        kernel.call(SETLK, node, &body).unwrap();
        let refused = locks.lock(file, elsewhere(holder, LockMode::Shared), Nanos(0));
        assert!(matches!(refused, Err(LockRefusal::Held(_))));
        kernel.call(SETLK, node, &[&body[..32], &words(&[NONE]), &body[36..]].concat()).unwrap();
    }
    locks.lock(file, elsewhere(holder, LockMode::Exclusive), Nanos(0)).unwrap();
    let message = kernel.message(SETLKW, node, &whole(fh, 1, SHARED));
    let mut wait = pin!(waits(&kernel, message));
    assert!(poll(wait.as_mut()).is_pending());
    other.0.store(true, std::sync::atomic::Ordering::Relaxed);
    kernel.world.run(kernel.volume.upkeep()).unwrap();
    assert!(poll(wait.as_mut()).is_pending(), "the end of the other is not durable yet");
    locks.release_holder(holder, Nanos(0));
    assert!(poll(wait.as_mut()).is_ready());
}

#[test]
fn an_open_that_others_deny_is_refused_and_programs_are_in_the_way_of_denials() {
    let kernel = sharing();
    let (node, fh) = kernel.create(ROOT, "file");
    let root = kernel.world.run(kernel.volume.mount(b"/")).unwrap().unwrap();
    let file = kernel.world.run(kernel.volume.lookup(&root, b"file")).unwrap().unwrap().0.fileid();
    let locks = kernel.volume.locks();
    let holder = locks.register(Arc::new(Elsewhere(false.into())), 9);
    let denies = Share { access: Share::READ, deny: Share::WRITE };
    assert!(locks.share(file, (holder, 1), denies, Nanos(0)).is_err());
    kernel.call(RELEASE, node, &[longs(&[fh]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
    assert!(locks.share(file, (holder, 1), denies, Nanos(0)).is_ok());
    assert_eq!((kernel.open(node, 1), kernel.open(node, 0).is_ok()), (Err(16), true));
    let open_files = kernel.mount.open_files();
    assert_eq!(open_files, 1, "a refused open leaves nothing");
    // Neither an open nor a change of the size cuts the file off.
    const TRUNC: u32 = 0o1000;
    const SIZE: u32 = 1 << 3;
    let inode = kernel.world.run(kernel.volume.lookup(&root, b"file")).unwrap().unwrap().0;
    kernel.world.run(kernel.volume.write(&inode, 0, Bytes::from_static(b"data"))).unwrap().result.unwrap();
    assert_eq!(kernel.open(node, 1 | TRUNC), Err(16));
    assert_eq!(kernel.open(node, TRUNC), Err(16));
    let set_size = [words(&[SIZE, 0]), longs(&[0, 1]), vec![0; 64]].concat();
    assert_eq!(kernel.call(SETATTR, node, &set_size).map(drop), Err(16));
    assert_eq!(kernel.attributes(node).unwrap().0, 4);
    // Nor does an open that could cut the file off, and is refused for its reading. That of a new name finds a file,
    // too.
    let (node_2, fh) = kernel.create(ROOT, "read by none");
    kernel.write(fh, 0, b"data").unwrap();
    kernel.call(RELEASE, node_2, &[longs(&[fh]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
    let file_2 = kernel.world.run(kernel.volume.lookup(&root, b"read by none")).unwrap().unwrap().0.fileid();
    let denies = Share { access: Share::WRITE, deny: Share::READ };
    assert!(locks.share(file_2, (holder, 2), denies, Nanos(0)).is_ok());
    assert_eq!(kernel.open(node_2, 2 | TRUNC), Err(16));
    let create = [words(&[2 | TRUNC | 0o100, 0o100_644, 0, 0]), name("read by none")].concat();
    assert_eq!(kernel.call(35, ROOT, &create).map(drop), Err(16));
    assert_eq!(kernel.attributes(node_2).unwrap().0, 4);
    kernel.open(node_2, 1 | TRUNC).unwrap();
    assert_eq!((kernel.attributes(node_2).unwrap().0, kernel.mount.open_files()), (0, 2));
    locks.end_share(file_2, (holder, 2));
    locks.end_share(file, (holder, 1));
    kernel.call(SETATTR, node, &set_size).unwrap();
    assert_eq!(kernel.attributes(node).unwrap().0, 1);
}

// rule: programs on a mount get no lock, and no use that a client may have denied, before the clients of an earlier
// server have reclaimed what they had
#[test]
fn programs_wait_for_clients_that_may_reclaim_their_locks() {
    let kernel = sharing();
    let (node, fh) = kernel.create(ROOT, "file");
    let locks = kernel.volume.locks();
    locks.begin_grace(true);
    assert_eq!(kernel.call(SETLK, node, &bytes(fh, 1, 0, 9, EXCLUSIVE)), Err(AGAIN));
    assert_eq!(kernel.call(SETLK, node, &whole(fh, 1, EXCLUSIVE)), Err(AGAIN));
    assert_eq!(kernel.open(node, 1), Err(16));
    let mut wait = pin!(waits(&kernel, kernel.message(SETLKW, node, &bytes(fh, 2, 0, 9, EXCLUSIVE))));
    assert!(poll(wait.as_mut()).is_pending());
    locks.end_grace(kernel.world.platform().now());
    assert!(poll(wait.as_mut()).is_ready());
    assert_eq!(kernel.call(SETLK, node, &bytes(fh, 1, 0, 9, EXCLUSIVE)), Err(AGAIN), "it is the waiter's");
    assert!(kernel.open(node, 1).is_ok());
}
