//! Experiment s0: the reordering of balance_dirty_pages, in its variants.
//!
//! Owns: which runs are made, their rows and findings.
//! Does not own: a run (`mapped_writes`), the laws (`linux-policies`).
//! Invariants: rows come from runs; what was published stands beside them.

mod conclusions;
mod findings;
mod mapped_writes;
mod measured;
mod parts;
mod published;
mod reads;
mod tables;

use std::collections::BTreeMap;

use report::{Fields, Row};
use serde_json::json;

use crate::experiment::{Experiment, Findings, LabError, OptionInfo, Request, Watch};
use crate::machine::{PAGE_BYTES, rounded, row};
use crate::statistics::{Estimate, Samples};
use mapped_writes::{MEMORY_MIB, Ran, Rig, Variant, run_many};
use parts::{AS_IT_IS, Change};
use published::SPEEDS;
use reads::Path;

/// The experiment.
pub(crate) struct S0;

/// The base, then the forms of the patch in the order of time.
const VARIANTS: [&str; 6] = ["linux-2.6.31", "s0-july", "s0-seed", "s0-august", "s0-september", "s0-merged"];

const VARIANT: OptionInfo = OptionInfo {
    name: "variant",
    value: "LIST",
    default: "linux-2.6.31,s0-july,s0-seed,s0-august,s0-september,s0-merged",
    doc: "Which laws, separated by commas",
};
const SIZE_MIB: OptionInfo = OptionInfo {
    name: "size-mib",
    value: "LIST",
    default: "",
    doc: "How much is stored (400,500,600,700,800,900; with --quick 400,600,900), each 1 to 2000",
};
const RUNS: OptionInfo = OptionInfo {
    name: "runs",
    value: "NUMBER",
    default: "",
    doc: "Of each, 3 to 100 (10; with --quick 3); the fastest and the slowest are dropped",
};

const CASE: OptionInfo = OptionInfo {
    name: "case",
    value: "LIST",
    default: "speeds,parts,near,others,reads",
    doc: "speeds: all variants and sizes; parts: one part of the law changed at a time; near: sizes near the limit; \
          others: beside dirty pages for another disk; reads: counter reads by path",
};
const MEMORY: OptionInfo = OptionInfo {
    name: "memory-mib",
    value: "NUMBER",
    default: "",
    doc: "What the page cache has (2755), 1300 to 16000; a fifth of it may be dirty",
};

/// What is run, beside what is always.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Speeds,
    Parts,
    Near,
    Others,
    Reads,
}

impl Case {
    const NAMES: [(&'static str, Self); 5] = [
        ("speeds", Self::Speeds),
        ("parts", Self::Parts),
        ("near", Self::Near),
        ("others", Self::Others),
        ("reads", Self::Reads),
    ];

    fn read(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, case)| case).ok_or_else(|| format!("there is no case '{text}'; there are {}", CASE.default))
    }
}

/// What is run.
struct Plan {
    cases: Vec<Case>,
    variants: Vec<&'static str>,
    sizes_mib: Vec<u64>,
    runs: u64,
    /// Of each change: less is enough, they are many.
    runs_of_change: u64,
    rig: Rig,
}

/// One law on one machine at one size.
struct Cell {
    case: Case,
    change: Change,
    others_mib: u64,
    size_mib: u64,
    speed: Estimate,
    runs: Vec<Ran>,
}

impl Cell {
    fn variant(&self) -> &'static str {
        self.change.variant.name
    }

    fn is_changed(&self) -> bool {
        self.change.label != AS_IT_IS
    }

    /// What it is called where all sizes are shown.
    fn name(&self) -> &'static str {
        if self.is_changed() { parts::UNASSIGNED_NAME } else { self.variant() }
    }

    /// The mean of a figure over the runs.
    fn mean(&self, of: impl Fn(&Ran) -> f64) -> f64 {
        self.runs.iter().map(of).sum::<f64>() / self.runs.len() as f64
    }

    /// The mean over the runs that have it.
    fn mean_of_some(&self, of: impl Fn(&Ran) -> Option<f64>) -> Option<f64> {
        let some: Vec<f64> = self.runs.iter().filter_map(of).collect();
        (!some.is_empty()).then(|| some.iter().sum::<f64>() / some.len() as f64)
    }

    /// MiB of the disk's that were dirty or under writeback when the writer first had to wait.
    fn first_pause_mib(&self) -> Option<f64> {
        self.mean_of_some(|run| run.marks.pause_pages.map(|pages| (pages * PAGE_BYTES) as f64 / MIB))
    }

    /// When background writeback was first asked for, in seconds of a run.
    fn background_s(&self) -> Option<f64> {
        self.mean_of_some(|run| run.marks.background_ns.map(|ns| ns as f64 / 1e9))
    }
}

