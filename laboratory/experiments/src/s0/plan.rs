//! The options of s0, and the cells that they select.
//!
//! Owns: the options, the order of the runs.
//! Does not own: a run (`mapped_writes`), the changes (`parts`).
//! Invariants: the refusal of an unusable value names the usable ones.

use super::mapped_writes::{MEMORY_MIB, Rig, Variant};
use super::parts::{self, AS_IT_IS, Change};
use super::published::SPEEDS;
use crate::options::{Named, named, options, values};

/// The base, then the forms of the patch in the order of time.
pub(super) const VARIANTS: [&str; 6] = ["linux-2.6.31", "s0-july", "s0-seed", "s0-august", "s0-september", "s0-merged"];

const ALL_VARIANTS: &str = "linux-2.6.31,s0-july,s0-seed,s0-august,s0-september,s0-merged";

options! {
    pub(super) OPTIONS {
        /// speeds: all variants and sizes; parts: one part of the law changed at a time; near: sizes near the limit;
        /// others: beside dirty pages for another disk; reads: counter reads by path (all; with --quick speeds,reads)
        CASE: Case = choice("case", "LIST", "");
        /// Which laws, separated by commas
        VARIANT: &'static str = parsed("variant", "LIST", ALL_VARIANTS, variant);
        /// How much is stored (400,500,600,700,800,900; with --quick 400,600,900), each 1 to 2000
        SIZE_MIB: u64 = number("size-mib", "LIST", "", 1..=2000);
        /// Of each, 3 to 100 (10; with --quick 3); the fastest and the slowest are dropped
        RUNS: u64 = number("runs", "NUMBER", "", 3..=100);
        /// Programs that store a part each, at once: one waits, and another is asked again after 8 pages
        WRITERS: u64 = number("writers", "NUMBER", "1", 1..=16);
        /// The memory of the page cache in MiB (2755), 1300 to 16000; a fifth of it may be dirty
        MEMORY: u64 = number("memory-mib", "NUMBER", "", 1300..=16_000);
    }
}

named! {
    /// The cases that a request may select.
    pub(super) enum Case {
        Speeds = "speeds",
        Parts = "parts",
        Near = "near",
        Others = "others",
        Reads = "reads",
    }
}

values! {
    /// The plan of a run.
    pub(super) struct Plan = read(request) {
        cases: Vec<Case> = CASE.list_if_given(request)?.unwrap_or_else(|| match request.quick {
            true => vec![Case::Speeds, Case::Reads],
            false => Case::ALL.iter().map(|(_, case)| *case).collect(),
        }),
        pub(super) variants: Vec<&'static str> = VARIANT.list(request)?,
        sizes_mib: Vec<u64> = SIZE_MIB.list_if_given(request)?.unwrap_or_else(|| match request.quick {
            true => vec![400, 600, 900],
            false => SPEEDS.map(|line| line.0).to_vec(),
        }),
        runs: u64 = RUNS.value_if_given(request)?.unwrap_or(if request.quick { 3 } else { 10 }),
        /// Runs of each change: fewer, because there are many changes.
        runs_of_change: u64 = runs.min(5),
        rig: Rig = Rig {
            memory_mib: MEMORY.value_if_given(request)?.unwrap_or(MEMORY_MIB),
            writers: WRITERS.value(request)?,
            ..Rig::WHOLE
        },
    }
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
    pub(super) fn has(&self, case: Case) -> bool {
        self.cases.contains(&case)
    }

    /// All cells, in the order of their runs.
    pub(super) fn cells(&self) -> Vec<Planned> {
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
                add(Case::Parts, change, self.rig, size_mib, self.runs_of_change);
            }
        }
        for size_mib in parts::near_mib() {
            for change in parts::NEAR {
                add(Case::Near, change, self.rig, size_mib, self.runs_of_change);
            }
        }
        for others_mib in parts::OTHERS_MIB {
            for change in parts::BESIDE_OTHERS {
                add(Case::Others, change, Rig { others_mib, ..self.rig }, 600, self.runs_of_change);
            }
        }
        cells
    }
}
