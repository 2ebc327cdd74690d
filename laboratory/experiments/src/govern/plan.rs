//! The plan: the races, and the subjects that run them.
//!
//! Owns: the options and their ranges, the short form.
//! Does not own: the runs.
//! Invariants: an unusable value is refused before anything is set up.

use std::path::PathBuf;

use crate::contenders::engine_options::{DIRECTORY, directory};
use crate::contenders::ordered_runs;
use crate::experiment::Request;
use crate::options::{Named, named, options, values};

/// Bytes of a write.
pub(super) const BLOCK_BYTES: u64 = 64 << 10;
/// Seconds from the change of the disk's speed until the sync.
const FOLLOW_S: u64 = 10;

named! {
    /// A race.
    pub(super) enum GovernRace {
        /// A writer at full speed, then a sync of everything.
        FullSpeed = "full-speed",
        /// A writer at two fifths of the disk's rate, which need never wait.
        Paced = "paced",
        /// The disk gets slower under a writer, and all data are synced ten seconds later.
        Slower = "slower",
        /// A burst to a fast disk beside a writer to the slow one.
        Burst = "burst",
    }
}

named! {
    /// The setter of the device's dirty limit.
    pub(super) enum Subject {
        /// No limit for the device.
        Kernel = "kernel",
        /// `max_bytes`, set once to the number of bytes that the disk writes in the budget.
        ByHand = "by-hand",
        /// The governor, which has never seen the disk.
        Governed = "governed",
    }
}

impl Subject {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::ByHand => "max_bytes by hand",
            Self::Governed => "governed",
        }
    }
}

options! {
    pub(super) OPTIONS [DIRECTORY] {
        /// bytes a second of the disk
        RATE: u64 = rate("rate", "RATE", "25MB", 1_000_000..=1_000_000_000);
        /// slower: its later rate
        SLOW_RATE: u64 = rate("slow-rate", "RATE", "5MB", 1_000_000..=1_000_000_000);
        /// burst: bytes a second of the fast disk
        FAST_RATE: u64 = rate("fast-rate", "RATE", "200MB", 1_000_000..=10_000_000_000);
        /// burst: bytes written to the fast disk
        BURST: u64 = size("burst", "SIZE", "150MB", 1_000_000..=4_000_000_000);
        /// how long is written
        SECONDS: u64 = number("seconds", "N", "45", 2..=600);
        /// the budget of each disk, in milliseconds
        BUDGET: u64 = number("budget-ms", "N", "1000", 10..=60_000);
        /// which races
        RACES: GovernRace = choice("races", "LIST", "full-speed,paced,slower,burst");
        /// the holder of the disk's limit: nobody, max_bytes set once and right, the governor
        SUBJECTS: Subject = choice("subjects", "LIST", "kernel,by-hand,governed");
        /// measured: how often each is run; the kernel by itself once, which takes as long as all others
        REPEATS: u64 = number("repeats", "N", "3", 1..=20);
        /// with --measured: leave the simulated part out
        ONLY: bool = switch("measured-only", "", "");
    }
}

/// Virtual seconds are cheap, so only what is measured gets shorter.
fn short(request: &Request) -> Request {
    Request { quick: request.quick && request.measured, ..request.clone() }
}

values! {
    /// The plan of an experiment.
    #[derive(Debug)]
    pub(super) struct Plan = read(request) {
        pub(super) rate_bytes_per_s: u64 = RATE.value(request)?,
        pub(super) slow_bytes_per_s: u64 = SLOW_RATE.value(request)?,
        pub(super) fast_bytes_per_s: u64 = FAST_RATE.value(request)?,
        pub(super) burst_bytes: u64 = BURST.value_or_quick(&short(request), 16_000_000)?,
        pub(super) seconds: u64 = SECONDS.value_or_quick(&short(request), 4)?,
        /// Seconds from the change of the disk's speed until the sync of all data.
        pub(super) follow_s: u64 = if short(request).quick { 2 } else { FOLLOW_S },
        pub(super) budget_ms: u64 = BUDGET.value(request)?,
        pub(super) races: Vec<GovernRace> = RACES.list(request)?,
        pub(super) asked: Vec<Subject> = SUBJECTS.list(request)?,
        pub(super) repeats: u64 = REPEATS.value_or_quick(request, 1)?,
        pub(super) measured_only: bool = request.measured && ONLY.value(request)?,
        pub(super) directory: PathBuf = if request.measured { directory(request)? } else { PathBuf::new() },
        /// Page memory of the simulated machine.
        pub(super) memory_bytes: u64 = if short(request).quick { 512 << 20 } else { 4 << 30 },
        pub(super) quick: bool = request.quick,
    }
}

impl Plan {
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
        Subject::ALL.iter().map(|(_, subject)| *subject).filter(has).filter(|subject| self.asked.contains(subject))
    }

    pub(super) fn simulated(&self) -> Vec<(GovernRace, Subject)> {
        let races = [GovernRace::FullSpeed, GovernRace::Paced, GovernRace::Slower].into_iter();
        races.flat_map(|race| self.subjects(race).map(move |subject| (race, subject))).collect()
    }

    /// The runs one after the other, every other time in the reverse order.
    pub(super) fn measured(&self) -> Vec<(GovernRace, Subject)> {
        let races = GovernRace::ALL.iter().map(|(_, race)| *race).collect::<Vec<_>>();
        let again = |subject: &Subject, repeat| repeat == 1 || *subject != Subject::Kernel;
        let subjects = |race, repeat| self.subjects(race).filter(|subject| again(subject, repeat)).collect();
        ordered_runs(self.repeats, &races, subjects).into_iter().map(|(_, race, subject)| (race, subject)).collect()
    }
}
