//! The kernels, disks and costs of s1's cases.
//!
//! Owns: the variants, the disk with its queue and cache, CPU time of a step.
//! Does not own: the machine (`machine`), the policies (`linux-policies`), the cases.
//! Invariants: two variants differ in their policy and in the end of its waits alone.

use afflux_engine::Readahead;
use afflux_engine::counters::Counter;
use afflux_linux_policies::{CongestionWaits, policy_with};
use afflux_simulator::catalogue::Model;
use afflux_simulator::{CostOf, CostTable, OWN_POLICY, Setup};

use crate::experiment::LabError;
use crate::machine::{Queue, costs, queued_model};

/// A kernel, and the event that ends its waits for congestion; or the engine itself.
pub(super) struct Variant {
    pub(super) name: &'static str,
    policy: &'static str,
    waits: CongestionWaits,
}

impl Variant {
    pub(super) const RC1: Self =
        Self { name: "linux-2.6.31-rc1", policy: "linux-2.6.31-rc1", waits: CongestionWaits::WokenOnClear };
    pub(super) const RC1_PLAIN: Self =
        Self { name: "linux-2.6.31-rc1-plain-100ms", policy: "linux-2.6.31-rc1", waits: CongestionWaits::Plain };
    pub(super) const PDFLUSH: Self =
        Self { name: "linux-2.6.31", policy: "linux-2.6.31", waits: CongestionWaits::WokenOnClear };
    pub(super) const PLAIN: Self =
        Self { name: "linux-2.6.31-plain-100ms", policy: "linux-2.6.31", waits: CongestionWaits::Plain };
    pub(super) const FLUSHERS: Self =
        Self { name: "linux-2.6.32", policy: "linux-2.6.32", waits: CongestionWaits::WokenOnClear };
    /// No kernel: the engine with its own policy.
    pub(super) const AFFLUX: Self = Self { name: "afflux", policy: OWN_POLICY, waits: CongestionWaits::WokenOnClear };
    pub(super) const ALL: &'static [&'static Self] =
        &[&Self::RC1, &Self::PDFLUSH, &Self::RC1_PLAIN, &Self::PLAIN, &Self::FLUSHERS, &Self::AFFLUX];

    pub(super) fn setup(&self) -> Result<Setup, LabError> {
        let failed = |error: &dyn std::fmt::Display| LabError::Failed(error.to_string());
        if self.policy == OWN_POLICY {
            return Setup::of(OWN_POLICY).map_err(|error| failed(&error));
        }
        let policy = policy_with(self.policy, self.waits).map_err(|error| failed(&error))?;
        let setup = Setup::of_kernel(policy).map_err(|error| failed(&error))?;
        // The data are read back to show their layout, not to show how far a kernel reads ahead.
        Ok(setup.with_readahead(Some(Readahead::Afflux)))
    }
}

/// The write cache inside each disk: half of a 16 MB buffer, as in the built-in disks.
pub(super) const DISK_CACHE_KIB: u64 = 8192;

/// A built-in disk with a queue in front of it, and a write cache of `cache_kib` (0 for none).
pub(super) fn disk(name: &str, queue: Queue, cache_kib: u64) -> Result<Model, LabError> {
    let mut model = queued_model(name, queue)?;
    let set = model.set("write_cache_bytes", &format!("{cache_kib} KiB"));
    set.map_err(|error| LabError::Failed(error.to_string()))?;
    Ok(model)
}

/// CPU time as measured by S1's reviewer: `ms_per_mb` for each submitted megabyte.
pub(super) fn submission_costs(ms_per_mb: f64) -> CostTable {
    let list = [
        (CostOf::Counter(Counter::PageOut), ms_per_mb, "S1: 0.01 s for 4 MiB on a 2 GHz laptop; or less"),
        (CostOf::Counter(Counter::PagesDirtied), 1500.0, "assumed: to find, copy and dirty a page of 2009"),
        (CostOf::Step, 1000.0, "assumed"),
        (CostOf::Switch, 2000.0, "assumed"),
    ];
    costs("a machine of 2009", &list)
}
