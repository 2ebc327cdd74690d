//! The label of a device of the host, for people.
//!
//! Owns: a short name and the kind of attachment, from the host's tables.
//! Does not own: distinct names: [`unused`] makes them so.
//! Invariants: every device gets some name; one without a disk gets its file system's.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use afflux_govern::Mounted;
use rustix::fs::{major, minor};

/// Parts of a device's path in sysfs that tell its attachment, outer ones last.
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
pub(crate) fn of(device: u64) -> Label {
    let number = format!("{}:{}", major(device), minor(device));
    let entry = Path::new("/sys/dev/block").join(&number);
    let place = fs::canonicalize(&entry).ok();
    let mapped = fs::read_to_string(entry.join("dm/name")).ok();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    from_host(&number, place, mapped.as_deref(), &mounts)
}

fn from_host(number: &str, place: Option<PathBuf>, mapped: Option<&str>, mounts: &str) -> Label {
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
