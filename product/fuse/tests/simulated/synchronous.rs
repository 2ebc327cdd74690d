//! What flags of the kernel promise: a change that a program asked to be synchronous is durable before its answer.
//!
//! rule: a synchronous change of a mount is durable before its answer, whichever flag or request asks for it
//! kept in: `product/fuse/src/operations/synchronous.rs`, `product/fuse/src/request.rs`

use std::sync::Arc;

use afflux_frontend::MessageMachine;
use afflux_fuse::{MountState, SyncedChanges};

use crate::kernel::{Kernel, RESENT, ROOT, content, longs, name, u64_at, words};
use crate::outliving::{again, begun};

const APPEND: u32 = 0o2000;
const TRUNC: u32 = 0o1000;
const DSYNC: u32 = 0o10_000;
const SYNC: u32 = 0o4_010_000;
const READ_WRITE: u32 = 2;
/// A WRITE of mapped pages.
const OF_PAGES: u32 = 1;

const SETATTR: u32 = 4;
const OPEN: u32 = 14;
const WRITE: u32 = 16;
const SETXATTR: u32 = 21;
const REMOVEXATTR: u32 = 24;
const CREATE: u32 = 35;
const FALLOCATE: u32 = 43;
const RENAME2: u32 = 45;
const COPY_FILE_RANGE: u32 = 47;

/// A file of 9,000 durable bytes, another one of 5,000 bytes of which none is durable, and an open file of each.
struct Files {
    kernel: Kernel,
    node: u64,
    fh: u64,
    source: (u64, u64),
}

/// The bytes of the file before.
fn old() -> Vec<u8> {
    vec![b'o'; 9000]
}

impl Files {
    fn with(open: u32, synced: SyncedChanges) -> Self {
        let kernel = Kernel::new();
        let (node, first) = kernel.create(ROOT, "file");
        kernel.write(first, 0, &old()).unwrap();
        kernel.sync(first).unwrap();
        let source = kernel.create(ROOT, "source");
        kernel.write(source.1, 0, &[b's'; 5000]).unwrap();
        sync_root(&kernel);
        kernel.remount(synced);
        let fh = kernel.open(node, READ_WRITE | open).unwrap();
        Self { kernel, node, fh, source }
    }

    fn durable(&self) -> Vec<u8> {
        self.kernel.disk.durable(self.kernel.tree.file_at(&["file"]).unwrap())
    }
}

fn sync_root(kernel: &Kernel) {
    let fh = u64_at(&kernel.call(27, ROOT, &words(&[0, 0])).unwrap(), 0);
    kernel.call(30, ROOT, &[longs(&[fh]), words(&[0, 0])].concat()).unwrap();
}

fn write_of(fh: u64, offset: u64, data: &[u8], kind: u32, flags: u32) -> Vec<u8> {
    let head = [longs(&[fh, offset]), words(&[data.len() as u32, kind, 0, 0, flags, 0])].concat();
    [&head, data].concat()
}

fn set_size(size: u64, fh: Option<u64>) -> Vec<u8> {
    let mut body = vec![0; 88];
    body[..4].copy_from_slice(&(1_u32 << 3 | if fh.is_some() { 1 << 6 } else { 0 }).to_ne_bytes());
    body[8..16].copy_from_slice(&fh.unwrap_or_default().to_ne_bytes());
    body[16..24].copy_from_slice(&size.to_ne_bytes());
    body
}

/// A change of the file's bytes: its request, and the bytes after it.
struct Change {
    name: &'static str,
    request: fn(&Files, u32) -> (u32, Vec<u8>),
    after: fn() -> Vec<u8>,
    /// The request has the flags of the open file.
    has_flags: bool,
}

