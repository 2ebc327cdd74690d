//! The cells of the table: a load on a device under a law.
//!
//! Owns: the loads and, for each, its default devices.
//! Does not own: carrying them out (`loads`).
//! Invariants: the name of a load is written in one place.

use super::devices::Device;
use super::laws::Law;

/// A load.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Load {
    Stream,
    Four,
    Hundred,
    Random,
    Both,
    SyncBeside,
    Light,
    Sizes,
    BurstFull,
    BurstHung,
    Rewrite(u64),
}

/// All loads, by their names in options and rows.
pub(super) const LOADS: &[(&str, Load)] = &[
    ("stream", Load::Stream),
    ("4-streams", Load::Four),
    ("100-streams", Load::Hundred),
    ("random", Load::Random),
    ("stream-and-random", Load::Both),
    ("fsync-beside", Load::SyncBeside),
    ("light-beside", Load::Light),
    ("three-sizes", Load::Sizes),
    ("burst-beside-full", Load::BurstFull),
    ("burst-beside-hung", Load::BurstHung),
    ("rewrite-0.8s", Load::Rewrite(800)),
    ("rewrite-8s", Load::Rewrite(8000)),
];

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
    pub(super) fn name(self) -> &'static str {
        LOADS.iter().find(|(_, load)| *load == self).map_or("", |(name, _)| name)
    }

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
            Self::Rewrite(_) => &["ssd", "nvme"],
        }
    }
}
