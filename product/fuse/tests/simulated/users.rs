//! Users that share a mount.
//!
//! rule: one user's open files leave room for those of all others, and root has no bound of its own
//! kept in: `product/fuse/src/open_files.rs`, `product/fuse/src/answering.rs`

use afflux_fuse::MountOptions;

use crate::kernel::{Kernel, ROOT, content, longs, name, of_user, u64_at, words};

const TOO_MANY_FILES: i32 = 23;
const NOT_THERE: i32 = 2;
/// A file may take four descriptors: there is room for 32 files.
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
    assert_eq!(first.len(), 16);
    assert_eq!(open_by(&kernel, 1), Err(TOO_MANY_FILES));
    assert_eq!(open_all(&kernel, 2).len(), 8);
    assert_eq!(open_all(&kernel, 3).len(), 4);
    // It has five, and fifteen are left.
    for fh in &first[..11] {
        close(&kernel, *fh);
    }
    assert_eq!(open_all(&kernel, 1).len(), 5);
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
