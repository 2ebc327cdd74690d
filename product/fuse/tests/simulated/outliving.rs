//! A mount over the memory of a killed server.
//!
//! rule: after a kill the successor's nodes, open files and counts of lookups are those that the kernel knows
//! kept in: `product/fuse/src/mount_state.rs`, `product/fuse/src/nodes.rs`, `product/fuse/src/mount.rs`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frontend::{MessageMachine, words_checksum};
use afflux_fuse::{MountOptions, MountState, MountStateError, PERSISTED_WORDS_MIN, PersistedWords};

use crate::kernel::{Kernel, RESENT, ROOT, content, longs, name, of_user, u64_at, words};

const INIT: u32 = 26;
const EXISTS: i32 = 17;
const NOT_THERE: i32 = 2;
const STALE: i32 = 116;
const LOST: i32 = 5;

/// A kernel whose mount has memory for a successor.
pub(crate) fn begun() -> (Kernel, PersistedWords) {
    let memory: PersistedWords = Arc::new((0..PERSISTED_WORDS_MIN).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
    let kernel = Kernel::keeping(MountOptions::default(), MountState::fresh(Arc::clone(&memory)).unwrap());
    let offered = words(&[7, 45, 131_072, u32::MAX, u32::MAX]);
    kernel.call(INIT, 0, &[offered, vec![0; 44]].concat()).unwrap();
    assert!(kernel.mount.can_outlive());
    (kernel, memory)
}

/// The same words in memory of their own.
fn copied(memory: &PersistedWords) -> PersistedWords {
    let words = (**memory).as_ref().iter().map(|word| AtomicU64::new(word.load(Ordering::Relaxed)));
    Arc::new(words.collect::<Vec<_>>())
}

/// The server is killed without an answer, and another one goes on.
fn kill(kernel: &mut Kernel, memory: &PersistedWords) {
    kernel.resume(MountState::inherited(Arc::clone(memory)).unwrap()).unwrap();
    let resumption = kernel.mount.resumption().unwrap();
    assert_eq!(resumption.head()[..16], [words(&[16, 7]), longs(&[0])].concat()[..]);
}

/// The success of a change is not noted yet.
fn unnote(memory: &PersistedWords, unique: u64) {
    /// The check of the answer stands so many words behind the request's number.
    const ANSWERED: usize = 5;
    let words = (**memory).as_ref();
    let value = |at: usize| words[at].load(Ordering::Relaxed);
    // A grant has the number of a node or a file behind the request's.
    let is_change = |at: &usize| value(*at) == unique && value(at + 1) == 0 && value(at + 2) == 0;
    let change = (0..words.len() - ANSWERED).find(is_change).unwrap();
    assert_ne!(value(change + ANSWERED), 0);
    words[change + ANSWERED].store(0, Ordering::Relaxed);
}

fn is_directory(kernel: &Kernel, of: &str) -> bool {
    let found = kernel.look_up(ROOT, of).unwrap();
    forget(kernel, found.node, 1);
    found.mode & 0o170_000 == 0o040_000
}

fn forget(kernel: &Kernel, node: u64, lookups: u64) {
    assert!(kernel.send(kernel.message(2, node, &longs(&[lookups]))).is_none());
}

/// Sends a message again, as the kernel does if nobody has answered it.
pub(crate) fn again(kernel: &Kernel, mut message: Vec<u8>) -> Result<Vec<u8>, i32> {
    let unique = u64_at(&message, 8) | RESENT;
    message[8..16].copy_from_slice(&unique.to_ne_bytes());
    content(kernel.send(message).unwrap(), unique)
}

#[test]
fn numbers_mean_the_same_after_a_kill() {
    let (mut kernel, memory) = begun();
    let sub = kernel.make_directory(ROOT, "sub").node;
    let (file, fh) = kernel.create(sub, "file");
    let (gone, _) = kernel.create(sub, "gone");
    kernel.look_up(sub, "file").unwrap();
    kernel.write(fh, 0, b"bytes").unwrap();
    forget(&kernel, gone, 1);
    for _ in 0..3 {
        kill(&mut kernel, &memory);
        assert_eq!((kernel.mount.nodes(), kernel.mount.open_files()), (3, 3 - 1));
        assert_eq!(kernel.read(fh, 0, 100).unwrap(), b"bytes");
        assert!(kernel.attributes(file).is_ok() && kernel.attributes(sub).is_ok());
        assert_eq!(kernel.attributes(gone), Err(STALE));
        assert_eq!(kernel.look_up(ROOT, "sub").unwrap().node, sub, "an object has one node");
        forget(&kernel, sub, 1);
    }
    forget(&kernel, file, 1);
    kill(&mut kernel, &memory);
    assert!(kernel.attributes(file).is_ok(), "one lookup is left");
    forget(&kernel, file, 1);
    kill(&mut kernel, &memory);
    assert_eq!(kernel.attributes(file), Err(STALE));
    let new = kernel.look_up(sub, "file").unwrap().node;
    assert!(new != file && new != gone, "a number is not given to another node");
    kernel.sync(fh).unwrap();
}

#[test]
fn what_was_agreed_stays_agreed() {
    let (mut kernel, memory) = begun();
    kill(&mut kernel, &memory);
    assert!(kernel.mount.can_outlive());
    // SETXATTR with the fields of SETXATTR_EXT: size, flags, further flags, padding.
    let body = [words(&[1, 0, 0, 0]), name("user.a"), b"v".to_vec()].concat();
    kernel.call(21, ROOT, &body).unwrap();
    let (old, old_memory) = begun();
    old.call(INIT, 0, &words(&[7, 31, 0, 1 << 3])).unwrap();
    assert!(!old.mount.can_outlive(), "an older kernel does not send requests again");
    drop(old_memory);
}

// rule: a request that the kernel sends again after a kill is carried out once kept in:
// `product/frontend/src/journal.rs`, `product/fuse/src/mount_state.rs`, `product/volume/src/names/repeated.rs`
#[test]
fn a_repeated_change_of_names_is_done_once() {
    let (mut kernel, memory) = begun();
    let (file, fh) = kernel.create(ROOT, "file");
    let make = [words(&[0o755, 0]), name("directory")].concat();
    let excl = [words(&[0o302, 0o100_444, 0, 0]), name("created")].concat();
    let link = [longs(&[file]), name("linked")].concat();
    let exchange = [longs(&[ROOT]), words(&[2, 0]), name("linked"), name("directory")].concat();
    let changes: [(u32, Vec<u8>); 9] = [
        (9, make),
        (35, excl),
        (6, [name("symlink"), name("target")].concat()),
        (13, link),
        (45, exchange),
        (45, [longs(&[ROOT]), words(&[0, 0]), name("created"), name("renamed")].concat()),
        (10, name("symlink")),
        (11, name("linked")),
        (12, [longs(&[ROOT]), name("renamed"), name("last")].concat()),
    ];
    for (opcode, body) in changes {
        let message = kernel.message(opcode, ROOT, &body);
        let first = content(kernel.send(message.clone()).unwrap(), kernel.last()).unwrap();
        let (nodes, open) = (kernel.mount.nodes(), kernel.mount.open_files());
        // The answers reached nobody. The second server was killed before it noted the success.
        for is_noted in [true, false, true] {
            if !is_noted {
                unnote(&memory, u64_at(&message, 8));
            }
            kill(&mut kernel, &memory);
            let second = again(&kernel, message.clone()).unwrap_or_else(|errno| panic!("{opcode}: {errno}"));
            assert_eq!(second.len(), first.len(), "{opcode}");
            assert_eq!((kernel.mount.nodes(), kernel.mount.open_files()), (nodes, open), "{opcode}");
            let is_exchange = opcode == 45 && body[8] != 0;
            assert!(!is_exchange || kernel.attributes(file).is_ok() && is_directory(&kernel, "linked"));
        }
        // Without an earlier server it is a change of its own.
        let fresh = kernel.call(opcode, ROOT, &body).map(drop);
        if opcode != 45 || body[8] == 0 {
            assert!(matches!(fresh, Err(EXISTS | NOT_THERE)), "{opcode}: {fresh:?}");
        } else {
            kernel.call(opcode, ROOT, &body).unwrap();
        }
    }
    let mut names: Vec<String> = kernel.list(ROOT, 4096, false).into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(names, [".", "..", "directory", "file", "last"]);
    kernel.write(fh, 0, b"still").unwrap();
}

/// Nothing of a change is noted but its beginning.
fn forget_all(memory: &PersistedWords, unique: u64) {
    unnote(memory, unique);
    let words = (**memory).as_ref();
    let value = |at: usize| words[at].load(Ordering::Relaxed);
    let key = (0..words.len()).find(|at| value(*at) == unique && value(*at + 1) == 0 && value(*at + 2) == 0).unwrap();
    words[key + 4].store(0, Ordering::Relaxed);
    words[key - 1].store(words_checksum((key..key + 5).map(value)), Ordering::Relaxed);
}

// rule: a change of another program is no success of a request that a kill cut off
// kept in: `product/volume/src/names/repeated.rs`, `product/fuse/src/mount_state.rs`
#[test]
fn a_change_of_another_program_is_no_success_of_a_request_that_a_kill_cut_off() {
    let (mut kernel, memory) = begun();
    let (file, _) = kernel.create(ROOT, "file");
    kernel.make_directory(ROOT, "other");
    let exclusive = [words(&[0o302, 0o100_444, 0, 0]), name("created")].concat();
    let changes: [(u32, Vec<u8>, i32); 6] = [
        (9, [words(&[0o755, 0]), name("directory")].concat(), EXISTS),
        (35, exclusive, EXISTS),
        (6, [name("symlink"), name("target")].concat(), EXISTS),
        (13, [longs(&[file]), name("linked")].concat(), EXISTS),
        (10, name("symlink"), NOT_THERE),
        (12, [longs(&[ROOT]), name("created"), name("renamed")].concat(), NOT_THERE),
    ];
    for (opcode, body, refusal) in changes {
        // The first one stands for another program's: the host has done it, and this request's own try is not noted.
        let message = kernel.message(opcode, ROOT, &body);
        content(kernel.send(message.clone()).unwrap(), kernel.last()).unwrap();
        forget_all(&memory, u64_at(&message, 8));
        kill(&mut kernel, &memory);
        assert_eq!(again(&kernel, message.clone()), Err(refusal), "{opcode}");
        // The refusal is noted, and stays when the name is free or there again.
        kill(&mut kernel, &memory);
        assert_eq!(again(&kernel, message), Err(refusal), "{opcode}");
    }
    let exchange = [longs(&[ROOT]), words(&[2, 0]), name("file"), name("other")].concat();
    let message = kernel.message(45, ROOT, &exchange);
    content(kernel.send(message.clone()).unwrap(), kernel.last()).unwrap();
    assert!(is_directory(&kernel, "file"));
    unnote(&memory, u64_at(&message, 8));
    kill(&mut kernel, &memory);
    again(&kernel, message).unwrap();
    assert!(is_directory(&kernel, "file"), "the names are not swapped back");
}

// rule: a client that calls often evicts no other client's cached reply, before a kill or after it
// kept in: `product/frontend/src/journal.rs`, `product/fuse/src/mount_state.rs`
#[test]
fn a_busy_user_of_a_mount_takes_no_change_of_another_over_a_kill() {
    const CHANGES: usize = 1024;
    let (mut kernel, memory) = begun();
    let shared = kernel.entry(9, ROOT, &[words(&[0o777, 0]), name("shared")].concat()).unwrap().node;
    let make = [words(&[0o755, 0]), name("made")].concat();
    let message = of_user(7, kernel.message(9, shared, &make));
    content(kernel.send(message.clone()).unwrap(), kernel.last()).unwrap();
    let (file, fh) = kernel.create(ROOT, "file");
    let append = [longs(&[fh, 0]), words(&[1, 0, 0, 0, 0o2000, 0]), b"x".to_vec()].concat();
    for kills in 1..3 {
        for _ in 0..CHANGES / 2 + 100 {
            kernel.call(16, 0, &append).unwrap();
            kernel.call(45, ROOT, &[longs(&[ROOT]), words(&[2, 0]), name("file"), name("shared")].concat()).unwrap();
        }
        assert_eq!(kernel.attributes(file).unwrap().0, (kills * (CHANGES / 2 + 100)) as u64);
        kill(&mut kernel, &memory);
    }
    again(&kernel, message).unwrap();
}

#[test]
fn a_repeated_append_writes_the_same_place() {
    let (mut kernel, memory) = begun();
    let (_, fh) = kernel.create(ROOT, "file");
    let append = [longs(&[fh, 0]), words(&[4, 0, 0, 0, 0o2000, 0]), b"line".to_vec()].concat();
    for round in 1..4 {
        let message = kernel.message(16, 0, &append);
        content(kernel.send(message.clone()).unwrap(), kernel.last()).unwrap();
        kill(&mut kernel, &memory);
        again(&kernel, message).unwrap();
        assert_eq!(kernel.read(fh, 0, 100).unwrap(), b"line".repeat(round));
    }
}

#[test]
fn a_lookup_whose_answer_was_lost_is_counted_once() {
    let (mut kernel, memory) = begun();
    let (file, _) = kernel.create(ROOT, "file");
    let message = kernel.message(1, ROOT, &name("file"));
    kernel.send(message.clone()).unwrap();
    let open = kernel.message(14, file, &words(&[0, 0]));
    kernel.send(open.clone()).unwrap();
    kill(&mut kernel, &memory);
    again(&kernel, message).unwrap();
    again(&kernel, open).unwrap();
    assert_eq!(kernel.mount.open_files(), 2);
    forget(&kernel, file, 1);
    assert!(kernel.attributes(file).is_ok());
    forget(&kernel, file, 1);
    assert_eq!(kernel.attributes(file), Err(STALE));
}

// rule: after a loss of accepted bytes the next sync of each file that was open at the kill fails once, and the program
// sees it kept in: `product/fuse/src/mount.rs`, `product/fuse/src/mount_state.rs`
#[test]
fn a_loss_fails_the_next_sync_of_each_open_file_once() {
    let (mut kernel, memory) = begun();
    let (file, first) = kernel.create(ROOT, "file");
    let (second, third) = (kernel.open(file, 2).unwrap(), kernel.open(file, 2).unwrap());
    kernel.write(first, 0, b"bytes").unwrap();
    kill(&mut kernel, &memory);
    kernel.sync(first).unwrap();
    // As the engine does if the memory was damaged.
    kernel.volume.keep_write_verifier([9; 8]);
    kill(&mut kernel, &memory);
    assert_eq!(kernel.flush(second), Err(LOST));
    assert_eq!(kernel.sync(first), Err(LOST));
    kernel.sync(first).unwrap();
    let later = kernel.open(file, 2).unwrap();
    kernel.sync(later).unwrap();
    // The error of the second file reached nobody.
    let message = kernel.message(20, 0, &[longs(&[second]), words(&[0, 0])].concat());
    assert_eq!(content(kernel.send(message.clone()).unwrap(), kernel.last()), Err(LOST));
    kill(&mut kernel, &memory);
    assert_eq!(again(&kernel, message), Err(LOST));
    kernel.sync(first).unwrap();
    kernel.sync(second).unwrap();
    kernel.sync(later).unwrap();
    assert_eq!(kernel.sync(third), Err(LOST), "a further kill does not take it away");
    kernel.sync(third).unwrap();
}

#[test]
fn memory_of_another_directory_is_refused() {
    let (mut kernel, memory) = begun();
    kernel.make_directory(ROOT, "sub");
    let error = kernel.resume_at("sub", MountState::inherited(Arc::clone(&memory)).unwrap()).err();
    assert_eq!(error, Some(MountStateError::OtherRoot));
    kill(&mut kernel, &memory);
}

/// Damages are found, or change nothing that the kernel knows.
#[test]
fn damaged_memory_is_refused_or_harmless() {
    let (mut kernel, memory) = begun();
    let (file, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, b"bytes").unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    // The words in use, and any words.
    let words = (*memory).as_ref();
    let used: Vec<usize> = (0..words.len()).filter(|at| words[*at].load(Ordering::Relaxed) != 0).collect();
    let any = (0..20).map(|_| next() as usize % words.len()).collect::<Vec<_>>();
    let damaged = copied(&memory);
    let mut refused = 0;
    for at in used.into_iter().chain(any) {
        let word = &(*damaged).as_ref()[at];
        let before = word.load(Ordering::Relaxed);
        for value in [next(), before ^ 1 << (next() % 64), 0] {
            word.store(value, Ordering::Relaxed);
            let Ok(kept) = MountState::inherited(Arc::clone(&damaged)) else {
                refused += 1;
                continue;
            };
            kernel.resume(kept).unwrap();
            assert_eq!(kernel.read(fh, 0, 100).as_deref(), Ok(&b"bytes"[..]), "word {at}");
            assert_eq!(kernel.attributes(file).unwrap().0, 5, "word {at}");
        }
        word.store(before, Ordering::Relaxed);
    }
    assert!(refused > 20, "{refused}");
    for _ in 0..3 {
        let noise: Vec<AtomicU64> = (0..PERSISTED_WORDS_MIN).map(|_| AtomicU64::new(next())).collect();
        assert!(MountState::inherited(Arc::new(noise)).is_err());
    }
}
