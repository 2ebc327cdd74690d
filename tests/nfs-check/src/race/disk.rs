//! The disk of the race: its interrupts and its file system.
//!
//! Owns: the measurement of the interrupts, the name of the file system.
//! Does not own: the choice of CPUs (`cpus`), the report.
//! Invariants: no file stays.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

/// Synced writes by which the disk's interrupts are found.
const WRITES: u64 = 64;

/// The interrupts of a disk during [`WRITES`] synced writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiskInterrupts {
    pub(super) name: String,
    pub(super) cpu: usize,
}

/// The interrupt that synced writes in a directory raise most, and the CPU that gets most of these.
pub(super) fn interrupts(directory: &Path) -> io::Result<Option<DiskInterrupts>> {
    let before = fs::read_to_string("/proc/interrupts")?;
    let path = directory.join("interrupts");
    let mut file = File::create(&path)?;
    for _ in 0..WRITES {
        file.write_all(&[1; 4096])?;
        file.sync_data()?;
    }
    fs::remove_file(&path)?;
    Ok(most_raised(&before, &fs::read_to_string("/proc/interrupts")?))
}

/// The device that raised the most interrupts between two states of `/proc/interrupts`. Fewer than one for two writes
/// are not the disk's.
fn most_raised(before: &str, after: &str) -> Option<DiskInterrupts> {
    let raised = |(before, after): (&str, &str)| {
        let (before, after) = (counts(before)?, counts(after)?);
        let each: Vec<u64> =
            after.1.iter().zip(&before.1).map(|(after, before)| after.saturating_sub(*before)).collect();
        Some((each, after.0))
    };
    let (each, name) =
        before.lines().zip(after.lines()).filter_map(raised).max_by_key(|(each, _)| each.iter().sum::<u64>())?;
    if each.iter().sum::<u64>() < WRITES / 2 {
        return None;
    }
    let cpu = (0..each.len()).max_by_key(|cpu| each[*cpu])?;
    Some(DiskInterrupts { name, cpu })
}

/// The name and each CPU's count of a device's line; other lines begin with a word.
fn counts(line: &str) -> Option<(String, Vec<u64>)> {
    let (number, rest) = line.trim_start().split_once(':')?;
    number.parse::<u32>().ok()?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let counts = words.iter().map_while(|word| word.parse().ok()).collect();
    Some((words.last()?.to_string(), counts))
}

/// The file system of a directory, in words. An ext4 without a journal checks each inode freed in the last minutes
/// before it allocates one: creations there pay for earlier removals.
pub(super) fn file_system(directory: &Path) -> io::Result<String> {
    let found = Command::new("findmnt").args(["-nro", "FSTYPE,SOURCE", "-T"]).arg(directory).output()?;
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    let (kind, source) = found.trim().split_once(' ').unwrap_or((found.trim(), ""));
    let journal = fs::canonicalize(source).ok().and_then(|device| {
        let name = device.file_name()?.to_string_lossy().into_owned();
        fs::read_to_string(format!("/sys/fs/ext4/{name}/journal_task")).ok()
    });
    Ok(match journal.as_deref().map(str::trim) {
        Some("<none>") => format!("{kind} without a journal"),
        _ => kind.to_owned(),
    })
}

#[cfg(test)]
mod tests;
