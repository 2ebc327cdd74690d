//! The plan: the races, and the subjects that run them.
//!
//! Owns: the options and their ranges, the short form.
//! Does not own: the runs.
//! Invariants: an unusable value is refused before anything is set up.

use std::path::PathBuf;

use crate::contenders::engine_options::directory;
use crate::experiment::{LabError, OptionInfo, Request, SWITCH_ON};
use crate::options::{self, TypedOption, info};

/// Bytes of a write.
pub(super) const BLOCK_BYTES: u64 = 64 << 10;
/// Seconds from the change of the disk's speed until the sync.
const FOLLOW_S: u64 = 10;

/// A race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GovernRace {
    /// A writer at full speed, then a sync of everything.
    FullSpeed,
    /// A writer at two fifths of the disk's rate, which need never wait.
    Paced,
    /// The disk gets slower under a writer, and all data are synced ten seconds later.
    Slower,
    /// A burst to a fast disk beside a writer to the slow one.
    Burst,
}

/// The setter of the device's dirty limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Subject {
    /// No limit for the device.
    Kernel,
    /// `max_bytes`, set once to the number of bytes that the disk writes in the budget.
    ByHand,
    /// The governor, which has never seen the disk.
    Governed,
}

impl GovernRace {
    const ALL: &[(&str, Self)] =
        &[("full-speed", Self::FullSpeed), ("paced", Self::Paced), ("slower", Self::Slower), ("burst", Self::Burst)];

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, race)| *race == self).map_or("", |(name, _)| name)
    }
}

impl Subject {
    pub(super) const ALL: [Self; 3] = [Self::Kernel, Self::ByHand, Self::Governed];
    const ASKED: &[(&str, Self)] = &[("kernel", Self::Kernel), ("by-hand", Self::ByHand), ("governed", Self::Governed)];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::ByHand => "max_bytes by hand",
            Self::Governed => "governed",
        }
    }
}

const RATE: TypedOption<u64> =
    options::rate(info("rate", "RATE", "25MB", "bytes a second of the disk"), 1_000_000..=1_000_000_000);
const SLOW_RATE: TypedOption<u64> =
    options::rate(info("slow-rate", "RATE", "5MB", "slower: its later rate"), 1_000_000..=1_000_000_000);
const FAST_RATE: TypedOption<u64> = options::rate(
    info("fast-rate", "RATE", "200MB", "burst: bytes a second of the fast disk"),
    1_000_000..=10_000_000_000,
);
const BURST: TypedOption<u64> =
    options::size(info("burst", "SIZE", "150MB", "burst: bytes written to the fast disk"), 1_000_000..=4_000_000_000);
const SECONDS: TypedOption<u64> = options::number(info("seconds", "N", "45", "how long is written"), 2..=600);
const BUDGET: TypedOption<u64> =
    options::number(info("budget-ms", "N", "1000", "the budget of each disk, in milliseconds"), 10..=60_000);
const RACES: TypedOption<GovernRace> = options::choice(
    info("races", "LIST", "full-speed,paced,slower,burst", "which races"),
    GovernRace::ALL,
    "'{value}' is none of {known}",
);
const SUBJECTS: TypedOption<Subject> = options::choice(
    info(
        "subjects",
        "LIST",
        "kernel,by-hand,governed",
        "the holder of the disk's limit: nobody, max_bytes set once and right, the governor",
    ),
    Subject::ASKED,
    "'{value}' is none of {known}",
);
const REPEATS: TypedOption<u64> = options::number(
    info(
        "repeats",
        "N",
        "3",
        "measured: how often each is run; the kernel by itself once, which takes as long as all others",
    ),
    1..=20,
);
const ONLY: OptionInfo = info("measured-only", "", "", "with --measured: leave the simulated part out");
const DIRECTORY: OptionInfo = info(
    "directory",
    "DIR",
    "",
    "measured: where the disks' images are made, on a disk file system (default: the temporary directory, or /var/tmp if that is in memory)",
);
/// All of them.
pub(super) const OPTIONS: &[OptionInfo] = &[
    RATE.info,
    SLOW_RATE.info,
    FAST_RATE.info,
    BURST.info,
    SECONDS.info,
    BUDGET.info,
    RACES.info,
    SUBJECTS.info,
    REPEATS.info,
    ONLY,
    DIRECTORY,
];