const MIB: f64 = (1 << 20) as f64;

/// A path with its reads, and how many calls took it, of each variant.
type PathsOf = BTreeMap<&'static str, BTreeMap<Path, u64>>;

fn variant(text: &str) -> Result<&'static str, String> {
    let found = VARIANTS.into_iter().find(|name| *name == text);
    found.ok_or_else(|| format!("there is no variant '{text}'; there are {}", VARIANT.default))
}

fn number(text: &str, first: u64, last: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (first..=last).contains(number));
    number.ok_or_else(|| format!("'{text}' is not a number from {first} to {last}"))
}

impl Plan {
    fn read(request: &Request) -> Result<Self, LabError> {
        let sizes: &[u64] = if request.quick { &[400, 600, 900] } else { &SPEEDS.map(|line| line.0) };
        let given = |option| !request.text(option).is_empty();
        let sizes_mib = match given(&SIZE_MIB) {
            true => request.list(&SIZE_MIB, |text| number(text, 1, 2000))?,
            false => sizes.to_vec(),
        };
        let runs = match given(&RUNS) {
            true => request.value(&RUNS, |text| number(text, 3, 100))?,
            false if request.quick => 3,
            false => 10,
        };
        let memory_mib = match given(&MEMORY) {
            true => request.value(&MEMORY, |text| number(text, 1300, 16_000))?,
            false => MEMORY_MIB,
        };
        let cases = match request.quick && !given(&CASE) {
            true => vec![Case::Speeds, Case::Reads],
            false => request.list(&CASE, Case::read)?,
        };
        let variants = request.list(&VARIANT, variant)?;
        let rig = Rig { memory_mib, ..Rig::WHOLE };
        Ok(Self { cases, variants, sizes_mib, runs, runs_of_change: runs.min(5), rig })
    }
}

/// The mean of all but the fastest and the slowest.
fn middle(runs: &[Ran]) -> Estimate {
    let mut speeds: Vec<f64> = runs.iter().map(|run| run.mib_per_s).collect();
    speeds.sort_by(f64::total_cmp);
    let mut samples = Samples::default();
    speeds[1..speeds.len() - 1].iter().for_each(|speed| samples.push(*speed));
    samples.estimate()
}

fn speed_row(cell: &Cell) -> Row {
    let Cell { size_mib, speed, runs, .. } = cell;
    let per_call = |at: usize| {
        let (reads, calls) = runs.iter().fold((0, 0), |sum, run| (sum.0 + run.reads[at], sum.1 + run.calls));
        rounded(reads as f64 / calls.max(1) as f64, 3)
    };
    let metrics = Fields::new()
        .with("mib_per_s_mean", rounded(speed.mean, 3))
        .with("mib_per_s_sd", rounded(speed.sd, 3))
        .with("calls", rounded(cell.mean(|run| run.calls as f64), 1))
        .with("global_reads_per_call", per_call(0))
        .with("dirty_reads_per_call", per_call(1))
        .with("device_reads_per_call", per_call(2))
        .with("passes", rounded(cell.mean(|run| run.passes as f64), 1))
        .with("pauses", rounded(cell.mean(|run| run.pauses as f64), 1))
        .with("pause_s", rounded(cell.mean(|run| run.pause_s), 3))
        .with("written_by_writer_pages", rounded(cell.mean(|run| run.written_by_writer_pages as f64), 0))
        .with("first_pause_mib", cell.first_pause_mib().map(|mib| rounded(mib, 1)))
        .with("background_asked_s", cell.background_s().map(|s| rounded(s, 3)))
        .with("trace_hash", format!("{:016x}", runs[0].trace_hash))
        .with("engine", runs[0].engine.clone());
    let line = SPEEDS.iter().find(|line| line.0 == *size_mib);
    let as_published = cell.case == Case::Speeds;
    let column = |line: &(u64, [f64; 2], [f64; 2])| match cell.variant() {
        _ if !as_published || cell.is_changed() => None,
        "linux-2.6.31" => Some(line.1),
        "s0-july" => Some(line.2),
        _ => None,
    };
    let published = line
        .and_then(column)
        .map_or_else(Fields::new, |[mean, sd]| Fields::new().with("mib_per_s_mean", mean).with("mib_per_s_sd", sd));
    let mut params = Fields::new().with("size_mib", *size_mib).with("runs", runs.len());
    if cell.is_changed() {
        params = params.with("change", cell.change.label);
    }
    if cell.others_mib > 0 {
        params = params.with("others_mib", cell.others_mib);
    }
    row("s0", cell.variant(), params, metrics, published)
}

