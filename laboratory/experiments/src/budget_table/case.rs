//! The cells of the table: a load on a device under a law.
//!
//! Owns: the loads and, for each, its default devices.
//! Does not own: carrying them out (`loads`).
//! Invariants: the name of a load is written in one place.

use super::devices::Device;
use super::laws::Law;
use crate::options::named;

named! {
    /// A load.
    pub(super) enum Load {
        Stream = "stream",
        Four = "4-streams",
        Hundred = "100-streams",
        Random = "random",
        Both = "stream-and-random",
        SyncBeside = "fsync-beside",
        Light = "light-beside",
        Sizes = "three-sizes",
        BurstFull = "burst-beside-full",
        BurstHung = "burst-beside-hung",
        RewriteOften = "rewrite-0.8s",
        RewriteSeldom = "rewrite-8s",
    }
}

/// One cell of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) law: Law,
    pub(super) device: &'static Device,
    pub(super) load: Load,
    pub(super) seconds: u64,
    pub(super) memory_bytes: u64,
    pub(super) seed: u64,
    pub(super) quick: bool,
}

impl Load {
    /// The devices for this load unless a run names others.
    pub(super) fn devices(self) -> &'static [&'static str] {
        match self {
            Self::Stream => &["25MB/s", "hdd", "usb", "ssd-stalls", "smr", "hang", "nvme", "object"],
            Self::Four => &["25MB/s", "hdd", "usb", "object"],
            Self::Hundred => &["25MB/s", "hdd", "usb", "nvme", "object"],
            Self::Random => &["hdd", "usb", "ssd-stalls", "smr", "nvme", "object"],
            Self::Both => &["hdd", "usb", "ssd-stalls", "object"],
            Self::SyncBeside => &["25MB/s", "hdd", "usb", "ssd-stalls", "nvme", "object"],
            Self::Light => &["25MB/s", "hang"],
            Self::Sizes => &["25MB/s"],
            Self::BurstFull | Self::BurstHung => &["ssd"],
            Self::RewriteOften | Self::RewriteSeldom => &["ssd", "nvme"],
        }
    }
}