/// The plan of an experiment.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) rate_bytes_per_s: u64,
    pub(super) slow_bytes_per_s: u64,
    pub(super) fast_bytes_per_s: u64,
    pub(super) burst_bytes: u64,
    pub(super) seconds: u64,
    /// Seconds from the change of the disk's speed until the sync of all data.
    pub(super) follow_s: u64,
    pub(super) budget_ms: u64,
    pub(super) races: Vec<GovernRace>,
    pub(super) asked: Vec<Subject>,
    pub(super) repeats: u64,
    pub(super) measured_only: bool,
    pub(super) directory: PathBuf,
    /// Page memory of the simulated machine.
    pub(super) memory_bytes: u64,
    pub(super) quick: bool,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        // Virtual seconds are cheap, so only what is measured gets shorter.
        let is_short = request.quick && request.measured;
        let short = Request { quick: is_short, ..request.clone() };
        Ok(Self {
            rate_bytes_per_s: RATE.value(request)?,
            slow_bytes_per_s: SLOW_RATE.value(request)?,
            fast_bytes_per_s: FAST_RATE.value(request)?,
            burst_bytes: BURST.value_or_quick(&short, 16_000_000)?,
            seconds: SECONDS.value_or_quick(&short, 4)?,
            follow_s: if is_short { 2 } else { FOLLOW_S },
            budget_ms: BUDGET.value(request)?,
            races: RACES.list(request)?,
            asked: SUBJECTS.list(request)?,
            repeats: REPEATS.value_or_quick(request, 1)?,
            measured_only: request.measured && request.text(&ONLY) == SWITCH_ON,
            directory: if request.measured { directory(request, &DIRECTORY)? } else { PathBuf::new() },
            memory_bytes: if is_short { 512 << 20 } else { 4 << 30 },
            quick: request.quick,
        })
    }

    pub(super) fn budget_ns(&self) -> u64 {
        self.budget_ms * 1_000_000
    }

    /// The number of bytes that a disk of that rate writes in the budget.
    pub(super) fn right_bytes(&self, bytes_per_s: u64) -> u64 {
        bytes_per_s * self.budget_ms / 1000
    }

    fn subjects(&self, race: GovernRace) -> impl Iterator<Item = Subject> {
        let is_run = self.races.contains(&race);
        // Without a governor, no limit follows a disk that gets slower.
        let has = move |subject: &Subject| is_run && !(race == GovernRace::Slower && *subject == Subject::Kernel);
        Subject::ALL.into_iter().filter(has).filter(|subject| self.asked.contains(subject))
    }

    pub(super) fn simulated(&self) -> Vec<(GovernRace, Subject)> {
        let races = [GovernRace::FullSpeed, GovernRace::Paced, GovernRace::Slower].into_iter();
        races.flat_map(|race| self.subjects(race).map(move |subject| (race, subject))).collect()
    }

    /// The runs in turns, every other time in the reverse order.
    pub(super) fn measured(&self) -> Vec<(GovernRace, Subject)> {
        let mut all = Vec::new();
        for repeat in 0..self.repeats {
            for (_, race) in GovernRace::ALL {
                let subjects = self.subjects(*race).filter(|subject| repeat == 0 || *subject != Subject::Kernel);
                let mut turn: Vec<_> = subjects.map(|subject| (*race, subject)).collect();
                if repeat % 2 == 1 {
                    turn.reverse();
                }
                all.extend(turn);
            }
        }
        all
    }
}
