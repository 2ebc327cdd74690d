//! The cases of the race, and the goals.
//!
//! Owns: the list of cases with their contenders and units, the list of goals.
//! Does not own: the measurements (`build`, `calls`, `names`, `slow`).
//! Invariants: a goal compares figures of one round.

use afflux_rig::Bound;
use afflux_scratch::Processors;
use anyhow::Result;

use crate::build;
use crate::calls;
use crate::contenders::{Contenders, Who};
use crate::figure::Figure;
use crate::names;
use crate::options::Options;
use crate::slow;

/// The work of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Random calls on a file that is in the contender's cache.
    Calls { write: bool, block: usize },
    /// Files are made and removed.
    CreateAndUnlink,
    /// tar extracts a tree.
    Untar,
    /// cargo builds a crate of this repository.
    CargoBuild,
    /// Small syncs beside a stream to the same slow disk.
    SyncBesideStream,
    /// A burst to a fast disk while a slow one is full.
    BurstBesideSlow,
}

/// The unit of a case's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Median microseconds of a call.
    Us,
    /// A second.
    Rate,
    /// Longest milliseconds.
    Ms,
    /// Seconds in all.
    Seconds,
    /// A ratio of times.
    Times,
}

/// One case.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) what: What,
    pub(crate) who: &'static [Who],
    pub(crate) goals: &'static [Goal],
}

/// The figure to compare with.
#[derive(Clone, Copy)]
pub(crate) enum Against {
    Contender(Who),
    Nothing,
}

/// A goal of a case.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    pub(crate) of: Who,
    pub(crate) against: Against,
    pub(crate) bound: Bound,
}

/// A case with the figures of its contenders.
pub(crate) struct Raced {
    pub(crate) case: Case,
    pub(crate) figures: afflux_rig::Raced<Who, Figure>,
}

const fn at_most(of: Who, factor: f64, against: Who) -> Goal {
    Goal { of, against: Against::Contender(against), bound: Bound::AtMost(factor) }
}

const fn at_least(of: Who, factor: f64, against: Who) -> Goal {
    Goal { of, against: Against::Contender(against), bound: Bound::AtLeast(factor) }
}

const fn limit(of: Who, most: f64) -> Goal {
    Goal { of, against: Against::Nothing, bound: Bound::AtMost(most) }
}

const DIRECT: &[Who] = &[
    Who::Host,
    Who::Bare,
    Who::Afflux,
    Who::PassthroughLlDirect,
    Who::PassthroughHpDirect,
    Who::MergerfsDirect,
    Who::Nfs,
];
const CACHED: &[Who] = &[Who::Host, Who::AffluxKernelCache, Who::PassthroughLl, Who::PassthroughHp, Who::Mergerfs];
const NAMES: &[Who] = &[Who::Host, Who::Afflux, Who::PassthroughLl, Who::PassthroughHp, Who::Mergerfs, Who::Nfs];
const SMALL: &[Goal] = &[at_most(Who::Afflux, 1.25, Who::Bare), at_most(Who::Afflux, 1.0, Who::PassthroughLlDirect)];
/// Nine tenths of the bare server's rate; calls come one after the other.
const LARGE: &[Goal] =
    &[at_most(Who::Afflux, 1.0 / 0.9, Who::Bare), at_most(Who::Afflux, 1.0, Who::PassthroughHpDirect)];
const OF_NAMES: &[Goal] = &[at_least(Who::Afflux, 1.0, Who::PassthroughHp), at_least(Who::Afflux, 2.0, Who::Nfs)];

const RESERVE: &[Goal] = &[at_most(Who::AffluxKernelCache, 1.3, Who::Host)];
const BUILDS: &[Goal] = &[at_most(Who::Afflux, 1.3, Who::Host)];
const SYNCS: &[Goal] = &[limit(Who::Afflux, 300.0)];
const BURSTS: &[Goal] = &[limit(Who::Afflux, 1.2)];

pub(crate) fn all() -> Vec<Case> {
    let calls = |name, write, block, who, goals| {
        let what = What::Calls { write, block };
        Case { name, unit: Unit::Us, what, who, goals }
    };
    let (page, large) = (4096, 1 << 20);
    vec![
        calls("direct read 4 KiB", false, page, DIRECT, SMALL),
        calls("direct write 4 KiB", true, page, DIRECT, SMALL),
        calls("direct read 1 MiB", false, large, DIRECT, LARGE),
        calls("direct write 1 MiB", true, large, DIRECT, LARGE),
        calls("kernel-cached read 4 KiB", false, page, CACHED, RESERVE),
        calls("kernel-cached read 1 MiB", false, large, CACHED, &[]),
        Case { name: "create and unlink", unit: Unit::Rate, what: What::CreateAndUnlink, who: NAMES, goals: OF_NAMES },
        Case { name: "untar", unit: Unit::Rate, what: What::Untar, who: NAMES, goals: OF_NAMES },
        Case {
            name: "cargo build of a crate of this repository",
            unit: Unit::Seconds,
            what: What::CargoBuild,
            who: &[Who::Host, Who::Afflux, Who::AffluxKernelCache, Who::PassthroughHp],
            goals: BUILDS,
        },
        Case {
            name: "fsync of 4 KiB beside a stream, disk of 25 MB/s",
            unit: Unit::Ms,
            what: What::SyncBesideStream,
            who: &[Who::Host, Who::Afflux, Who::PassthroughHp],
            goals: SYNCS,
        },
        Case {
            name: "burst to a fast disk beside a full slow one",
            unit: Unit::Times,
            what: What::BurstBesideSlow,
            who: &[Who::Host, Who::Afflux],
            goals: BURSTS,
        },
    ]
}

impl Case {
    /// Long cases have fewer rounds.
    pub(crate) fn rounds(&self, options: &Options) -> usize {
        options.words.rounds_or(if matches!(self.what, What::Calls { .. }) { 5 } else { 3 })
    }

    /// Whether its programs and servers use all CPUs.
    pub(crate) fn uses_all_cpus(&self) -> bool {
        matches!(self.what, What::CargoBuild | What::SyncBesideStream | What::BurstBesideSlow)
    }

    /// One run.
    pub(crate) fn run(
        &self,
        contenders: &mut Contenders<'_>,
        who: Who,
        round: usize,
        options: &Options,
    ) -> Result<Figure> {
        let before = Processors::now();
        let quick = options.words.quick;
        let figure = match self.what {
            What::SyncBesideStream => slow::syncs(contenders, who, options)?,
            What::BurstBesideSlow => slow::burst(contenders, who, options)?,
            What::Calls { write, block } => calls::run(contenders.running(who)?, write, block, quick)?,
            What::CargoBuild => build::run(contenders.running(who)?, round, quick)?,
            What::CreateAndUnlink => names::create_and_unlink(contenders.running(who)?, round, quick)?,
            What::Untar => names::untar(contenders.running(who)?, round, options)?,
        };
        Ok(Figure { stolen_ms: before.stolen().ms, ..figure })
    }
}
