//! File systems that store what is written to them.
//!
//! Owns: the question whether one does, the name of its kind for people.
//! Does not own: the kinds (`kinds`), the consequences (`host` shows others as empty directories, the library refuses
//! their files).
//! Invariants: an unknown kind counts as a kind without storage. In `/proc` or `/sys` a write is an order to
//! the kernel, and sizes say nothing about the bytes to read: neither can be cached.

use std::os::fd::BorrowedFd;

use rustix::fs::{fstat, fstatfs, major, minor};
use rustix::io::Errno;

use crate::kinds::FileSystemKind;

/// Whether the file system of an open object, in any way also by O_PATH, stores files. `device_major` is of the
/// object's device number: a file system on a block device stores files.
pub fn stores_files(device_major: u32, object: BorrowedFd<'_>) -> Result<bool, Errno> {
    let on_a_disk = device_major != 0;
    Ok(on_a_disk || FileSystemKind::of(object)?.does_store_files())
}

/// The kind of an object's file system, for people: as `mount` names it, or its magic number.
pub fn file_system_kind(object: BorrowedFd<'_>) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let named = fstat(object).ok().and_then(|stat| kind_in(&mounts, stat.st_dev));
    let number = || fstatfs(object).map_or_else(|error| error.to_string(), |found| format!("{:#x}", found.f_type));
    named.map_or_else(number, str::to_owned)
}

/// The kind of the file system with this device number: the third field, and the first one after a dash.
fn kind_in(mounts: &str, device: u64) -> Option<&str> {
    let device = format!("{}:{}", major(device), minor(device));
    let mut lines = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(&device));
    lines.find_map(|line| line.split_once(" - ")?.1.split(' ').next())
}

#[cfg(test)]
mod tests;
