//! The cells of the table, each a load on a device under a law, and the options that choose them.
//!
//! Owns: the loads with their default devices, the options with their ranges and defaults, the short form of a quick
//! run, the order of the cells.
//! Does not own: running the cells (`loads`).
//! Invariants: a plan that was read can be run. The name of a load is written once.

use clap::ValueEnum;

use super::devices::{self, Device};
use super::laws::Law;
use crate::experiment::{LabError, Request};
use crate::options::{List, list, named, number, size};

/// A load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Load {
    Stream,
    #[value(name = "4-streams")]
    Four,
    #[value(name = "100-streams")]
    Hundred,
    Random,
    StreamAndRandom,
    FsyncBeside,
    LightBeside,
    ThreeSizes,
    BurstBesideFull,
    BurstBesideHung,
    #[value(name = "rewrite-0.8s")]
    RewriteOften,
    #[value(name = "rewrite-8s")]
    RewriteSeldom,
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
            Self::StreamAndRandom => &["hdd", "usb", "ssd-stalls", "object"],
            Self::FsyncBeside => &["25MB/s", "hdd", "usb", "ssd-stalls", "nvme", "object"],
            Self::LightBeside => &["25MB/s", "hang"],
            Self::ThreeSizes => &["25MB/s"],
            Self::BurstBesideFull | Self::BurstBesideHung => &["ssd"],
            Self::RewriteOften | Self::RewriteSeldom => &["ssd", "nvme"],
        }
    }
}

/// The options.
#[derive(clap::Args)]
pub(super) struct CellOptions {
    /// the laws that are compared
    #[arg(long, value_name = "LIST", default_value = "budget,linux-6.1,zfs-like,hard")]
    #[arg(value_parser = list(named::<Law>))]
    laws: List<Law>,
    /// the loads; all unless given
    #[arg(long, value_name = "LIST", value_parser = list(named::<Load>))]
    loads: Option<List<Load>>,
    /// the devices, or 'each' for those of each load [each; with --quick the first of each load]
    #[arg(long, value_name = "LIST", value_parser = chosen)]
    devices: Option<ChosenDevices>,
    /// for how long writers write, in virtual time; 0: as long as suits the device
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = number(0..=3600))]
    seconds: u64,
    /// memory of the machine, all of it cache
    #[arg(long = "memory", value_name = "SIZE", default_value = "4GiB", value_parser = size(256 << 20..=64 << 30))]
    memory_bytes: u64,
    /// the seed of all random numbers
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number(0..=u64::MAX))]
    seed: u64,
}

/// Devices for all loads, or those of each load.
#[derive(Clone)]
enum ChosenDevices {
    Each,
    These(List<&'static Device>),
}

fn chosen(text: &str) -> Result<ChosenDevices, String> {
    match text {
        "each" => Ok(ChosenDevices::Each),
        names => list(devices::device)(names).map(ChosenDevices::These),
    }
}

/// A quick run has the first laws only: the budget and Linux.
const QUICK_LAWS: usize = 2;

/// The cells to run.
pub(super) struct Plan {
    pub(super) cases: Vec<Case>,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let asked: CellOptions = request.read()?;
        let mut laws = asked.laws;
        if request.quick && !request.gives("laws") {
            laws.truncate(QUICK_LAWS);
        }
        let loads = asked.loads.unwrap_or_else(|| Load::value_variants().to_vec());
        let frame = afflux_frames::FRAME_BYTES as u64;
        let memory_bytes = asked.memory_bytes / frame * frame;
        let mut cases = Vec::new();
        for load in loads {
            let own = || load.devices().iter().map(|name| devices::device(name)).collect::<Result<Vec<_>, _>>();
            let of_load = match &asked.devices {
                Some(ChosenDevices::These(these)) => these.clone(),
                None if request.quick => own().map_err(LabError::Failed)?.into_iter().take(1).collect(),
                Some(ChosenDevices::Each) | None => own().map_err(LabError::Failed)?,
            };
            for device in of_load {
                let seconds = match (asked.seconds, request.quick) {
                    (0, true) => device.seconds.1,
                    (0, false) => device.seconds.0,
                    (seconds, _) => seconds,
                };
                let (seed, quick) = (asked.seed, request.quick);
                let case = |law| Case { law, device, load, seconds, memory_bytes, seed, quick };
                cases.extend(laws.iter().map(|law| case(*law)));
            }
        }
        Ok(Self { cases })
    }
}
