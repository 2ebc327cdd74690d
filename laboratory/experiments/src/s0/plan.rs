//! The options of s0, and the cells that they select.
//!
//! Owns: the options, the order of the runs.
//! Does not own: a run (`mapped_writes`), the changes (`parts`).
//! Invariants: the refusal of an unusable value names the usable ones.

use clap::ValueEnum;

use super::mapped_writes::{Rig, Variant};
use super::parts::{self, AS_IT_IS, Change};
use crate::experiment::{LabError, Request};
use crate::options::{List, list, named, number};

/// The base, then the forms of the patch in the order of time.
pub(super) const VARIANTS: [&str; 6] = ["linux-2.6.31", "s0-july", "s0-seed", "s0-august", "s0-september", "s0-merged"];

const ALL_VARIANTS: &str = "linux-2.6.31,s0-july,s0-seed,s0-august,s0-september,s0-merged";

/// The cases that a request may select.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Case {
    Speeds,
    Parts,
    Near,
    Others,
    Reads,
}

/// The plan of a run.
#[derive(clap::Args)]
pub(super) struct Plan {
    /// speeds: all variants and sizes; parts: one part of the law changed at a time; near: sizes near the limit;
    /// others: beside dirty pages for another disk; reads: counter reads by path (all; with --quick speeds,reads)
    #[arg(long = "case", value_name = "LIST", default_value = "speeds,parts,near,others,reads")]
    #[arg(hide_default_value = true, value_parser = list(named::<Case>))]
    cases: List<Case>,
    /// Which laws, separated by commas
    #[arg(long = "variant", value_name = "LIST", default_value = ALL_VARIANTS, value_parser = list(variant))]
    pub(super) variants: List<&'static str>,
    /// How much is stored (400,500,600,700,800,900; with --quick 400,600,900), each 1 to 2000
    #[arg(long = "size-mib", value_name = "LIST", default_value = "400,500,600,700,800,900")]
    #[arg(hide_default_value = true, value_parser = list(number(1..=2000)))]
    sizes_mib: List<u64>,
    /// Of each, 3 to 100 (10; with --quick 3); the fastest and the slowest are dropped
    #[arg(long, value_name = "NUMBER", default_value = "10", hide_default_value = true)]
    #[arg(value_parser = number(3..=100))]
    runs: u64,
    /// Programs that store a part each, at once: one waits, and another is asked again after 8 pages
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number(1..=16))]
    writers: u64,
    /// The memory of the page cache in MiB (2755), 1300 to 16000; a fifth of it may be dirty
    #[arg(long, value_name = "NUMBER", default_value = "2755", hide_default_value = true)]
    #[arg(value_parser = number(1300..=16_000))]
    memory_mib: u64,
    #[arg(skip = Rig::WHOLE)]
    rig: Rig,
}

fn variant(text: &str) -> Result<&'static str, String> {
    let found = VARIANTS.into_iter().find(|name| *name == text);
    found.ok_or_else(|| format!("there is no variant '{text}'; there are {}", ALL_VARIANTS))
}

/// A cell that is still to be run.
pub(super) struct Planned {
    pub(super) case: Case,
    pub(super) change: Change,
    pub(super) rig: Rig,
    pub(super) size_mib: u64,
    pub(super) runs: u64,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let mut plan: Self = request.read()?;
        request.shorten("cases", &mut plan.cases, vec![Case::Speeds, Case::Reads]);
        request.shorten("sizes_mib", &mut plan.sizes_mib, vec![400, 600, 900]);
        request.shorten("runs", &mut plan.runs, 3);
        plan.rig = Rig { memory_mib: plan.memory_mib, writers: plan.writers, ..plan.rig };
        Ok(plan)
    }

    pub(super) fn has(&self, case: Case) -> bool {
        self.cases.contains(&case)
    }

    /// All cells, in the order of their runs.
    pub(super) fn cells(&self) -> Vec<Planned> {
        // There are many changes, so each has fewer runs.
        let runs_of_change = self.runs.min(5);
        let mut cells = Vec::new();
        let mut add = |case, change, rig, size_mib, runs| {
            if self.has(case) {
                cells.push(Planned { case, change, rig, size_mib, runs });
            }
        };
        for size_mib in self.sizes_mib.iter().copied() {
            for name in self.variants.iter().copied() {
                let change = Change { label: AS_IT_IS, variant: Variant::named(name) };
                add(Case::Speeds, change, self.rig, size_mib, self.runs);
            }
            add(Case::Speeds, parts::UNASSIGNED, self.rig, size_mib, self.runs);
        }
        for size_mib in parts::SIZES_MIB {
            for change in parts::CHANGES {
                add(Case::Parts, change, self.rig, size_mib, runs_of_change);
            }
        }
        for size_mib in parts::near_mib() {
            for change in parts::NEAR {
                add(Case::Near, change, self.rig, size_mib, runs_of_change);
            }
        }
        for others_mib in parts::OTHERS_MIB {
            for change in parts::BESIDE_OTHERS {
                add(Case::Others, change, Rig { others_mib, ..self.rig }, 600, runs_of_change);
            }
        }
        cells
    }
}
