//! The plan: the races, the contenders, the disks, the repeats.
//!
//! Owns: the options and their ranges, the short form, the expected time.
//! Does not own: the runs.
//! Invariants: an unusable value is refused before anything is set up.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::contenders::EngineSetup;
use crate::contenders::engine_options::{EngineOptions, RaceOptions};
use crate::contenders::stage::{file_bytes_max, image_bytes};
use crate::experiment::{LabError, Request};
use crate::hardware::SlowDisk;
use crate::host::dirty_limit_bytes;
use crate::options::{List, list, named, size};

/// Bytes of a write.
pub(super) const BLOCK_BYTES: u64 = 64 << 10;
/// Seconds that the writer beside has before the looks at others begin, and the length of these looks.
const FILL_S: u64 = 10;
const SYNCS_S: u64 = 20;
/// Seconds to make a disk and take it down.
const SETUP_S: u64 = 4;
/// The assumed dirty limit of the machine if the kernel does not report it.
const LIMIT_BYTES: u64 = 4 << 30;

/// A race.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum WritebackRace {
    FullSpeed,
    AtRate,
    SmallSync,
    Burst,
    Direct,
}

/// A contender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Subject {
    /// The kernel's page cache with its defaults.
    Kernel,
    /// The kernel's page cache with `max_bytes` and `strict_limit` for the device.
    Tuned,
    /// O_DIRECT.
    Raw,
    /// The engine, with the policy at this index of the plan's list.
    Ours(usize, String),
}

impl Subject {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Kernel => "kernel".to_owned(),
            Self::Tuned => "kernel, tuned".to_owned(),
            Self::Raw => "O_DIRECT".to_owned(),
            Self::Ours(_, name) => name.clone(),
        }
    }
}

impl WritebackRace {
    /// The reason why this machine cannot run the race, if there is one.
    pub(super) fn missing(self) -> Option<String> {
        if self == Self::Direct {
            return None;
        }
        SlowDisk::probe().err().map(|error| error.to_string())
    }
}

/// The plan of an experiment.
#[derive(Debug, clap::Args)]
pub(super) struct Plan {
    /// which races
    #[arg(long, value_name = "LIST", default_value = "full-speed,at-rate,small-sync,burst,direct")]
    #[arg(value_parser = list(named::<WritebackRace>))]
    pub(super) races: List<WritebackRace>,
    #[command(flatten)]
    pub(super) race: RaceOptions,
    /// max_bytes of the tuned kernel's device
    #[arg(long, value_name = "SIZE", default_value = "50MB", value_parser = size(1_000_000..=100_000_000_000))]
    pub(super) max_bytes: u64,
    /// burst: bytes written to the fast disk
    #[arg(id = "burst", long, value_name = "SIZE", default_value = "400MB")]
    #[arg(value_parser = size(1_000_000..=4_000_000_000))]
    pub(super) burst_bytes: u64,
    /// direct: bytes written to the real disk
    #[arg(id = "size", long, value_name = "SIZE", default_value = "2GB", value_parser = size(1 << 20..=100_000_000_000))]
    pub(super) direct_bytes: u64,
    #[command(flatten)]
    pub(super) engine: EngineOptions,
    #[arg(skip)]
    pub(super) engines: Vec<EngineSetup>,
    #[arg(skip)]
    pub(super) directory: PathBuf,
    #[arg(skip = FILL_S)]
    pub(super) fill_s: u64,
    #[arg(skip = SYNCS_S)]
    pub(super) syncs_s: u64,
    /// The machine's dirty limit.
    #[arg(skip = dirty_limit_bytes().unwrap_or(LIMIT_BYTES))]
    pub(super) limit_bytes: u64,
    #[arg(skip)]
    pub(super) quick: bool,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let mut plan: Self = request.read()?;
        request.shorten("seconds", &mut plan.race.seconds, 2);
        request.shorten("max_bytes", &mut plan.max_bytes, 16_000_000);
        request.shorten("burst", &mut plan.burst_bytes, 8_000_000);
        request.shorten("size", &mut plan.direct_bytes, 32 << 20);
        if request.quick {
            (plan.fill_s, plan.syncs_s, plan.quick) = (1, 1, true);
        }
        Ok(Self { engines: plan.engine.engines(request)?, directory: plan.race.run.directory(request)?, ..plan })
    }

    pub(super) fn subjects(&self, race: WritebackRace) -> Vec<Subject> {
        let ours = self.engines.iter().enumerate().map(|(at, engine)| Subject::Ours(at, engine.name()));
        let first = if race == WritebackRace::Direct {
            [Subject::Raw, Subject::Kernel]
        } else {
            [Subject::Kernel, Subject::Tuned]
        };
        first.into_iter().chain(ours).collect()
    }

    /// Bytes of a slow disk's image.
    pub(super) fn image_bytes(&self) -> u64 {
        let seconds = self.race.seconds.max(self.fill_s + self.syncs_s);
        image_bytes(self.limit_bytes, seconds * self.race.rate_bytes_per_s, self.quick)
    }

    /// Most bytes of a file on it.
    pub(super) fn stream_bytes_max(&self) -> u64 {
        file_bytes_max(self.image_bytes())
    }

    /// Rough estimate of the time of these races, in seconds.
    pub(super) fn expected_s(&self, races: &[WritebackRace]) -> u64 {
        let dirty = (self.limit_bytes / 100 * 85).min(self.stream_bytes_max());
        let drain_s = dirty / self.race.rate_bytes_per_s;
        let one = |race: WritebackRace, subject: &Subject| match (race, subject) {
            (WritebackRace::FullSpeed, Subject::Kernel) => SETUP_S + self.race.seconds + drain_s,
            (WritebackRace::AtRate, Subject::Kernel) => SETUP_S + self.race.seconds + drain_s.min(self.race.seconds),
            (WritebackRace::FullSpeed | WritebackRace::AtRate, _) => SETUP_S + self.race.seconds + 1,
            (WritebackRace::SmallSync, _) => SETUP_S + self.fill_s + self.syncs_s + 1,
            (WritebackRace::Burst, _) => 2 * SETUP_S + self.fill_s + 8 * self.burst_bytes / self.race.fast_bytes_per_s,
            (WritebackRace::Direct, _) => 1 + self.direct_bytes / 1_000_000_000,
        };
        let all = |race: &WritebackRace| self.subjects(*race).iter().map(|subject| one(*race, subject)).sum::<u64>();
        self.race.run.repeats * races.iter().map(all).sum::<u64>()
    }
}

#[cfg(test)]
mod tests;
