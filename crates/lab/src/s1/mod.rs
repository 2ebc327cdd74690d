//! Experiment s1: pdflush and congestion, against flushers by device that block for requests.
//!
//! Owns: the cases, their options, what they have in common.
//! Does not own: the machine (`machine`), the policies (`linux-policies`).
//! Invariants: rows come from runs of the engine; each carries the engine's counters.

mod blocking_rival;
mod findings;
mod options;
mod pool_alone;
mod twelve_disks;
mod two_superblocks;
mod two_writers;

use engine::counters::Counter;
use linux_policies::{CongestionWaits, Policy, policy_with};
use simulator::catalogue::Model;
use simulator::{CostOf, CostTable};

use crate::experiment::{Experiment, Findings, LabError, OptionInfo, Request, Watch};
use crate::machine::{Queue, costs, queued_model};

use findings::{Rows, findings};
use options::{Asked, Case};

/// The experiment.
pub(crate) struct S1;

/// A kernel, and what ends its waits for congestion.
struct Variant {
    name: &'static str,
    policy: &'static str,
    waits: CongestionWaits,
}

impl Variant {
    const RC1: Self =
        Self { name: "linux-2.6.31-rc1", policy: "linux-2.6.31-rc1", waits: CongestionWaits::WokenOnClear };
    const RC1_PLAIN: Self =
        Self { name: "linux-2.6.31-rc1-plain-100ms", policy: "linux-2.6.31-rc1", waits: CongestionWaits::Plain };
    const PDFLUSH: Self = Self { name: "linux-2.6.31", policy: "linux-2.6.31", waits: CongestionWaits::WokenOnClear };
    const PLAIN: Self =
        Self { name: "linux-2.6.31-plain-100ms", policy: "linux-2.6.31", waits: CongestionWaits::Plain };
    const FLUSHERS: Self = Self { name: "linux-2.6.32", policy: "linux-2.6.32", waits: CongestionWaits::WokenOnClear };
    const ALL: &'static [&'static Self] =
        &[&Self::RC1, &Self::PDFLUSH, &Self::RC1_PLAIN, &Self::PLAIN, &Self::FLUSHERS];

    fn policy(&self) -> Result<Policy, LabError> {
        policy_with(self.policy, self.waits).map_err(|error| LabError::Failed(error.to_string()))
    }
}

/// The write cache inside each disk: half of a 16 MB buffer, as in the built-in disks.
const DISK_CACHE_KIB: u64 = 8192;

/// A built-in disk with a queue in front of it and a write cache in it; 0 for none.
fn disk(name: &str, queue: Queue, cache_kib: u64) -> Result<Model, LabError> {
    let mut model = queued_model(name, queue)?;
    let set = model.set("write_cache_bytes", &format!("{cache_kib} KiB"));
    set.map_err(|error| LabError::Failed(error.to_string()))?;
    Ok(model)
}

/// CPU time as S1's reviewer has it: so many milliseconds for each megabyte that is submitted.
fn submission_costs(ms_per_mb: f64) -> CostTable {
    let list = [
        (CostOf::Counter(Counter::PageOut), ms_per_mb, "S1: 0.01 s for 4 MiB on a 2 GHz laptop; or less"),
        (CostOf::Counter(Counter::PagesDirtied), 1500.0, "assumed: to find, copy and dirty a page of 2009"),
        (CostOf::Step, 1000.0, "assumed"),
        (CostOf::Switch, 2000.0, "assumed"),
    ];
    costs("a machine of 2009", &list)
}

impl Experiment for S1 {
    fn name(&self) -> &'static str {
        "s1"
    }

    fn about(&self) -> &'static str {
        "Flushers by device that block for requests, against pdflush and congestion"
    }

    fn options(&self) -> &'static [OptionInfo] {
        options::ALL
    }

    fn can_measure(&self) -> bool {
        false
    }

    fn run(&self, request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
        let common = Asked::read(request)?;
        let (mut rows, mut plotted) = (Rows::default(), Vec::new());
        for case in &common.cases {
            match case {
                Case::TwoWriters => (rows.two_writers, plotted) = two_writers::run(&common, watch)?,
                Case::PoolAlone => rows.pool_alone = pool_alone::run(&common, watch)?,
                Case::TwoSuperblocks => rows.two_superblocks = two_superblocks::run(&common, watch)?,
                Case::TwelveDisks => rows.twelve_disks = twelve_disks::run(&common, watch)?,
                Case::BlockingRival => rows.blocking_rival = blocking_rival::run(&common, watch)?,
            }
        }
        Ok(findings(&rows, &plotted))
    }
}
