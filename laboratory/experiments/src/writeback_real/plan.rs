//! The plan: the races, the contenders, the disks, the repeats.
//!
//! Owns: the options and their ranges, the short form, the expected time.
//! Does not own: the runs.
//! Invariants: an unusable value is refused before anything is set up.

use std::path::PathBuf;

use crate::contenders::EngineSetup;
use crate::contenders::engine_options::{DIRECTORY, KNOBS, MEMORY, POLICY, directory, engines};
use crate::contenders::stage::{file_bytes_max, image_bytes};
use crate::hardware::SlowDisk;
use crate::host::dirty_limit_bytes;
use crate::options::{named, options, values};

/// Bytes of a write.
pub(super) const BLOCK_BYTES: u64 = 64 << 10;
/// Seconds that the writer beside has before the looks at others begin, and the length of these looks.
const FILL_S: u64 = 10;
const SYNCS_S: u64 = 20;
/// Seconds to make a disk and take it down.
const SETUP_S: u64 = 4;
/// The assumed dirty limit of the machine if the kernel does not report it.
const LIMIT_BYTES: u64 = 4 << 30;

named! {
    /// A race.
    pub(super) enum WritebackRace {
        FullSpeed = "full-speed",
        AtRate = "at-rate",
        SmallSync = "small-sync",
        Burst = "burst",
        Direct = "direct",
    }
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

options! {
    pub(super) OPTIONS [POLICY, KNOBS, MEMORY, DIRECTORY] {
        /// which races
        RACES: WritebackRace = choice("races", "LIST", "full-speed,at-rate,small-sync,burst,direct");
        /// bytes a second of the slow disk
        RATE: u64 = rate("rate", "RATE", "25MB", 1_000_000..=10_000_000_000);
        /// burst: bytes a second of the fast disk
        FAST_RATE: u64 = rate("fast-rate", "RATE", "200MB", 1_000_000..=10_000_000_000);
        /// full-speed, at-rate: how long is written
        SECONDS: u64 = number("seconds", "N", "45", 2..=600);
        /// how often each contender runs each race
        REPEATS: u64 = number("repeats", "N", "3", 1..=20);
        /// max_bytes of the tuned kernel's device
        MAX_BYTES: u64 = size("max-bytes", "SIZE", "50MB", 1_000_000..=100_000_000_000);
        /// burst: bytes written to the fast disk
        BURST: u64 = size("burst", "SIZE", "400MB", 1_000_000..=4_000_000_000);
        /// direct: bytes written to the real disk
        SIZE: u64 = size("size", "SIZE", "2GB", 1 << 20..=100_000_000_000);
    }
}

values! {
    /// The plan of an experiment.
    #[derive(Debug)]
    pub(super) struct Plan = read(request) {
        pub(super) races: Vec<WritebackRace> = RACES.list(request)?,
        pub(super) memory_bytes: u64 = MEMORY.value_or_quick(request, 64 << 20)?,
        pub(super) engines: Vec<EngineSetup> = engines(request, memory_bytes)?,
        pub(super) rate_bytes_per_s: u64 = RATE.value(request)?,
        pub(super) fast_bytes_per_s: u64 = FAST_RATE.value(request)?,
        pub(super) seconds: u64 = SECONDS.value_or_quick(request, 2)?,
        pub(super) fill_s: u64 = if request.quick { 1 } else { FILL_S },
        pub(super) syncs_s: u64 = if request.quick { 1 } else { SYNCS_S },
        pub(super) repeats: u64 = REPEATS.value_or_quick(request, 1)?,
        pub(super) max_bytes: u64 = MAX_BYTES.value_or_quick(request, 16_000_000)?,
        pub(super) burst_bytes: u64 = BURST.value_or_quick(request, 8_000_000)?,
        pub(super) direct_bytes: u64 = SIZE.value_or_quick(request, 32 << 20)?,
        pub(super) directory: PathBuf = directory(request)?,
        /// The machine's dirty limit.
        pub(super) limit_bytes: u64 = dirty_limit_bytes().unwrap_or(LIMIT_BYTES),
        pub(super) quick: bool = request.quick,
    }
}

impl Plan {
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
        let seconds = self.seconds.max(self.fill_s + self.syncs_s);
        image_bytes(self.limit_bytes, seconds * self.rate_bytes_per_s, self.quick)
    }

    /// Most bytes of a file on it.
    pub(super) fn stream_bytes_max(&self) -> u64 {
        file_bytes_max(self.image_bytes())
    }

    /// Rough estimate of the time of these races, in seconds.
    pub(super) fn expected_s(&self, races: &[WritebackRace]) -> u64 {
        let dirty = (self.limit_bytes / 100 * 85).min(self.stream_bytes_max());
        let drain_s = dirty / self.rate_bytes_per_s;
        let one = |race: WritebackRace, subject: &Subject| match (race, subject) {
            (WritebackRace::FullSpeed, Subject::Kernel) => SETUP_S + self.seconds + drain_s,
            (WritebackRace::AtRate, Subject::Kernel) => SETUP_S + self.seconds + drain_s.min(self.seconds),
            (WritebackRace::FullSpeed | WritebackRace::AtRate, _) => SETUP_S + self.seconds + 1,
            (WritebackRace::SmallSync, _) => SETUP_S + self.fill_s + self.syncs_s + 1,
            (WritebackRace::Burst, _) => 2 * SETUP_S + self.fill_s + 8 * self.burst_bytes / self.fast_bytes_per_s,
            (WritebackRace::Direct, _) => 1 + self.direct_bytes / 1_000_000_000,
        };
        let all = |race: &WritebackRace| self.subjects(*race).iter().map(|subject| one(*race, subject)).sum::<u64>();
        self.repeats * races.iter().map(all).sum::<u64>()
    }
}

#[cfg(test)]
mod tests;
