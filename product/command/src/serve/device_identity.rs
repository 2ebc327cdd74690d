//! By what a device is known again after a restart.
//!
//! All that the host says of it, together: the id of its file system, what its disk calls itself, its size. Any of
//! these alone may be shared: images of a file system have its UUID, sticks of one series their model and size, and
//! names as `sda` go to whatever is plugged in first. To know a device again wrongly is dear: a slow one whose prices
//! are those of a fast one owes far more than its budget before that shows. Not to know it again costs the first
//! second. So a change in any of them makes it another device; formatting it does, too.
//!
//! Owns: which words of the host are in it. Does not own: what is kept (`kept_prices`).
//! Invariants: the same device has the same identity after a restart of the server and of the machine, wherever it is
//! plugged in, as far as its host names it by more than a number.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use rustix::fs::{major, minor};

/// Where in its entry in sysfs a device, or the disk that it is a part of, says who it is.
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

/// Longest word that is taken over.
const WORD_MAX: usize = 256;

/// The identity of the device with this number (`st_dev`), whose file system has that id; nothing if there is nothing
/// to know it by.
pub(super) fn of(device: u64, file_system: Option<u64>) -> Option<String> {
    let number = format!("{}:{}", major(device), minor(device));
    from_host(Path::new("/sys/dev/block"), &number, file_system)
}

pub(crate) fn from_host(sysfs: &Path, number: &str, file_system: Option<u64>) -> Option<String> {
    let entry = sysfs.join(number);
    let mut words = Vec::new();
    words.extend(file_system.map(|id| format!("fs={id:016x}")));
    // A partition's disk is one up.
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
        // A size alone is no name.
        words.push(format!("number={number}"));
    }
    Some(words.join(" "))
}
