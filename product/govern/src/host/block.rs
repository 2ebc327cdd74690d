//! Finds the block device of a bdi, or the reason why it cannot be governed.
//!
//! Dirty pages count for the mounted device. A partition's count for its whole disk, which has the bdi. A file system
//! over a device mapper or md device counts for that device, whose own counters give the speed of everything below.
//! btrfs has a bdi of its own, which here counts for its one device.
//!
//! Owns: the kinds of bdis, the format of `stat`.
//! Does not own: mounts (`mounts`).
//! Invariants: a device that is left alone has a reason.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::bdi::Host;
use crate::law::BlockCounters;

const SECTOR_BYTES: u64 = 512;
const MILLISECOND: u64 = 1_000_000;
/// Size of the buffer for a line of counters.
const LINE_BYTES: usize = 1024;

/// The reason to leave a drive without a medium alone.
pub(crate) const NO_MEDIUM: &str = "no medium in it";

/// A whole block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its name, such as `sdb`.
    pub name: String,
    /// Its number, such as `8:16`.
    pub number: String,
    /// The model name that it reports.
    pub model: Option<String>,
    /// Its entry in sysfs.
    pub directory: PathBuf,
    /// The kernel's sequence number. It differs between two devices that get the same number one after the other.
    pub sequence: Option<u64>,
}

/// The device of a bdi.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BdiKind {
    /// A device that can be governed.
    Disk(Disk),
    /// A bdi that cannot be governed.
    Alone {
        /// Its name, as far as it has one.
        name: String,
        /// Why it is left alone.
        why: &'static str,
    },
}

/// A device's counters, held open.
#[derive(Debug)]
pub(crate) struct CounterFile(File);

impl CounterFile {
    /// The current counters; none if the device is gone, or the text makes no sense.
    pub(crate) fn read(&self) -> Option<BlockCounters> {
        let mut bytes = [0; LINE_BYTES];
        let len = self.0.read_at(&mut bytes, 0).ok()?;
        counters(std::str::from_utf8(&bytes[..len]).ok()?)
    }
}

impl Host {
    /// A block device's counters.
    pub(crate) fn counters(&self, disk: &Disk) -> Option<CounterFile> {
        File::open(disk.directory.join("stat")).ok().map(CounterFile)
    }

    /// The device of a bdi; none if the bdi is gone.
    pub fn kind(&self, bdi: &str) -> Option<BdiKind> {
        let alone = |name: &str, why| Some(BdiKind::Alone { name: name.to_owned(), why });
        if bdi.starts_with("btrfs-") {
            return match self.btrfs_number(bdi) {
                Some(number) => self.disk(&number).map(BdiKind::Disk),
                None => alone(bdi, "btrfs over several devices: it is not known in advance which of them gets a write"),
            };
        }
        let Some((major, _)) = bdi.split_once(':').filter(|(major, minor)| is_number(major) && is_number(minor)) else {
            return alone(bdi, "a file system with pages of its own: the kernel keeps no record of its speed");
        };
        if major == "0" {
            let Some((kind, source)) = self.mount_of(bdi) else {
                return alone(bdi, "not a block device: the kernel keeps no record of its speed");
            };
            let why = if kind.starts_with("fuse") {
                "FUSE: the kernel holds it to a strict limit of 1 % by itself, and keeps no record of its speed"
            } else {
                "a network mount: the kernel keeps no record of the speed of server and network"
            };
            return alone(&source, why);
        }
        let disk = self.disk(bdi)?;
        let says = |file: &str| fs::read_to_string(disk.directory.join(file)).ok();
        let number = |file: &str| says(file).and_then(|text| text.trim().parse::<u64>().ok());
        if major == "1" || disk.name.starts_with("zram") {
            return alone(&disk.name, "memory: writing to it takes no time");
        }
        if number("size").unwrap_or(0) == 0 {
            return alone(&disk.name, NO_MEDIUM);
        }
        if number("ro") == Some(1) {
            return alone(&disk.name, "it cannot be written to");
        }
        Some(BdiKind::Disk(disk))
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

    /// The current sequence number of the disk.
    pub(crate) fn sequence(&self, disk: &Disk) -> Option<u64> {
        sequence(&disk.directory)
    }

    /// The sequence number of the device that has this number now.
    pub(crate) fn sequence_of(&self, number: &str) -> Option<u64> {
        sequence(&self.path("sys/dev/block").join(number))
    }

    /// The number of the whole disk that a name means: a disk's or a partition's name, with or without `/dev/`.
    pub fn whole(&self, name: &str) -> Option<String> {
        let name = name.strip_prefix("/dev/").unwrap_or(name);
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return None;
        }
        let mut mount_point = fs::canonicalize(self.path("sys/class/block").join(name)).ok()?;
        if mount_point.join("partition").exists() {
            mount_point.pop();
        }
        fs::read_to_string(mount_point.join("dev")).ok().map(|number| number.trim().to_owned())
    }

    /// The number of the whole disk that has this number, or a partition with it.
    pub fn whole_of_number(&self, number: &str) -> Option<String> {
        let mut mount_point = fs::canonicalize(self.path("sys/dev/block").join(number)).ok()?;
        if !mount_point.join("partition").exists() {
            return Some(number.to_owned());
        }
        mount_point.pop();
        fs::read_to_string(mount_point.join("dev")).ok().map(|number| number.trim().to_owned())
    }

    /// The device of the btrfs with this bdi, if it has only one.
    fn btrfs_number(&self, bdi: &str) -> Option<String> {
        let file_systems = fs::read_dir(self.path("sys/fs/btrfs")).ok()?;
        let own = file_systems.flatten().find(|entry| {
            fs::canonicalize(entry.path().join("bdi"))
                .is_ok_and(|mount_point| mount_point.file_name() == Some(bdi.as_ref()))
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

/// The counters in a line of `stat`; none if they make no sense.
pub(super) fn counters(text: &str) -> Option<BlockCounters> {
    let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    if numbers.len() < 11 {
        return None;
    }
    let bytes = |at: usize| numbers[at].saturating_mul(SECTOR_BYTES);
    let ns = |at: usize| numbers.get(at).copied().unwrap_or(0).saturating_mul(MILLISECOND);
    Some(BlockCounters {
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
