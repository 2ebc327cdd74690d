//! The options of s3, read and checked.
//!
//! Owns: the options with their ranges and defaults, the part of each file to read.
//! Does not own: the runs.
//! Invariants: a plan that was read can be run.

use afflux_linux_policies::reclaim::{RECLAIM_POLICIES, ReclaimPolicy, reclaim_policy};

use super::kernel::{DRIFT_FRAMES, Load};
use super::published::{CPUS, FILE_BYTES, READERS, START_S};
use crate::experiment::{LabError, OptionInfo, Request};
use crate::options::{self, TypedOption};

/// The name of the engine's own reclaim.
pub(super) const OWN: &str = "afflux";
/// The name for all of the kernel's forms on the engine.
pub(super) const ON_ENGINE: &str = "on-engine";
/// The kernel's forms on the engine, in their order.
const NAMES_ON_ENGINE: [&str; RECLAIM_POLICIES.len()] = [
    "base-on-engine",
    "wmark-min-on-engine",
    "wmark-high-on-engine",
    "wmark-high-limited-scan-on-engine",
    "time-limit-100ms-on-engine",
    "time-limit-20ms-on-engine",
    "time-limit-10ms-on-engine",
    "stop-above-high-on-engine",
];

const READERS_OPTION: TypedOption<u64> = options::number(
    OptionInfo { name: "readers", value: "N", default: "1000", doc: "tasks that read a file each, from end to end" },
    1..=10_000,
);
const FILE_SIZE: TypedOption<u64> = options::size(
    OptionInfo { name: "file-size", value: "SIZE", default: "1GiB", doc: "bytes of each file, all of it a hole" },
    1 << 20..=1 << 40,
);
const MEMORY: TypedOption<u64> = options::size(
    OptionInfo { name: "memory", value: "SIZE", default: "3GiB", doc: "memory of the machine" },
    64 << 20..=64 << 30,
);
const CPUS_OPTION: TypedOption<u64> =
    options::number(OptionInfo { name: "cpus", value: "N", default: "8", doc: "CPUs of the machine" }, 1..=32);
const VARIANTS: TypedOption<Variant> = options::parsed(
    OptionInfo {
        name: "variants",
        value: "LIST",
        default: "all",
        doc: "forms of reclaim by name, afflux, all of these; NAME-on-engine, on-engine: the engine with the kernel's form",
    },
    Variant::read,
);
const FULL: TypedOption<bool> = options::choice(
    OptionInfo {
        name: "full",
        value: "",
        default: "no",
        doc: "read all of each file [an eighth, and counts are scaled]",
    },
    &[("no", false), ("yes", true)],
    "yes or no",
);
const DIPS: TypedOption<bool> = options::choice(
    OptionInfo {
        name: "dips",
        value: "yes|no",
        default: "yes",
        doc: "the patched forms try again down to a quarter below the min mark, as posted",
    },
    &[("no", false), ("yes", true)],
    "yes or no",
);
const DRIFT: TypedOption<u64> = options::number(
    OptionInfo {
        name: "drift",
        value: "FRAMES",
        default: "48",
        doc: "how far the free count of each CPU may lag; the default is the kernel's formula's",
    },
    0..=125,
);

pub(super) const OPTIONS: &[OptionInfo] = &[
    READERS_OPTION.info,
    FILE_SIZE.info,
    MEMORY.info,
    CPUS_OPTION.info,
    VARIANTS.info,
    FULL.info,
    DIPS.info,
    DRIFT.info,
];

/// The reclaim of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    All,
    Kernel(ReclaimPolicy),
    Own,
    /// The kernel's form with this number, on the engine.
    OnEngine(usize),
    AllOnEngine,
}

impl Variant {
    fn read(name: &str) -> Result<Self, String> {
        match name {
            "all" => Ok(Self::All),
            OWN => Ok(Self::Own),
            ON_ENGINE => Ok(Self::AllOnEngine),
            _ => match NAMES_ON_ENGINE.iter().position(|known| *known == name) {
                Some(number) => Ok(Self::OnEngine(number)),
                None => reclaim_policy(name).map(Self::Kernel).map_err(|error| {
                    format!("{error}, {OWN}, {ON_ENGINE}, each of the forms as NAME-{ON_ENGINE}, and all")
                }),
            },
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Kernel(policy) => policy.name,
            Self::Own => OWN,
            Self::OnEngine(number) => NAMES_ON_ENGINE[number],
            Self::AllOnEngine => ON_ENGINE,
        }
    }
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The requested load, with whole files.
    pub(super) load: Load,
    /// A run reads one `part`-th of each file; the start is shortened in the same way.
    pub(super) part: u64,
    pub(super) variants: Vec<Variant>,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let (readers, cpus) = (READERS_OPTION.value(request)?, CPUS_OPTION.value(request)?);
        let file_bytes = FILE_SIZE.value(request)? / 4096 * 4096;
        let full = FULL.value(request)?;
        let dips = DIPS.value(request)?;
        let on_engine = || (0..RECLAIM_POLICIES.len()).map(Variant::OnEngine);
        let variants = VARIANTS.list(request)?.into_iter().flat_map(|variant| match variant {
            Variant::All => RECLAIM_POLICIES.map(Variant::Kernel).into_iter().chain([Variant::Own]).collect(),
            Variant::AllOnEngine => on_engine().collect(),
            one => vec![one],
        });
        let dipping = |variant| match variant {
            Variant::Kernel(policy) => Variant::Kernel(policy.dipping(dips && policy.dips)),
            other => other,
        };
        let load = Load {
            seed: 1,
            readers: readers as usize,
            file_bytes,
            memory_bytes: MEMORY.value(request)?,
            cpus: cpus as usize,
            start_ns: start_ns(readers, file_bytes, cpus),
            drift_frames: DRIFT.value(request)? as u32,
        };
        let part = match (full, request.quick) {
            (true, _) => 1,
            (false, false) => 8,
            (false, true) => 64,
        };
        Ok(Self { load, part, variants: variants.map(dipping).collect() })
    }

    /// The load of the runs: a part of each file.
    pub(super) fn scaled(&self) -> Load {
        let file_bytes = (self.load.file_bytes / self.part / 4096).max(1) * 4096;
        Load { file_bytes, start_ns: self.load.start_ns / self.part, ..self.load }
    }
}

/// The start takes longer on a machine that reads longer: it has the published share of the whole time.
fn start_ns(readers: u64, file_bytes: u64, cpus: u64) -> u64 {
    let work = u128::from(readers) * u128::from(file_bytes) * CPUS as u128;
    let of = READERS as u128 * u128::from(FILE_BYTES) * u128::from(cpus);
    (u128::from(START_S) * 1_000_000_000 * work / of).min(u64::MAX.into()) as u64
}

const _: () = assert!(DRIFT_FRAMES == 48, "the default of --drift says so");