fn changed(at: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = old();
    bytes.resize(bytes.len().max(at + with.len()), 0);
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

const CHANGES: &[Change] = &[
    Change {
        name: "WRITE",
        request: |on, flags| (WRITE, write_of(on.fh, 100, b"new", 0, flags)),
        after: || changed(100, b"new"),
        has_flags: true,
    },
    Change {
        name: "WRITE, append",
        request: |on, flags| (WRITE, write_of(on.fh, 0, b"new", 0, flags | APPEND)),
        after: || changed(9000, b"new"),
        has_flags: true,
    },
    Change {
        name: "COPY_FILE_RANGE",
        request: |on, _| (COPY_FILE_RANGE, longs(&[on.source.1, 0, on.node, on.fh, 8000, 5000, 0])),
        after: || changed(8000, &[b's'; 5000]),
        has_flags: false,
    },
    Change {
        name: "FALLOCATE, longer",
        request: |on, _| (FALLOCATE, [longs(&[on.fh, 9000, 1000]), words(&[0, 0])].concat()),
        after: || changed(9000, &[0; 1000]),
        has_flags: false,
    },
    Change {
        name: "FALLOCATE, ZERO_RANGE",
        request: |on, _| (FALLOCATE, [longs(&[on.fh, 10, 6000]), words(&[0x10, 0])].concat()),
        after: || changed(10, &[0; 6000]),
        has_flags: false,
    },
    Change {
        name: "FALLOCATE, PUNCH_HOLE",
        request: |on, _| (FALLOCATE, [longs(&[on.fh, 10, 6000]), words(&[3, 0])].concat()),
        after: || changed(10, &[0; 6000]),
        has_flags: false,
    },
    Change {
        name: "SETATTR of the size by the open file",
        request: |on, _| (SETATTR, set_size(5000, Some(on.fh))),
        after: || old()[..5000].to_vec(),
        has_flags: false,
    },
];

#[test]
fn bytes_that_a_synchronous_open_changes_are_durable_before_the_answer() {
    for change in CHANGES {
        for flags in [SYNC, DSYNC] {
            let on = Files::with(flags, SyncedChanges::None);
            let (opcode, body) = (change.request)(&on, flags);
            on.kernel.call(opcode, on.node, &body).unwrap();
            assert!(on.durable() == (change.after)(), "{} by {flags:o}", change.name);
        }
        // A mount with `sync` sends its flag with each WRITE.
        let on = Files::with(0, SyncedChanges::All);
        let (opcode, body) = (change.request)(&on, if change.has_flags { DSYNC } else { 0 });
        on.kernel.call(opcode, on.node, &body).unwrap();
        assert!(on.durable() == (change.after)(), "{} on a synchronous mount", change.name);
    }
}

#[test]
fn what_nobody_asked_to_be_synchronous_costs_no_sync() {
    for change in CHANGES {
        let on = Files::with(0, SyncedChanges::None);
        let syncs = || on.kernel.disk.figures().syncs;
        let before = syncs();
        let (opcode, body) = (change.request)(&on, 0);
        on.kernel.call(opcode, on.node, &body).unwrap();
        assert_eq!(syncs(), before, "{}", change.name);
    }
    // The kernel syncs mapped pages itself.
    let on = Files::with(SYNC, SyncedChanges::None);
    on.kernel.call(WRITE, on.node, &write_of(on.fh, 0, b"mapped", OF_PAGES, SYNC)).unwrap();
    assert!(on.durable() == old());
}

#[test]
fn a_size_that_an_open_or_a_path_sets_is_durable_if_the_open_or_the_mount_is_synchronous() {
    let size = |on: &Files| on.durable().len();
    let on = Files::with(0, SyncedChanges::None);
    on.kernel.call(OPEN, on.node, &words(&[1 | TRUNC | SYNC, 0])).unwrap();
    assert_eq!(size(&on), 0);
    for (opcode, body) in [(SETATTR, set_size(77, None)), (OPEN, words(&[1 | TRUNC, 0]))] {
        let on = Files::with(0, SyncedChanges::All);
        on.kernel.call(opcode, on.node, &body).unwrap();
        assert_eq!(size(&on), if opcode == SETATTR { 77 } else { 0 });
    }
    // A file that the kernel did not know yet.
    let on = Files::with(0, SyncedChanges::None);
    let create = [words(&[1 | TRUNC | SYNC, 0o100_644, 0, 0]), name("file")].concat();
    on.kernel.call(CREATE, ROOT, &create).unwrap();
    assert_eq!(size(&on), 0);
}

/// The bytes of a new file are of no use without its name.
#[test]
fn a_synchronous_write_to_a_new_file_makes_its_name_durable() {
    for flags in [SYNC, DSYNC] {
        let kernel = Kernel::new();
        let (node, fh) = kernel.create(ROOT, "new");
        assert_eq!(kernel.tree.unsynced(), 1, "the directory");
        kernel.set(node, 1, 68, &0o600_u32.to_ne_bytes()).unwrap();
        kernel.call(WRITE, node, &write_of(fh, 0, b"new", 0, flags)).unwrap();
        assert_eq!(kernel.disk.durable(kernel.tree.file_at(&["new"]).unwrap()), b"new");
        // A host's sync of a file makes the name durable, too: that of the directory is left.
        assert_eq!(kernel.tree.unsynced(), 1, "the attributes are durable");
    }
}

/// Each change of names, or of attributes, after which a later one finds what it needs.
fn changes_of_names(file: u64) -> Vec<(u32, Vec<u8>)> {
    let rename = |flags, old, new| [longs(&[ROOT]), words(&[flags, 0]), name(old), name(new)].concat();
    vec![
        (9, [words(&[0o755, 0]), name("directory")].concat()),
        (CREATE, [words(&[0o302, 0o100_644, 0, 0]), name("created")].concat()),
        (8, [words(&[0o010_644, 0, 0, 0]), name("pipe")].concat()),
        (6, [name("symlink"), name("target")].concat()),
        (13, [longs(&[file]), name("linked")].concat()),
        (RENAME2, rename(2, "linked", "directory")),
        (RENAME2, rename(1, "created", "renamed")),
        (12, [longs(&[ROOT]), name("renamed"), name("last")].concat()),
        (10, name("symlink")),
        (11, name("linked")),
    ]
}

#[test]
fn names_are_durable_before_the_answer_on_a_mount_with_dirsync_or_sync() {
    for synced in [SyncedChanges::Names, SyncedChanges::All] {
        let kernel = Kernel::new();
        let (file, _) = kernel.create(ROOT, "file");
        sync_root(&kernel);
        kernel.remount(synced);
        for (opcode, body) in changes_of_names(file) {
            kernel.call(opcode, ROOT, &body).unwrap();
            // A linked file's count of names is an attribute of the file.
            let left = usize::from(opcode == 13);
            assert!(kernel.tree.unsynced() <= left, "{opcode}: {synced:?}");
            kernel
                .call(20, file, &[longs(&[kernel.open(file, READ_WRITE).unwrap()]), words(&[0, 0])].concat())
                .unwrap();
        }
        kernel.remount(SyncedChanges::None);
        kernel.make_directory(ROOT, "later");
        assert_eq!(kernel.tree.unsynced(), 1, "the flag is gone");
    }
}

#[test]
fn attributes_are_durable_before_the_answer_on_a_mount_with_sync_alone() {
    let set_mode = {
        let mut body = vec![0; 88];
        body[..4].copy_from_slice(&1_u32.to_ne_bytes());
        body[68..72].copy_from_slice(&0o600_u32.to_ne_bytes());
        body
    };
    let changes = [
        (SETATTR, set_mode),
        (SETXATTR, [words(&[1, 0]), name("user.a"), b"v".to_vec()].concat()),
        (REMOVEXATTR, name("user.a")),
    ];
    for (synced, left) in [(SyncedChanges::Names, 1), (SyncedChanges::All, 0)] {
        let kernel = Kernel::new();
        let (file, _) = kernel.create(ROOT, "file");
        sync_root(&kernel);
        kernel.remount(synced);
        for (opcode, body) in &changes {
            kernel.call(*opcode, file, body).unwrap();
            assert_eq!(kernel.tree.unsynced(), left, "{opcode}");
        }
    }
}

/// The kernel sends each call again to the server after a killed one. The open's flags are in the memory.
#[test]
fn a_repeated_change_is_as_durable_as_the_first() {
    let (mut kernel, memory) = begun();
    let (node, first) = kernel.create(ROOT, "file");
    kernel.write(first, 0, &old()).unwrap();
    kernel.sync(first).unwrap();
    let fh = kernel.open(node, READ_WRITE | DSYNC).unwrap();
    let punch = kernel.message(FALLOCATE, node, &[longs(&[fh, 10, 6000]), words(&[3, 0])].concat());
    let append = kernel.message(WRITE, node, &write_of(fh, 0, b"line", 0, APPEND | DSYNC));
    let make = kernel.message(9, ROOT, &[words(&[0o755, 0]), name("made")].concat());
    let gone = kernel.message(10, ROOT, &name("gone"));
    kernel.create(ROOT, "gone");
    // The first server has carried out the changes of names when it is killed, and nothing is durable.
    for message in [&make, &gone] {
        content(kernel.send(message.clone()).unwrap(), u64_at(message, 8)).unwrap();
    }
    assert!(kernel.tree.unsynced() > 0);
    kernel.resume(MountState::inherited(Arc::clone(&memory)).unwrap()).unwrap();
    kernel.remount(SyncedChanges::Names);
    again(&kernel, make).unwrap();
    assert_eq!(kernel.tree.unsynced(), 0, "MKDIR");
    again(&kernel, gone).unwrap();
    again(&kernel, punch).unwrap();
    again(&kernel, append).unwrap();
    let durable = kernel.disk.durable(kernel.tree.file_at(&["file"]).unwrap());
    assert!(durable[..] == [changed(10, &[0; 6000]), b"line".to_vec()].concat());
    assert!(kernel.last() & RESENT == 0 && kernel.mount.resumption().is_some());
}

/// Synchronous writers share the flushes of the disk, as programs that call fsync do.
#[test]
fn sixteen_synchronous_writers_share_flushes() {
    const WRITERS: u64 = 16;
    let on = Files::with(DSYNC, SyncedChanges::None);
    let before = on.kernel.disk.figures().syncs;
    let mut answers = Vec::new();
    for writer in 0..WRITERS {
        let body = write_of(on.fh, writer * 512, &[b'w'; 512], 0, DSYNC);
        let message = on.kernel.message(WRITE, on.node, &body);
        answers.push((Arc::clone(&on.kernel.mount).answer(Box::new(message)), on.kernel.last()));
    }
    let replies = on.kernel.world.run(async move {
        let (answers, numbers): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
        futures_util::future::join_all(answers).await.into_iter().zip(numbers).collect::<Vec<_>>()
    });
    for (reply, unique) in replies.unwrap() {
        content(reply.unwrap(), unique).unwrap();
    }
    assert!(on.durable()[..8192].iter().all(|byte| *byte == b'w'));
    let syncs = on.kernel.disk.figures().syncs - before;
    assert!(syncs <= 3, "{syncs} flushes for {WRITERS} writers");
}
