//! One form of reclaim under the load: its figures, scaled to whole files, and its row.
//!
//! Owns: figures computed from a run's counts. Does not own: the runs (`run`, `own`), the published figures.
//! Invariants: times that grow with the file are multiplied by `part`, of which a run reads one. So are counts of
//! reclaim, but only for the pages that are read after memory is full ([`Cell::times`]). Means, shares and quantiles of
//! single waits are not.

use afflux_kernels::mm::Event;
use afflux_report::{Fields, Row};

use super::plan::{OWN, Plan, Variant};
use super::run::{self, Load, Outcome, Start, TaskAccount};
use super::{own, published};
use crate::experiment::LabError;
use crate::machine::{PAGE_BYTES, ms, rounded, row, seconds};
use crate::statistics::percentile;

/// The name of the counter for failed requests for slabs.
const SLAB_FAILURES: &str = Event::SlabAllocFail.name();

/// The results of a form.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) variant: &'static str,
    pub(super) outcome: Outcome,
    pub(super) load: Load,
    pub(super) part: u64,
}

/// A mean and a quantile of single waits, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waits {
    pub(super) mean_ms: f64,
    pub(super) p99_ms: f64,
}

impl Cell {
    /// Runs the form.
    pub(super) fn run(plan: &Plan, variant: Variant) -> Result<Self, LabError> {
        let load = plan.scaled();
        let outcome = match variant {
            Variant::Kernel(form) => run::run(&load, &form),
            _ => own::run(&load),
        };
        let failed = |error| LabError::Failed(format!("{}: {error}", variant.name()));
        Ok(Self { variant: variant.name(), outcome: outcome.map_err(failed)?, load: plan.load, part: plan.part })
    }

    /// Whether the engine ran instead of the simulated kernel.
    pub(super) fn is_on_engine(&self) -> bool {
        self.variant == OWN
    }

    /// How many times as much the whole load reclaims as the part that was read. The pages that fill memory at first
    /// come once in both, and nobody reclaims for them.
    pub(super) fn times(&self) -> f64 {
        let pages = |file_bytes: u64| (self.load.readers as u64 * (file_bytes / PAGE_BYTES)) as f64;
        let filled = if self.load.is_held() { 0.0 } else { f64::from(run::page_frames(self.load.memory_bytes)) };
        let part = pages(self.load.file_bytes / self.part) - filled;
        if part > 0.0 { (pages(self.load.file_bytes) - filled) / part } else { self.part as f64 }
    }

    /// A count by the kernel's name, for whole files; 0 if this form has no such count.
    pub(super) fn count(&self, name: &str) -> f64 {
        self.counted(name).unwrap_or(0.0)
    }

    /// As [`Cell::count`], but `None` if this form has no such count. As in the seed, `nr_alloc_fail` includes requests
    /// for slabs.
    pub(super) fn counted(&self, name: &str) -> Option<f64> {
        let of = |name: &str| {
            let found = self.outcome.counts.iter().find(|(known, _)| *known == name);
            found.map(|(_, count)| *count as f64)
        };
        let whole = of(name)? * self.times();
        Some(match name {
            // Counted at a reader's start, so it does not grow with the file.
            SLAB_FAILURES => of(name)?,
            "nr_alloc_fail" => whole.round() + of(SLAB_FAILURES).unwrap_or(0.0),
            _ => whole.round(),
        })
    }

    /// Interrupts of all CPUs.
    pub(super) fn ipis(&self) -> f64 {
        (self.outcome.interrupts.iter().sum::<u64>() as f64 * self.times()).round()
    }

    pub(super) fn reclaims_a_reader(&self) -> f64 {
        self.outcome.delays.count as f64 * self.times() / self.load.readers as f64
    }

    pub(super) fn reclaim_ms_a_reader(&self) -> f64 {
        ms(self.outcome.delays.ns) * self.times() / self.load.readers as f64
    }

    /// The time of one direct reclaim, its waits for a CPU included.
    pub(super) fn reclaim(&self) -> Waits {
        let delays = &self.outcome.delays;
        let mean_ms = if delays.count > 0 { ms(delays.ns) / delays.count as f64 } else { 0.0 };
        Waits { mean_ms, p99_ms: ms(delays.p99_ns) }
    }

