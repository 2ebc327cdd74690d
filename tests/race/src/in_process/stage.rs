//! The environment of the cases inside one process, and their results.
//!
//! Owns: the choice of requested cases, the results and remarks of a group.
//! Does not own: the cases (one module each), measurement (`rounds`).

use std::io;

use crate::case::{Case, Goal, Group};
use crate::options::Options;
use crate::rounds::{self, Plan, Subject};

/// Factor for the time of runs that wait for a disk.
const LONGER: u32 = 10;

/// The environment of cases, and their results.
pub(crate) struct Stage<'a> {
    pub(crate) options: &'a Options,
    pub(crate) told: &'a mut dyn FnMut(&str),
    cases: Vec<Case>,
    pub(super) remarks: Vec<String>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(options: &'a Options, told: &'a mut dyn FnMut(&str)) -> Self {
        Self { options, told, cases: Vec::new(), remarks: Vec::new() }
    }

    /// Races one case, if it is requested.
    pub(super) fn case(
        &mut self,
        name: impl Into<String>,
        threads: usize,
        clock: bool,
        goal: Option<Goal>,
        subjects: &[Subject<'_>],
    ) {
        let mut name = name.into();
        if threads > 1 {
            name.push_str(&format!(", {threads} threads"));
        }
        if !self.options.wants(&name) {
            return;
        }
        (self.told)(&name);
        // Threads that wait for a disk do little in a run, so these runs are longer.
        let run = if clock { self.options.run * LONGER } else { self.options.run };
        let plan = Plan { rounds: self.options.rounds, run, threads, clock };
        self.cases.push(Case { name, goal, figures: rounds::race(subjects, &plan) });
    }

    /// Adds a remark about a case that cannot be raced; the race continues.
    pub(super) fn or_remark(&mut self, what: &str, result: io::Result<()>) {
        if let Err(error) = result {
            self.remarks.push(format!("{what}: not raced, {error}"));
        }
    }

    pub(super) fn into_group(self, title: &'static str, unit: &'static str, words: String) -> Group {
        let (cases, remarks) = (self.cases, self.remarks);
        Group { title, unit, more_is_better: false, words, beside: rounds::BESIDE, shows_beside: false, cases, remarks }
    }
}
