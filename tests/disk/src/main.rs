//! Runs a slow disk with an ext4 for another program: `afflux-disk DIRECTORY BYTES BYTES_PER_SECOND`.
//!
//! Owns: the lines. Standard output says where the ext4 is mounted.
//! Does not own: the disk (`afflux_disk`).
//! Invariants: all ends with standard input, so also with the program that holds its other end. The disk is fast from
//! then on, so that the rest is written soon.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for tests")]

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use afflux_disk::{Disk, DiskOptions, Ext4, Rates};

/// Requests that the disk works on at once.
const QUEUE: usize = 32;

fn main() -> ExitCode {
    let words = xflags::parse_or_exit! {
        /// Where the disk's file and its mount are
        required directory: PathBuf
        /// The disk's size
        required bytes: u64
        /// The speed of writes
        required bytes_per_second: u64
    };
    match run(&words.directory, words.bytes, words.bytes_per_second) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(directory: &Path, bytes: u64, write_bytes_per_s: u64) -> io::Result<()> {
    let point = directory.join("ext4");
    std::fs::create_dir_all(&point)?;
    let disk = Disk::new(directory, DiskOptions::new(bytes))?;
    let ext4 = Ext4::format(&disk, &point)?;
    disk.set_rates(Rates { write_bytes_per_s, queue: QUEUE, ..Rates::default() });
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", ext4.path().display())?;
    stdout.flush()?;
    io::stdin().lock().read_to_end(&mut Vec::new())?;
    disk.set_rates(Rates::default());
    drop(ext4);
    drop(disk);
    Ok(())
}