    /// How much longer the interactive task took than its work.
    pub(super) fn interactive(&self) -> Waits {
        let all = &self.outcome.interactive_ns;
        let mean_ms = if all.is_empty() { 0.0 } else { ms(all.iter().sum()) / all.len() as f64 };
        Waits { mean_ms, p99_ms: ms(percentile(all, 990)) }
    }

    pub(super) fn start_s(&self) -> f64 {
        seconds(self.outcome.start_ns) * self.part as f64
    }

    pub(super) fn total_s(&self) -> f64 {
        seconds(self.outcome.total_ns) * self.part as f64
    }

    /// The median reader by its time in reclaim; `None` on the engine, which does not tell single readers apart.
    pub(super) fn middle_reader(&self) -> Option<TaskAccount> {
        let mut tasks = self.outcome.tasks.clone();
        tasks.sort_by_key(|task| task.reclaim_ns);
        tasks.get(tasks.len() / 2).copied().filter(|_| !self.is_on_engine())
    }

    pub(super) fn row(&self) -> Row {
        let load = &self.load;
        let params = Fields::new()
            .with("readers", load.readers)
            .with("file_bytes", load.file_bytes)
            .with("memory_bytes", load.memory_bytes)
            .with("cpus", load.cpus)
            .with("start", start_name(load.start))
            .with("fair", load.order.is_fair)
            .with("kswapd_ahead", load.order.kswapd_ahead)
            .with("afflux_ahead", load.order.afflux_ahead)
            .with("dirty_percent", load.dirty_percent)
            .with("mapped_percent", load.mapped_percent)
            .with("read_part", 1.0 / self.part as f64);
        let params = match load.drift_frames {
            Some(frames) => params.with("drift_frames", frames),
            None => params,
        };
        row("s3", self.variant, params, self.metrics(), self.published())
    }

    fn metrics(&self) -> Fields {
        let (reclaim, interactive) = (self.reclaim(), self.interactive());
        let metrics = Fields::new()
            .with("demand_alloc_fail", self.count("demand_alloc_fail"))
            .with("nr_alloc_fail", self.count("nr_alloc_fail"))
            .with("allocstall", self.count("allocstall"))
            .with("function_call_ipis", self.ipis())
            .with("reclaim_count_mean", rounded(self.reclaims_a_reader(), 2))
            .with("reclaim_total_ms_mean", rounded(self.reclaim_ms_a_reader(), 3))
            .with("reclaim_delay_ms_avg", rounded(reclaim.mean_ms, 3))
            .with("reclaim_delay_ms_p99", rounded(reclaim.p99_ms, 3))
            .with("start_s", rounded(self.start_s(), 1))
            .with("total_s", rounded(self.total_s(), 1))
            .with("interactive_wait_ms_avg", rounded(interactive.mean_ms, 1))
            .with("interactive_wait_ms_p99", rounded(interactive.p99_ms, 1))
            .with("preemptions", self.outcome.preemptions * self.part);
        let told = ["allocstall", "nr_alloc_fail", "demand_alloc_fail"];
        let rest = self.outcome.counts.iter().filter(|(name, _)| !told.contains(name));
        let metrics = rest.fold(metrics, |metrics, (name, _)| metrics.with(*name, self.count(name) as u64));
        match &self.outcome.delays_by_device {
            // These cover the part that was read.
            Some(delays) => metrics.with("delays", delays.clone()),
            None => metrics,
        }
    }

    fn published(&self) -> Fields {
        let Some(published) = published::of(self.variant, &self.load) else { return Fields::new() };
        let mut fields = Fields::new();
        let figures = [
            ("nr_alloc_fail", published.failures()),
            ("allocstall", published.stalls()),
            ("function_call_ipis", published.function_call_ipis.map(|count| count as f64)),
            ("reclaim_delay_ms_avg", published.delay_ms().map(|ms| rounded(ms, 1))),
            ("start_s", published.start_s.map(|seconds| seconds as f64)),
            ("total_s", published.total_s.map(|seconds| seconds as f64)),
        ];
        for (name, figure) in figures {
            if let Some(figure) = figure {
                fields.push(name, figure);
            }
        }
        published.counters.iter().fold(fields, |fields, (name, count)| fields.with(*name, *count))
    }
}

fn start_name(start: Start) -> &'static str {
    match start {
        Start::Evenly(_) => "evenly",
        Start::Shell => "shell",
        Start::OneTask => "one-task",
    }
}
