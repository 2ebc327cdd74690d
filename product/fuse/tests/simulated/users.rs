//! Users that share a mount.
//!
//! rule: one user's open files leave quota for those of all others, and root has no bound of its own
//! kept in: `product/fuse/src/open_files.rs`, `product/fuse/src/answering.rs`

//! rule: messages that wait take bounded memory, and one user's leave memory for those of others
//! kept in: `product/frontend/src/quota/mod.rs`, `product/fuse/src/answering.rs`

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afflux_frontend::{Answering, MessageMachine, MessageReply, Tried};
use afflux_fuse::{MESSAGE_BYTES_MAX, MountOptions};
use afflux_simulator::{DiskOptions, Memory, Setup};

use crate::kernel::{Kernel, ROOT, content, longs, name, of_user, u64_at, words};

const INTERRUPTED: i32 = 4;
const TOO_MANY_FILES: i32 = 23;
const NOT_THERE: i32 = 2;
/// Two are for objects that are not open, and a file may take two: there is room for 63 files.
const DESCRIPTORS: usize = 128;

/// A mount for all users.
fn for_all() -> Kernel {
    Kernel::with_few_descriptors(DESCRIPTORS, MountOptions { acts_as_callers: true, ..MountOptions::default() })
}

/// OPENDIR of the root.
fn open_by(kernel: &Kernel, user: u32) -> Result<u64, i32> {
    let reply = kernel.send(of_user(user, kernel.message(27, ROOT, &words(&[0, 0])))).unwrap();
    content(reply, kernel.last()).map(|answer| u64_at(&answer, 0))
}

/// CREATE of a file in the root.
fn create_by(kernel: &Kernel, user: u32, of: &str) -> Result<Vec<u8>, i32> {
    let body = [words(&[0o102, 0o100_644, 0, 0]), name(of)].concat();
    let reply = kernel.send(of_user(user, kernel.message(35, ROOT, &body))).unwrap();
    content(reply, kernel.last())
}

