//! Synchronous changes of programs on a mount, and the kill of its server right after them.
//!
//! rule: what a program on a mount has changed synchronously is there after a kill of the server
//! kept in: `product/fuse/src/operations/synchronous.rs`, `product/linux-server/src/fuse/mounting.rs`

use std::fs::{self, File, OpenOptions};
use std::io::{IoSlice, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

use rustix::fs::{FallocateFlags, OFlags, copy_file_range, fallocate};
use rustix::io::{ReadWriteFlags, pwritev2};

use crate::mounted::{Mounted, apart, can_mount};
use crate::scratch::{Bytes, Scratch};
use crate::server::{LAZY, Server, text};

const DSYNC: OFlags = OFlags::DSYNC;
const SYNC: OFlags = OFlags::SYNC;

fn opened(path: &Path, flags: OFlags) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.custom_flags(flags.bits().cast_signed()).open(path).unwrap()
}

fn old() -> Vec<u8> {
    Bytes::new(7).vec(5000)
}

fn new() -> Vec<u8> {
    Bytes::new(8).vec(8192)
}

/// Opens the file and makes the change. A close may write, so the file stays open.
fn changed(path: &Path, flags: OFlags, change: impl FnOnce(&mut File)) -> File {
    let mut file = opened(path, flags);
    change(&mut file);
    file
}

fn written(path: &Path, flags: OFlags) -> File {
    changed(path, flags, |file| file.write_all(&new()).unwrap())
}

fn by_flags(path: &Path, flags: ReadWriteFlags) -> File {
    let write = |file: &mut File| assert_eq!(pwritev2(file, &[IoSlice::new(&new())], 0, flags).unwrap(), 8192);
    changed(path, OFlags::empty(), write)
}

/// A change of a file with the old bytes, or of one that is not there, and the bytes after it.
struct Change {
    file: &'static str,
    exists: bool,
    make: fn(&Path) -> File,
    after: fn() -> Vec<u8>,
}

const CHANGES: &[Change] = &[
    Change { file: "o_sync", exists: false, make: |path| written(path, SYNC), after: new },
    Change { file: "o_dsync", exists: false, make: |path| written(path, DSYNC), after: new },
    Change { file: "rwf_dsync", exists: false, make: |path| by_flags(path, ReadWriteFlags::DSYNC), after: new },
    Change { file: "rwf_sync", exists: false, make: |path| by_flags(path, ReadWriteFlags::SYNC), after: new },
    Change { file: "over", exists: true, make: |path| written(path, SYNC), after: new },
    Change {
        file: "append",
        exists: true,
        make: |path| changed(path, DSYNC | OFlags::APPEND, |file| file.write_all(b"line").unwrap()),
        after: || [old(), b"line".to_vec()].concat(),
    },
    Change { file: "direct", exists: true, make: |path| written(path, SYNC | OFlags::DIRECT), after: new },
    Change {
        file: "copy",
        exists: true,
        make: |path| {
            let source = opened(&path.with_file_name("source"), OFlags::empty());
            source.write_all_at(&new(), 0).unwrap();
            changed(path, DSYNC, |file| {
                let copied = copy_file_range(&source, Some(&mut 0), file, Some(&mut 0), 8192);
                assert_eq!(copied.unwrap(), 8192);
            })
        },
        after: new,
    },
    Change {
        file: "zeros",
        exists: true,
        make: |path| changed(path, DSYNC, |file| fallocate(file, FallocateFlags::ZERO_RANGE, 1000, 9000).unwrap()),
        after: || [&old()[..1000], &[0; 9000]].concat(),
    },
    Change {
        file: "shorter",
        exists: true,
        make: |path| changed(path, SYNC, |file| file.set_len(100).unwrap()),
        after: || old()[..100].to_vec(),
    },
];

/// Makes the changes below a mount that `kill` ends, and reads their bytes with the function that it then returns.
fn is_all_there(point: &Path, kill: impl FnOnce() -> Box<dyn Fn(&str) -> Vec<u8>>) {
    for change in CHANGES.iter().filter(|change| change.exists) {
        let file = opened(&point.join(change.file), OFlags::empty());
        file.write_all_at(&old(), 0).unwrap();
        file.sync_all().unwrap();
    }
    let open: Vec<File> = CHANGES.iter().map(|change| (change.make)(&point.join(change.file))).collect();
    let found = kill();
    drop(open);
    for change in CHANGES {
        let bytes = found(change.file);
        assert!(bytes == (change.after)(), "{}: {} bytes of {}", change.file, bytes.len(), (change.after)().len());
    }
}

