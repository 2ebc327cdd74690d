use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

fn acting_as(uid: u32, gid: u32, groups: &[u32]) -> Acting {
    let user = Credentials { uid, gid, groups: groups.into() };
    Acting { user: Some(Arc::new(user)) }
}

/// User, group and further groups of this thread for the file system.
fn identity() -> (u32, u32, Vec<u32>) {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let numbers = |row: &str| -> Vec<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(row)).unwrap();
        line.split_whitespace().map(|number| number.parse().unwrap()).collect()
    };
    (numbers("Uid:")[3], numbers("Gid:")[3], numbers("Groups:"))
}

fn effective_capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

fn is_root() -> bool {
    let root = geteuid().is_root();
    if !root {
        afflux_scratch::skipped!("only root can act as others");
    }
    root
}

/// The capabilities about files: chown, dac_override, dac_read_search, fowner, fsetid.
const ABOUT_FILES: u64 = 0b11111;

#[test]
fn a_call_is_made_as_the_user_and_the_thread_is_itself_again() {
    if !is_root() {
        return;
    }
    let (before, capabilities) = (identity(), effective_capabilities());
    let acting = acting_as(4321, 1234, &[7, 77]);
    let (during, left) = acting.call(|| Ok((identity(), effective_capabilities()))).unwrap();
    assert_eq!(during, (4321, 1234, vec![7, 77]));
    assert_eq!(left & ABOUT_FILES, 0, "{left:x}");
    assert_eq!((identity(), effective_capabilities()), (before.clone(), capabilities));
    let error: Result<(), _> = acting.call(|| Err(VolumeError::NotFound));
    assert_eq!((error, identity()), (Err(VolumeError::NotFound), before));
}

#[test]
fn a_panic_leaves_the_thread_itself() {
    if !is_root() {
        return;
    }
    let (before, capabilities) = (identity(), effective_capabilities());
    let acting = acting_as(4321, 1234, &[7]);
    let panicked = catch_unwind(AssertUnwindSafe(|| acting.call(|| -> Result<(), _> { panic!("in the middle") })));
    assert!(panicked.is_err());
    assert_eq!((identity(), effective_capabilities()), (before, capabilities));
}

#[test]
fn what_the_kernel_does_not_take_is_not_called() {
    // No user has this number; without root's rights any other number is refused, too.
    let nobodys = if geteuid().is_root() { ASK } else { geteuid().as_raw() + 1 };
    let before = identity();
    let acting = acting_as(nobodys, 0, &[]);
    let mut called = false;
    let refused = acting.call(|| {
        called = true;
        Ok(())
    });
    assert_eq!((refused, called), (Err(VolumeError::Denied), false));
    assert_eq!(identity(), before);
}

#[test]
fn other_threads_keep_their_identity() {
    if !is_root() {
        return;
    }
    let before = identity();
    let (told, asked) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        asked.recv().unwrap();
        identity()
    });
    let others = acting_as(4321, 1234, &[7]).call(|| {
        told.send(()).unwrap();
        Ok(other.join().unwrap())
    });
    assert_eq!(others.unwrap(), before);
}
