//! The race inside one process: the library's calls beside the kernel's, a mapping and other caches.
//!
//! Owns: the cases, their order, their memory.
//! Does not own: the contenders (`kernel`, `mapped`, `maps`, `own`), the contents of each case (its module),
//! measurement (`rounds`).
//! Invariants: contenders of a case work on equally many bytes, each in its own memory.

mod files;
mod hits;
mod kernel;
mod mapped;
mod maps;
mod misses;
mod own;
mod syncs;

use std::io;

use crate::case::{Case, Goal, Group};
use crate::options::Options;
use crate::rounds::{self, Plan, Subject};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Factor for the time of runs that wait for a disk.
const LONGER: u32 = 10;

/// The environment of cases, and their results.
pub(crate) struct Stage<'a> {
    pub(crate) options: &'a Options,
    pub(crate) told: &'a mut dyn FnMut(&str),
    cases: Vec<Case>,
    remarks: Vec<String>,
}

impl<'a> Stage<'a> {
    fn new(options: &'a Options, told: &'a mut dyn FnMut(&str)) -> Self {
        Self { options, told, cases: Vec::new(), remarks: Vec::new() }
    }

    /// Races one case, if it is requested.
    fn case(
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
    fn or_remark(&mut self, what: &str, result: io::Result<()>) {
        if let Err(error) = result {
            self.remarks.push(format!("{what}: not raced, {error}"));
        }
    }

    fn into_group(self, title: &'static str, unit: &'static str, words: String) -> Group {
        let (cases, remarks) = (self.cases, self.remarks);
        Group { title, unit, more_is_better: false, words, beside: rounds::BESIDE, shows_beside: false, cases, remarks }
    }
}

/// Available memory, by the kernel's estimate.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(0, |kib| kib * 1024)
}

fn size(bytes: u64) -> String {
    if bytes >= GIB { format!("{} GiB", bytes / GIB) } else { format!("{} MiB", bytes / MIB) }
}

pub(crate) fn run(options: &Options, told: &mut dyn FnMut(&str)) -> Vec<Group> {
    files::allow_many();
    let mut groups = Vec::new();
    let mut stage = Stage::new(options, told);
    let sizes: &[u64] = if options.quick { &[MIB, 64 * MIB] } else { &[MIB, 64 * MIB, GIB, 8 * GIB] };
    let hot = hits::one_page(&mut stage);
    stage.or_remark("one hot page", hot);
    for bytes in sizes {
        let all = if *bytes > GIB { hits::read_alone(&mut stage, *bytes) } else { hits::all(&mut stage, *bytes) };
        stage.or_remark(&size(*bytes), all);
    }
    let appends = hits::appends(&mut stage);
    stage.or_remark("append", appends);
    groups.push(stage.into_group("In memory", "ns", hits::WORDS.to_owned()));

    let mut stage = Stage::new(options, told);
    let library = files::through_the_library(&mut stage, 100_000);
    stage.or_remark("files of the library", library);
    let counts: &[u64] = if options.quick { &[100_000] } else { &[100_000, 1_000_000] };
    for count in counts {
        let engine = files::in_the_engine(&mut stage, *count);
        stage.or_remark(&format!("{count} files"), engine);
    }
    groups.push(stage.into_group("Many files of one page", "ns", files::WORDS.to_owned()));

    let mut stage = Stage::new(options, told);
    let missed = misses::run(&mut stage);
    stage.or_remark("misses", missed);
    groups.push(stage.into_group("Misses", "ns", misses::WORDS.to_owned()));

    let mut stage = Stage::new(options, told);
    let synced = syncs::run(&mut stage);
    stage.or_remark("syncs", synced);
    groups.push(stage.into_group("Syncs", "ns", syncs::WORDS.to_owned()));
    groups
}