/// The row of one path of one variant.
fn path_row(variant: &str, path: &Path, calls: u64) -> Row {
    let (decisions, [global, dirty, device]) = path;
    let metrics = Fields::new()
        .with("calls", calls)
        .with("global_reads_per_call", *global)
        .with("dirty_reads_per_call", *dirty)
        .with("device_reads_per_call", *device);
    let params = Fields::new().with("path", decisions.as_str());
    let published = findings::expected(variant, path).map_or_else(Fields::new, |[global, dirty, device]| {
        Fields::new()
            .with("global_reads_per_call", json!(global))
            .with("dirty_reads_per_call", json!(dirty))
            .with("device_reads_per_call", json!(device))
    });
    row("s0", variant, params, metrics, published)
}

fn add_paths(paths: &mut PathsOf, variant: &'static str, runs: &[Ran]) {
    let of_variant = paths.entry(variant).or_default();
    for (path, calls) in runs.iter().flat_map(|run| &run.paths) {
        *of_variant.entry(path.clone()).or_default() += calls;
    }
}

/// A cell that is still to be run.
struct Planned {
    case: Case,
    change: Change,
    rig: Rig,
    size_mib: u64,
    runs: u64,
}

impl Plan {
    fn has(&self, case: Case) -> bool {
        self.cases.contains(&case)
    }

    /// All cells, in the order in which they are run.
    fn cells(&self) -> Vec<Planned> {
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

fn run_all(plan: &Plan, watch: &mut dyn Watch) -> Result<(Vec<Cell>, PathsOf), LabError> {
    let (mut cells, mut paths) = (Vec::new(), PathsOf::new());
    let all = plan.cells();
    for (number, planned) in all.iter().enumerate() {
        let Planned { case, change, rig, size_mib, runs } = *planned;
        let what = format!("{}, {}, {size_mib} MiB", change.variant.name, change.label);
        watch.step(&what, number as f64 / all.len() as f64);
        let runs = run_many(change.variant, size_mib, runs, rig)?;
        if case == Case::Speeds && change.label == AS_IT_IS {
            add_paths(&mut paths, change.variant.name, &runs);
        }
        let cell = Cell { case, change, others_mib: rig.others_mib, size_mib, speed: middle(&runs), runs };
        watch.row(&speed_row(&cell));
        cells.push(cell);
    }
    if plan.has(Case::Reads) {
        for name in plan.variants.iter().copied() {
            add_paths(&mut paths, name, &run_many(Variant::named(name), 90, 1, Rig::SMALL)?);
        }
    }
    Ok((cells, paths))
}

impl Experiment for S0 {
    fn name(&self) -> &'static str {
        "s0"
    }

    fn about(&self) -> &'static str {
        "How often balance_dirty_pages reads hot shared counters, and what that costs a writer"
    }

    fn options(&self) -> &'static [OptionInfo] {
        &[CASE, VARIANT, SIZE_MIB, RUNS, MEMORY]
    }

    fn can_measure(&self) -> bool {
        true
    }

    fn run(&self, request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
        let plan = Plan::read(request)?;
        if request.measured {
            return Ok(measured::findings(&measured::measure(&plan.variants, watch)?));
        }
        let (cells, paths) = run_all(&plan, watch)?;
        for (variant, paths) in paths.iter().filter(|_| plan.has(Case::Reads)) {
            for (path, calls) in paths.iter().filter(|(path, _)| findings::is_shown(path)) {
                watch.row(&path_row(variant, path, *calls));
            }
        }
        Ok(findings::findings(&cells, &paths))
    }
}

#[cfg(test)]
mod tests;
