//! The cells of the table, each a load on a device under a law, and the options that choose them.
//!
//! Owns: the loads with their default devices, the options with their ranges and defaults, the short form of a quick
//! run, the order of the cells.
//! Does not own: running the cells (`loads`).
//! Invariants: a plan that was read can be run. The name of a load is written once.

use super::devices::{self, Device};
use super::laws::Law;
use crate::experiment::{LabError, Request};
use crate::options::{Named, named, options};

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

options! {
    pub(super) OPTIONS {
        /// the laws that are compared
        LAWS_OPTION: Law = choice("laws", "LIST", "budget,linux-6.1,zfs-like,hard");
        /// the loads; all unless given
        LOADS_OPTION: Load = choice("loads", "LIST", "");
        /// the devices, or 'each' for those of each load [each; with --quick the first of each load]
        DEVICES_OPTION: &'static Device = parsed("devices", "LIST", "", devices::device);
        /// for how long writers write, in virtual time; 0: as long as suits the device
        SECONDS: u64 = number("seconds", "NUMBER", "0", 0..=3600);
        /// memory of the machine, all of it cache
        MEMORY: u64 = size("memory", "SIZE", "4GiB", 256 << 20..=64 << 30);
        /// the seed of all random numbers
        SEED: u64 = number("seed", "NUMBER", "1", 0..=u64::MAX);
    }
}

/// The value of `--devices` for those of each load.
const EACH: &str = "each";

/// A quick run has the first laws only: the budget and Linux.
const QUICK_LAWS: usize = 2;

/// The cells to run.
pub(super) struct Plan {
    pub(super) cases: Vec<Case>,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let (mut laws, loads) = (LAWS_OPTION.list(request)?, LOADS_OPTION.list_if_given(request)?);
        if request.quick && !request.gives(&LAWS_OPTION.info) {
            laws.truncate(QUICK_LAWS);
        }
        let loads = loads.unwrap_or_else(|| Load::ALL.iter().map(|(_, load)| *load).collect());
        let each = request.text(&DEVICES_OPTION.info) == EACH;
        let asked = if each { None } else { DEVICES_OPTION.list_if_given(request)? };
        let (all_devices, asked_seconds) = (each || !request.quick, SECONDS.value(request)?);
        let (memory_bytes, seed) = (MEMORY.value(request)?, SEED.value(request)?);
        let frame = afflux_frames::FRAME_BYTES as u64;
        let mut cases = Vec::new();
        for load in loads {
            let own = || load.devices().iter().map(|name| devices::device(name)).collect::<Result<Vec<_>, _>>();
            let of_load = match &asked {
                Some(asked) => asked.clone(),
                None if all_devices => own().map_err(LabError::Failed)?,
                None => own().map_err(LabError::Failed)?.into_iter().take(1).collect(),
            };
            for device in of_load {
                let seconds = match (asked_seconds, request.quick) {
                    (0, true) => device.seconds.1,
                    (0, false) => device.seconds.0,
                    (seconds, _) => seconds,
                };
                let memory_bytes = memory_bytes / frame * frame;
                let case = |law| Case { law, device, load, seconds, memory_bytes, seed, quick: request.quick };
                cases.extend(laws.iter().map(|law| case(*law)));
            }
        }
        Ok(Self { cases })
    }
}
