//! Which block device a bdi belongs to, or why it has none that could be governed.
//!
//! Dirty pages are the mounted device's: a partition's belong to its whole disk, which has the bdi; those of a file system
//! over a device mapper or md device to that device, whose own counters say how fast all below it is. btrfs has a bdi of
//! its own, which here counts as its one device.
//!
//! Owns: the kinds of bdi's, the form of `stat`. Does not own: mounts (`mounts`).
//! Invariants: a device that is left alone has a reason.

use std::fs;
use std::path::{Path, PathBuf};

use super::Host;
use crate::law::Counters;

const SECTOR_BYTES: u64 = 512;
const MILLISECOND: u64 = 1_000_000;

/// Why a drive is left alone that has nothing in it.
pub(crate) const NO_MEDIUM: &str = "no medium in it";

/// A whole block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its name, as `sdb`.
    pub name: String,
    /// Its number, as `8:16`.
    pub number: String,
    /// What it calls itself.
    pub model: Option<String>,
    /// Its entry in sysfs.
    pub directory: PathBuf,
    /// Counts up with each device that the kernel meets, so that another under the same number is another.
    pub sequence: Option<u64>,
}

/// What stands behind a bdi.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A device that can be governed.
    Disk(Disk),
    /// None, and why.
    Alone {
        /// What it is called, as far as it is called anything.
        name: String,
        /// Why it is left alone.
        why: &'static str,
    },
}

impl Host {
    /// What stands behind a bdi; nothing if it has gone.
    pub fn kind(&self, bdi: &str) -> Option<Kind> {
        let alone = |name: &str, why| Some(Kind::Alone { name: name.to_owned(), why });
        if bdi.starts_with("btrfs-") {
            return match self.btrfs_number(bdi) {
                Some(number) => self.disk(&number).map(Kind::Disk),
                None => alone(bdi, "btrfs over several devices: which of them a write goes to is not known before"),
            };
        }
        let Some((major, _)) = bdi.split_once(':').filter(|(major, minor)| is_number(major) && is_number(minor)) else {
            return alone(bdi, "a file system with pages of its own, of which the kernel keeps no speed");
        };
        if major == "0" {
            let Some((kind, source)) = self.mount_of(bdi) else {
                return alone(bdi, "not a block device: the kernel keeps no record of its speed");
            };
            let why = if kind.starts_with("fuse") {
                "FUSE: the kernel holds it to a strict limit of 1 % by itself, and keeps no record of its speed"
            } else {
                "a network mount: its speed is the server's and the network's, of which the kernel keeps no record"
            };
            return alone(&source, why);
        }
        let disk = self.disk(bdi)?;
        let says = |file: &str| fs::read_to_string(disk.directory.join(file)).ok();
        let number = |file: &str| says(file).and_then(|text| text.trim().parse::<u64>().ok());
        if major == "1" || disk.name.starts_with("zram") {
            return alone(&disk.name, "memory: nothing to wait for");
        }
        if number("size").unwrap_or(0) == 0 {
            return alone(&disk.name, NO_MEDIUM);
        }
        if number("ro") == Some(1) {
            return alone(&disk.name, "it cannot be written to");
        }
        Some(Kind::Disk(disk))
    }

    /// The whole block device with this number.
    pub fn disk(&self, number: &str) -> Option<Disk> {
        let directory = fs::canonicalize(self.path("sys/dev/block").join(number)).ok()?;
        let name = directory.file_name()?.to_string_lossy().into_owned();
        let says = |file: &str| fs::read_to_string(directory.join(file)).ok();
        let words =
            |text: String| Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|it| !it.is_empty());
        let model = says("device/model").or_else(|| says("dm/name")).or_else(|| says("loop/backing_file"));
        Some(Disk {
            name,
            number: number.to_owned(),
            model: model.and_then(words),
            sequence: sequence(&directory),
            directory,
        })
    }

    /// Which of all devices that the kernel has met stands there now.
    pub(crate) fn sequence(&self, disk: &Disk) -> Option<u64> {
        sequence(&disk.directory)
    }

    /// The same of whatever has this number.
    pub(crate) fn sequence_of(&self, number: &str) -> Option<u64> {
        sequence(&self.path("sys/dev/block").join(number))
    }

    /// The number of the whole disk that a name means: of a disk, of a partition, with or without `/dev/`.
    pub fn whole(&self, name: &str) -> Option<String> {
        let name = name.strip_prefix("/dev/").unwrap_or(name);
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return None;
        }
        let mut place = fs::canonicalize(self.path("sys/class/block").join(name)).ok()?;
        if place.join("partition").exists() {
            place.pop();
        }
        fs::read_to_string(place.join("dev")).ok().map(|number| number.trim().to_owned())
    }

    /// The number of the whole disk that this is a part of, or is.
    pub fn whole_of_number(&self, number: &str) -> Option<String> {
        let mut place = fs::canonicalize(self.path("sys/dev/block").join(number)).ok()?;
        if !place.join("partition").exists() {
            return Some(number.to_owned());
        }
        place.pop();
        fs::read_to_string(place.join("dev")).ok().map(|number| number.trim().to_owned())
    }

    /// The device of the btrfs whose bdi this is, if it has one only.
    fn btrfs_number(&self, bdi: &str) -> Option<String> {
        let file_systems = fs::read_dir(self.path("sys/fs/btrfs")).ok()?;
        let own = file_systems.flatten().find(|entry| {
            fs::canonicalize(entry.path().join("bdi")).is_ok_and(|place| place.file_name() == Some(bdi.as_ref()))
        })?;
        let mut devices = fs::read_dir(own.path().join("devices")).ok()?.flatten();
        let (one, another) = (devices.next()?, devices.next());
        another.is_none().then(|| self.whole(&one.file_name().to_string_lossy())).flatten()
    }
}

fn sequence(directory: &Path) -> Option<u64> {
    fs::read_to_string(directory.join("diskseq")).ok()?.trim().parse().ok()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit())
}

/// The counters in a line of `stat`; nothing where they make no sense.
pub(super) fn counters(text: &str) -> Option<Counters> {
    let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    if numbers.len() < 11 {
        return None;
    }
    let bytes = |at: usize| numbers[at].saturating_mul(SECTOR_BYTES);
    let ns = |at: usize| numbers.get(at).copied().unwrap_or(0).saturating_mul(MILLISECOND);
    Some(Counters {
        reads: numbers[0],
        read_bytes: bytes(2),
        read_ns: ns(3),
        writes: numbers[4],
        write_bytes: bytes(6),
        write_ns: ns(7),
        in_flight: numbers[8],
        busy_ns: ns(9),
        flush_ns: ns(16),
    })
}