#[test]
fn synchronous_changes_below_a_directory_are_there_after_a_kill() {
    if !can_mount() {
        return;
    }
    for flags in [&LAZY[..], &[&LAZY[..], &["--kernel-cache"]].concat()] {
        let scratch = Scratch::new();
        let (data, point) = apart(&scratch);
        let mut mounted = Mounted::start_with(scratch.path(), &data, &point, flags);
        let server = mounted.server.take().unwrap();
        is_all_there(&point, || {
            server.kill();
            Box::new(move |file| fs::read(data.join(file)).unwrap_or_default())
        });
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let flags = [&LAZY[..], &["--mount", point.to_str().unwrap(), "--async-metadata"]].concat();
    let server = Server::start(scratch.path(), &[&data], &flags);
    let _mounted = Mounted { server: None, point: point.clone() };
    is_all_there(&point, || {
        server.kill();
        Box::new(move |file| fs::read(data.join(file)).unwrap_or_default())
    });
}

#[cfg(feature = "object")]
#[test]
fn synchronous_changes_of_a_volume_are_there_after_a_kill() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let store = std::path::PathBuf::from(format!("file://{}", scratch.directory("store").display()));
    let point = scratch.directory("point");
    let mut mounted = Mounted::start(scratch.path(), &store, &point);
    let server = mounted.server.take().unwrap();
    is_all_there(&point, || {
        server.kill();
        drop(mounted);
        let mounted = Mounted::start(scratch.path(), &store, &point);
        Box::new(move |file| fs::read(mounted.path(file)).unwrap_or_default())
    });
}

fn remount(point: &Path, options: &str) {
    let output = Command::new("mount").args(["-i", "-o", options]).arg(point).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

/// Names of a volume are durable with a batch, so a kill shows whether the server has waited for it.
#[cfg(feature = "object")]
#[test]
fn names_of_a_synchronous_mount_are_there_after_a_kill() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let store = std::path::PathBuf::from(format!("file://{}", scratch.directory("store").display()));
    let point = scratch.directory("point");
    for (round, flags) in [&["--dirsync"][..], &["--sync"], &[]].into_iter().enumerate() {
        let mut mounted = Mounted::start_with(scratch.path(), &store, &point, flags);
        if flags.is_empty() {
            remount(&point, "remount,nosuid,nodev,sync");
        }
        let at = |name: &str| point.join(format!("{name}{round}"));
        fs::create_dir(at("a")).unwrap();
        fs::rename(at("a"), at("b")).unwrap();
        std::os::unix::fs::symlink("target", at("link")).unwrap();
        File::create(at("file")).unwrap();
        fs::create_dir(at("gone")).unwrap();
        fs::remove_dir(at("gone")).unwrap();
        let is_whole = !flags.contains(&"--dirsync");
        if is_whole {
            fs::write(at("bytes"), new()).unwrap();
            File::options().write(true).open(at("bytes")).unwrap().set_len(77).unwrap();
        }
        mounted.server.take().unwrap().kill();
        drop(mounted);
        let mounted = Mounted::start(scratch.path(), &store, &point);
        let there = |name: &str| fs::symlink_metadata(at(name)).is_ok();
        assert!(there("b") && there("link") && there("file") && !there("a") && !there("gone"), "{flags:?}");
        assert!(!is_whole || fs::read(at("bytes")).unwrap() == new()[..77], "{flags:?}");
        mounted.stop();
    }
}

#[test]
fn a_remount_changes_what_is_synchronous() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start_with(scratch.path(), &data, &point, &[&LAZY[..], &["--dirsync"]].concat());
    let shown = || {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let row = mounts.lines().find(|row| row.contains(point.to_str().unwrap())).unwrap().to_owned();
        row.split(' ').next_back().unwrap().split(',').filter(|it| it.ends_with("sync")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(), "dirsync");
    remount(&point, "remount,nosuid,nodev,sync");
    assert!(shown().starts_with("sync"), "{}", shown());
    let _open = written(&point.join("one"), OFlags::empty());
    assert!(fs::read(data.join("one")).unwrap() == new(), "written before the answer");
    mounted.stop();
}