fn close(kernel: &Kernel, fh: u64) {
    kernel.call(29, ROOT, &[longs(&[fh]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
}

/// Opens until the mount refuses.
fn open_all(kernel: &Kernel, user: u32) -> Vec<u64> {
    std::iter::from_fn(|| open_by(kernel, user).ok()).collect()
}

#[test]
fn each_user_gets_half_of_what_the_others_leave() {
    let kernel = for_all();
    let first = open_all(&kernel, 1);
    assert_eq!(first.len(), 32);
    assert_eq!(open_by(&kernel, 1), Err(TOO_MANY_FILES));
    assert_eq!(open_all(&kernel, 2).len(), 16);
    assert_eq!(open_all(&kernel, 3).len(), 8);
    // It has ten, and 29 are left.
    for fh in &first[..22] {
        close(&kernel, *fh);
    }
    assert_eq!(open_all(&kernel, 1).len(), 10);
}

#[test]
fn a_creation_that_may_not_open_makes_no_file() {
    let kernel = for_all();
    open_all(&kernel, 1);
    assert_eq!(create_by(&kernel, 1, "file"), Err(TOO_MANY_FILES));
    assert_eq!(kernel.look_up(ROOT, "file").err(), Some(NOT_THERE));
    create_by(&kernel, 2, "file").unwrap();
}

#[test]
fn root_and_the_one_user_of_a_mount_have_no_bound() {
    let shared = for_all();
    let own = Kernel::with_few_descriptors(DESCRIPTORS, MountOptions::default());
    for _ in 0..DESCRIPTORS {
        open_by(&shared, 0).unwrap();
        open_by(&own, 1).unwrap();
    }
    assert_eq!(open_by(&shared, 1), Err(TOO_MANY_FILES));
}

/// A mount for all users over a disk so slow that no write of a test ends.
fn on_a_disk_that_hangs() -> Kernel {
    let disk = DiskOptions { bytes_per_second: 1, ..DiskOptions::default() };
    let options = MountOptions { acts_as_callers: true, ..MountOptions::default() };
    Kernel::of(options, disk, Memory::Whole(4 << 20), Setup::default())
}

/// Data above the length of messages that are copied.
const CHUNK: usize = 200 << 10;

/// Writes of one file.
struct Writes<'a> {
    kernel: &'a Kernel,
    fh: u64,
    /// Where the next one begins.
    offset: u64,
}

impl Writes<'_> {
    /// The next WRITE of a user that waits, polled once.
    fn next(&mut self, user: u32, flags: u32) -> Answering {
        loop {
            let head = [longs(&[self.fh, self.offset]), words(&[CHUNK as u32, flags, 0, 0, 0, 0])].concat();
            let message = of_user(user, self.kernel.message(16, 0, &[&head[..], &[1; CHUNK]].concat()));
            self.offset += CHUNK as u64;
            if let Tried::Waits = self.kernel.mount.try_answer(&message) {
                let mut answering = Arc::clone(&self.kernel.mount).answer(Box::new(message));
                if poll(&mut answering).is_pending() {
                    return answering;
                }
            }
        }
    }

    /// WRITEs of a user, until one waits without its message. That is the last one.
    fn until_put_off(&mut self, user: u32) -> Vec<Answering> {
        let mut writes = Vec::new();
        loop {
            let before = self.kernel.mount.waiting_bytes();
            writes.push(self.next(user, 0));
            if self.kernel.mount.waiting_bytes() == before {
                return writes;
            }
        }
    }
}

fn poll(answering: &mut Answering) -> Poll<Option<MessageReply>> {
    answering.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// The error of a call that has ended.
fn error(answering: &mut Answering) -> i32 {
    let Poll::Ready(Some(reply)) = poll(answering) else { panic!("the call waits") };
    -i32::from_ne_bytes(*reply.head()[4..].first_chunk().unwrap())
}

/// Messages that one user may have waiting.
const HALF: usize = (128 << 20) / MESSAGE_BYTES_MAX + 1;

#[test]
fn writes_that_wait_take_bounded_memory_and_leave_some_to_others() {
    let kernel = on_a_disk_that_hangs();
    let fh = kernel.create(ROOT, "file").1;
    let mut writes = Writes { kernel: &kernel, fh, offset: 0 };
    let first = writes.until_put_off(1);
    assert_eq!((first.len() - 1, kernel.mount.waiting_bytes()), (HALF, HALF * MESSAGE_BYTES_MAX));
    // Another user has half of the rest, and root the rest.
    let second = writes.until_put_off(2);
    assert_eq!(second.len() - 1, HALF / 2);
    let roots = writes.until_put_off(0);
    assert_eq!(first.len() + second.len() + roots.len() - 3, 2 * HALF);
    // Pages of mappings would be lost.
    let bytes = kernel.mount.waiting_bytes();
    let kernels = writes.next(1, 1);
    assert_eq!(kernel.mount.waiting_bytes(), bytes);
    drop((first, second, roots, kernels));
    assert_eq!(kernel.mount.waiting_bytes(), 0);
}

#[test]
fn a_write_without_its_message_is_tried_again_after_the_end_of_another() {
    let kernel = on_a_disk_that_hangs();
    let fh = kernel.create(ROOT, "file").1;
    let mut writes = Writes { kernel: &kernel, fh, offset: 0 };
    let mut held = writes.until_put_off(1);
    let mut put_off = held.split_off(HALF);
    put_off.extend((0..3).map(|_| writes.next(1, 0)));
    assert_eq!((held.len(), put_off.len()), (HALF, 4));
    drop(held.pop());
    assert_eq!(error(&mut put_off[0]), INTERRUPTED);
    assert!(poll(&mut put_off[1]).is_pending());
    // One whose program was killed passes its turn on, and the last message's end leaves nobody without a turn.
    drop(put_off.remove(1));
    drop(held.pop());
    assert_eq!(error(&mut put_off[1]), INTERRUPTED);
    drop(held);
    assert_eq!((error(&mut put_off[2]), kernel.mount.waiting_bytes()), (INTERRUPTED, 0));
}
