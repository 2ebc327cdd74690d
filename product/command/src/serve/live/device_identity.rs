//! The identity by which a server recognizes a device after a restart.
//!
//! It combines all facts that the host reports: the id of the file system, the disk's own names, its size. Two devices
//! may share any single fact. Images of a file system have its UUID, and sticks of one series have the same model and
//! size. Names such as `sda` go to the first disk plugged in. A false match is expensive: with the prices of a fast
//! disk, a slow one owes far more than its budget before the error shows. A missed match costs the first second. So a
//! change in any of these facts makes another device, as formatting does.
//!
//! Owns: the choice of facts.
//! Does not own: the state kept for a device (`persisted_prices`).
//! Invariants: a device keeps its identity over restarts of the server and of the machine, wherever it is plugged in,
//! if its host names it by more than a number.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use rustix::fs::{major, minor};

/// Files of a device's entry in sysfs, or of its disk's, that identify it.
const WORDS: &[(&str, &str)] = &[
    ("wwid", "wwid"),
    ("device/wwid", "wwid"),
    ("serial", "serial"),
    ("device/serial", "serial"),
    ("dm/uuid", "dm"),
    ("md/uuid", "md"),
    ("loop/backing_file", "file"),
    ("device/vendor", "vendor"),
    ("device/model", "model"),
    ("size", "sectors"),
    ("partition", "partition"),
];

/// Longest text taken from a file.
const WORD_MAX: usize = 256;

/// The identity of the device with this number (`st_dev`) and this file system id; none if the host has no usable fact.
pub(crate) fn of(device: u64, file_system: Option<u64>) -> Option<String> {
    let number = format!("{}:{}", major(device), minor(device));
    from_host(Path::new("/sys/dev/block"), &number, file_system)
}

pub(crate) fn from_host(sysfs: &Path, number: &str, file_system: Option<u64>) -> Option<String> {
    let entry = sysfs.join(number);
    let mut words = Vec::new();
    words.extend(file_system.map(|id| format!("fs={id:016x}")));
    // A partition's disk is one directory up.
    let whole = fs::canonicalize(&entry).ok().filter(|_| entry.join("partition").exists()).and_then(|place| {
        let disk = place.parent()?;
        Some(disk.to_path_buf())
    });
    for (file, name) in WORDS {
        let of_disk = || fs::read_to_string(whole.as_ref()?.join(file)).ok();
        let Some(text) = fs::read_to_string(entry.join(file)).ok().or_else(of_disk) else { continue };
        let text: String = text.trim().chars().filter(|letter| !letter.is_control()).take(WORD_MAX).collect();
        if !text.is_empty() {
            words.push(format!("{name}={text}"));
        }
    }
    let names_itself = |word: &String| !word.starts_with("sectors=") && !word.starts_with("partition=");
    if !words.iter().any(names_itself) {
        if words.is_empty() {
            return None;
        }
        // A size alone identifies nothing.
        words.push(format!("number={number}"));
    }
    Some(words.join(" "))
}
