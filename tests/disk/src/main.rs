//! Runs a slow disk with an ext4 for another program: `afflux-disk DIRECTORY BYTES BYTES_PER_SECOND`.
//!
//! Owns: the lines. Standard output says where the ext4 is mounted.
//! Does not own: the disk (`afflux_disk`).
//! Invariants: all ends with standard input, so also with the program that holds its other end. The disk is fast from
//! then on, so that the rest is written soon.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for tests")]

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use afflux_disk::{Disk, DiskOptions, Ext4, Rates};

const USAGE: &str = "usage: afflux-disk DIRECTORY BYTES BYTES_PER_SECOND";
/// Requests that the disk works on at once.
const QUEUE: usize = 32;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wanted = match &words[..] {
        [directory, bytes, rate] => bytes.parse().ok().zip(rate.parse().ok()).map(|numbers| (directory, numbers)),
        _ => None,
    };
    let Some((directory, (bytes, rate))) = wanted else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(Path::new(directory), bytes, rate) {
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
