//! The plan: the races, and the subjects that run them.
//!
//! Owns: the options and their ranges, the short form.
//! Does not own: the runs.
//! Invariants: an unusable value is refused before anything is set up.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::contenders::engine_options::RaceOptions;
use crate::contenders::ordered_runs;
use crate::experiment::{LabError, Request};
use crate::options::{List, list, named, number, rate, size};

/// Bytes of a write.
pub(super) const BLOCK_BYTES: u64 = 64 << 10;
/// Seconds from the change of the disk's speed until the sync.
const FOLLOW_S: u64 = 10;

/// A race.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Subject {
    /// No limit for the device.
    Kernel,
    /// `max_bytes`, set once to the number of bytes that the disk writes in the budget.
    ByHand,
    /// The governor, which has never seen the disk.
    Governed,
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

/// The plan of an experiment.
#[derive(Debug, clap::Args)]
pub(super) struct Plan {
    #[command(flatten)]
    pub(super) race: RaceOptions,
    /// slower: its later rate
    #[arg(long = "slow-rate", value_name = "RATE", default_value = "5MB")]
    #[arg(value_parser = rate(1_000_000..=1_000_000_000))]
    pub(super) slow_bytes_per_s: u64,
    /// burst: bytes written to the fast disk
    #[arg(id = "burst", long, value_name = "SIZE", default_value = "150MB")]
    #[arg(value_parser = size(1_000_000..=4_000_000_000))]
    pub(super) burst_bytes: u64,
    /// the budget of each disk, in milliseconds
    #[arg(long, value_name = "N", default_value = "1000", value_parser = number(10..=60_000))]
    pub(super) budget_ms: u64,
    /// which races
    #[arg(long, value_name = "LIST", default_value = "full-speed,paced,slower,burst")]
    #[arg(value_parser = list(named::<GovernRace>))]
    pub(super) races: List<GovernRace>,
    /// the holder of the disk's limit: nobody (measured once, which takes as long as all others), max_bytes set once
    /// and right, the governor
    #[arg(long = "subjects", value_name = "LIST", default_value = "kernel,by-hand,governed")]
    #[arg(value_parser = list(named::<Subject>))]
    pub(super) asked: List<Subject>,
    /// with --measured: leave the simulated part out
    #[arg(long)]
    pub(super) measured_only: bool,
    #[arg(skip)]
    pub(super) directory: PathBuf,
    /// Seconds from the change of the disk's speed until the sync of all data.
    #[arg(skip = FOLLOW_S)]
    pub(super) follow_s: u64,
    /// Page memory of the simulated machine.
    #[arg(skip = 4_u64 << 30)]
    pub(super) memory_bytes: u64,
    #[arg(skip)]
    pub(super) quick: bool,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let mut plan: Self = request.read()?;
        plan.quick = request.quick;
        plan.measured_only &= request.measured;
        if !request.measured {
            return Ok(plan);
        }
        // Virtual seconds are cheap, so only what is measured gets shorter.
        request.shorten("burst", &mut plan.burst_bytes, 16_000_000);
        request.shorten("seconds", &mut plan.race.seconds, 4);
        if request.quick {
            (plan.follow_s, plan.memory_bytes) = (2, 512 << 20);
        }
        Ok(Self { directory: plan.race.run.directory(request)?, ..plan })
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
        Subject::value_variants().iter().copied().filter(has).filter(|subject| self.asked.contains(subject))
    }

    pub(super) fn simulated(&self) -> Vec<(GovernRace, Subject)> {
        let races = [GovernRace::FullSpeed, GovernRace::Paced, GovernRace::Slower].into_iter();
        races.flat_map(|race| self.subjects(race).map(move |subject| (race, subject))).collect()
    }

    /// The runs one after the other, every other time in the reverse order.
    pub(super) fn measured(&self) -> Vec<(GovernRace, Subject)> {
        let again = |subject: &Subject, repeat| repeat == 1 || *subject != Subject::Kernel;
        let subjects = |race, repeat| self.subjects(race).filter(|subject| again(subject, repeat)).collect();
        let ordered = ordered_runs(self.race.run.repeats, GovernRace::value_variants(), subjects);
        ordered.into_iter().map(|(_, race, subject)| (race, subject)).collect()
    }
}
