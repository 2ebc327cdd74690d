//! The least that a FUSE server can do: one file in memory, one thread that reads a message and writes the reply.
//!
//! Owns: its mount, its file.
//! Does not own: anything else that a file system has.
//! Invariants: the kernel caches no bytes of the file. Unknown messages get ENOSYS.

use std::ffi::CString;
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, writev};
use rustix::mount::{MountFlags, mount};

/// The argument that makes the program a server.
pub(crate) const WORD: &str = "--bare";
/// The one file.
pub(crate) const NAME: &str = "file";
pub(crate) const FILE_BYTES: u64 = 64 << 20;

const DATA_MAX: usize = 1 << 20;
const ROOT: u64 = 1;
const FILE: u64 = 2;
const HEADER: usize = 40;
const NO_ENTRY: i32 = 2;
const NO_OPERATION: i32 = 38;
const WRITE_HEADER: usize = 40;

/// A reply: an error, or two parts.
enum Reply<'a> {
    None,
    Error(i32),
    Bytes(Vec<u8>, &'a [u8]),
}

/// Mounts and serves until the mount is gone.
pub(crate) fn serve(point: &Path) -> Result<()> {
    let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).context("/dev/fuse")?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
    let options = CString::new(options)?;
    mount("bare", point, "fuse.bare", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str()).context("mount")?;
    let mut file = vec![7; FILE_BYTES as usize];
    let mut buffer = vec![0; DATA_MAX + 4096];
    loop {
        let len = match read(device.as_fd(), &mut buffer[..]) {
            Ok(len) => len,
            Err(Errno::NODEV) => return Ok(()),
            Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => continue,
            Err(error) => return Err(error).context("reading a message"),
        };
        let message = &buffer[..len];
        let unique = u64_at(message, 8);
        let (error, head, data) = match answer(message, &mut file) {
            Reply::None => continue,
            Reply::Error(error) => (-error, Vec::new(), &[][..]),
            Reply::Bytes(head, data) => (0, head, data),
        };
        let bytes = 16 + head.len() + data.len();
        let header = [&(bytes as u32).to_ne_bytes()[..], &error.to_ne_bytes(), &unique.to_ne_bytes()].concat();
        // The kernel refuses a reply whose caller is gone.
        let _ = writev(device.as_fd(), &[IoSlice::new(&header), IoSlice::new(&head), IoSlice::new(data)]);
    }
}

fn u32_at(message: &[u8], at: usize) -> u32 {
    message.get(at..at + 4).and_then(|it| it.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn u64_at(message: &[u8], at: usize) -> u64 {
    message.get(at..at + 8).and_then(|it| it.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

fn answer<'a>(message: &[u8], file: &'a mut [u8]) -> Reply<'a> {
    let (opcode, node) = (u32_at(message, 4), u64_at(message, 16));
    let offset = (u64_at(message, HEADER + 8) as usize).min(file.len());
    let size = u32_at(message, HEADER + 16) as usize;
    match opcode {
        2 | 36 | 42 => Reply::None,
        26 => Reply::Bytes(init(message), &[]),
        1 if message.get(HEADER..).is_some_and(|name| name.starts_with(b"file\0")) => Reply::Bytes(entry(), &[]),
        1 => Reply::Error(NO_ENTRY),
        3 | 4 => Reply::Bytes([long_validity(1), attributes(node)].concat(), &[]),
        // Direct, with parallel writes.
        14 => Reply::Bytes([&0_u64.to_ne_bytes()[..], &(1_u32 | 1 << 6).to_ne_bytes(), &[0; 4]].concat(), &[]),
        27 => Reply::Bytes(vec![0; 16], &[]),
        15 => Reply::Bytes(Vec::new(), &file[offset..(offset + size).min(file.len())]),
        16 => {
            let data = message.get(HEADER + WRITE_HEADER..).unwrap_or_default();
            let data = &data[..data.len().min(file.len() - offset)];
            file[offset..offset + data.len()].copy_from_slice(data);
            Reply::Bytes([&(data.len() as u32).to_ne_bytes()[..], &[0; 4]].concat(), &[])
        }
        17 => Reply::Bytes(vec![0; 80], &[]),
        18 | 20 | 25 | 29 | 38 => Reply::Bytes(Vec::new(), &[]),
        _ => Reply::Error(NO_OPERATION),
    }
}

fn init(message: &[u8]) -> Vec<u8> {
    const FLAGS: u32 = 1 | 1 << 5 | 1 << 22;
    let mut reply = Vec::new();
    for word in [7, 31, u32_at(message, HEADER + 8), FLAGS] {
        reply.extend(word.to_ne_bytes());
    }
    for half in [64_u16, 48] {
        reply.extend(half.to_ne_bytes());
    }
    for word in [DATA_MAX as u32, 1] {
        reply.extend(word.to_ne_bytes());
    }
    reply.extend(((DATA_MAX / 4096) as u16).to_ne_bytes());
    reply.resize(64, 0);
    reply
}

/// Attributes or names hold for an hour; the nanoseconds' words follow.
fn long_validity(times: usize) -> Vec<u8> {
    [3600_u64.to_ne_bytes().repeat(times), vec![0; 8]].concat()
}

fn entry() -> Vec<u8> {
    [&FILE.to_ne_bytes()[..], &[0; 8], &long_validity(2), &attributes(FILE)].concat()
}

fn attributes(node: u64) -> Vec<u8> {
    let (mode, size) = if node == ROOT { (0o040_755_u32, 0) } else { (0o100_644, FILE_BYTES) };
    let mut bytes = Vec::new();
    for word in [node, size, size / 512, 0, 0, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    for word in [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0] {
        bytes.extend(u32::to_ne_bytes(word));
    }
    bytes
}

#[cfg(test)]
mod tests;
