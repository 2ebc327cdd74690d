//! A device of the host as the server knows it: its identity, by which a server recognizes it after a restart, and its
//! label for people.
//!
//! The identity combines all facts that the host reports: the id of the file system, the disk's own names, its size.
//! Two devices may have any single fact in common. Images of a file system have its UUID, and sticks of one series have
//! the same model and size. Names such as `sda` go to the first disk plugged in. A false match is expensive: with the
//! prices of a fast disk, a slow one owes far more than its budget before the error shows. A missed match costs the
//! first second. So a change in any of these facts makes another device, as formatting does.
//!
//! Owns: the choice of facts, a short name and the kind of attachment, from the host's tables.
//! Does not own: the state persisted for a device (`persisted_prices`).
//! Invariants: a device retains its identity over restarts of the server and of the machine, wherever it is plugged in,
//! if its host names it by more than a number. Every device gets some name, distinct by [`unused`]; one without a disk
//! gets its file system's.

use std::fs;
use std::path::{Path, PathBuf};

use afflux_govern::Mounted;
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
pub(crate) fn identity_of(device: u64, file_system: Option<u64>) -> Option<String> {
    let number = format!("{}:{}", major(device), minor(device));
    identity_from_host(Path::new("/sys/dev/block"), &number, file_system)
}

pub(crate) fn identity_from_host(sysfs: &Path, number: &str, file_system: Option<u64>) -> Option<String> {
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

/// Parts of a device's path in sysfs that identify its attachment, outer ones last.
const ATTACHED_BY: &[(&str, &str)] = &[
    ("/usb", "USB"),
    ("/nvme", "NVMe"),
    ("/mmc", "SD card or eMMC"),
    ("/ata", "SATA"),
    ("/virtio", "virtio"),
    ("/virtual/block/loop", "loop"),
    ("/virtual/block/dm-", "device mapper"),
    ("/virtual/block/md", "RAID"),
];

/// A device's name and its attachment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    pub(crate) name: String,
    pub(crate) attached_by: Option<&'static str>,
}

/// The label of the device with this number (`st_dev`).
pub(crate) fn label_of(device: u64) -> Label {
    let number = format!("{}:{}", major(device), minor(device));
    let entry = Path::new("/sys/dev/block").join(&number);
    let place = fs::canonicalize(&entry).ok();
    let mapped = fs::read_to_string(entry.join("dm/name")).ok();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    label_from_host(&number, place, mapped.as_deref(), &mounts)
}

fn label_from_host(number: &str, place: Option<PathBuf>, mapped: Option<&str>, mounts: &str) -> Label {
    if let Some(place) = place {
        let text = place.to_string_lossy();
        let attached_by = ATTACHED_BY.iter().find(|(word, _)| text.contains(word)).map(|(_, by)| *by);
        let own = place.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = mapped.map(|name| name.trim().to_owned()).or(own);
        return Label { name: name.unwrap_or_else(|| number.to_owned()), attached_by };
    }
    let mut mounts = Mounted::listed(mounts).into_iter();
    let name = mounts.find(|mount| mount.number == number).map(|mount| mount.kind);
    Label { name: name.unwrap_or_else(|| format!("device-{number}")), attached_by: None }
}

/// The name, or the name with the first number that makes it differ from all `used`.
pub(crate) fn unused(name: &str, used: &[String]) -> String {
    if !used.iter().any(|other| other == name) {
        return name.to_owned();
    }
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    numbered.take(used.len() + 1).find(|name| !used.contains(name)).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests;
