//! Experiment s0: the reordering of balance_dirty_pages, in its variants.
//!
//! Owns: which runs are made, their rows and findings.
//! Does not own: a run (`mapped_writes`), the laws (`linux-policies`).
//! Invariants: rows come from runs; what was published stands beside them.

mod conclusions;
mod findings;
mod mapped_writes;
mod measured;
mod published;
mod reads;

use std::collections::BTreeMap;

use report::{Fields, Row};
use serde_json::json;

use crate::experiment::{Experiment, Findings, LabError, OptionInfo, Request, Watch};
use crate::machine::{rounded, row};
use crate::options;
use crate::statistics::{Estimate, Samples};
use mapped_writes::{Ran, Rig, run_many};
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

/// What is run.
struct Plan {
    variants: Vec<&'static str>,
    sizes_mib: Vec<u64>,
    runs: u64,
}

/// One variant at one size.
struct Cell {
    variant: &'static str,
    size_mib: u64,
    speed: Estimate,
    runs: Vec<Ran>,
}

/// A path with its reads, and how many calls took it, of each variant.
type PathsOf = BTreeMap<&'static str, BTreeMap<Path, u64>>;

fn variant(text: &str) -> Result<&'static str, String> {
    let found = VARIANTS.into_iter().find(|name| *name == text);
    found.ok_or_else(|| format!("there is no variant '{text}'; there are {}", VARIANT.default))
}

impl Plan {
    fn read(request: &Request) -> Result<Self, LabError> {
        let sizes: &[u64] = if request.quick { &[400, 600, 900] } else { &SPEEDS.map(|line| line.0) };
        let given = |option| !request.text(option).is_empty();
        let sizes_mib = match given(&SIZE_MIB) {
            true => request.list(&SIZE_MIB, options::number(1, 2000))?,
            false => sizes.to_vec(),
        };
        let runs = match given(&RUNS) {
            true => request.value(&RUNS, options::number(3, 100))?,
            false if request.quick => 3,
            false => 10,
        };
        Ok(Self { variants: request.list(&VARIANT, variant)?, sizes_mib, runs })
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

fn mean(runs: &[Ran], of: impl Fn(&Ran) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

fn speed_row(cell: &Cell) -> Row {
    let Cell { variant, size_mib, speed, runs } = cell;
    let per_call = |at: usize| {
        let (reads, calls) = runs.iter().fold((0, 0), |sum, run| (sum.0 + run.reads[at], sum.1 + run.calls));
        rounded(reads as f64 / calls.max(1) as f64, 3)
    };
    let metrics = Fields::new()
        .with("mib_per_s_mean", rounded(speed.mean, 3))
        .with("mib_per_s_sd", rounded(speed.sd, 3))
        .with("calls", rounded(mean(runs, |run| run.calls as f64), 1))
        .with("global_reads_per_call", per_call(0))
        .with("dirty_reads_per_call", per_call(1))
        .with("device_reads_per_call", per_call(2))
        .with("passes", rounded(mean(runs, |run| run.passes as f64), 1))
        .with("pauses", rounded(mean(runs, |run| run.pauses as f64), 1))
        .with("pause_s", rounded(mean(runs, |run| run.pause_s), 3))
        .with("written_by_writer_pages", rounded(mean(runs, |run| run.written_by_writer_pages as f64), 0))
        .with("trace_hash", format!("{:016x}", runs[0].trace_hash))
        .with("engine", runs[0].engine.clone());
    let line = SPEEDS.iter().find(|line| line.0 == *size_mib);
    let column = |line: &(u64, [f64; 2], [f64; 2])| match *variant {
        "linux-2.6.31" => Some(line.1),
        "s0-july" => Some(line.2),
        _ => None,
    };
    let published = line
        .and_then(column)
        .map_or_else(Fields::new, |[mean, sd]| Fields::new().with("mib_per_s_mean", mean).with("mib_per_s_sd", sd));
    let params = Fields::new().with("size_mib", *size_mib).with("runs", runs.len());
    row("s0", variant, params, metrics, published)
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

fn run_all(plan: &Plan, watch: &mut dyn Watch) -> Result<(Vec<Cell>, PathsOf), LabError> {
    let (mut cells, mut paths) = (Vec::new(), PathsOf::new());
    let all = (plan.sizes_mib.len() * plan.variants.len()) as f64;
    for size_mib in plan.sizes_mib.iter().copied() {
        for variant in plan.variants.iter().copied() {
            let what = format!("{variant}, {size_mib} MiB");
            watch.step(&what, cells.len() as f64 / all);
            let runs = run_many(variant, size_mib, plan.runs, Rig::WHOLE)?;
            add_paths(&mut paths, variant, &runs);
            let cell = Cell { variant, size_mib, speed: middle(&runs), runs };
            watch.row(&speed_row(&cell));
            cells.push(cell);
        }
    }
    for variant in plan.variants.iter().copied() {
        add_paths(&mut paths, variant, &run_many(variant, 90, 1, Rig::SMALL)?);
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
        &[VARIANT, SIZE_MIB, RUNS]
    }

    fn can_measure(&self) -> bool {
        true
    }

    fn run(&self, request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
        let plan = Plan::read(request)?;
        if request.measured {
            return Ok(findings::of_measured(&measured::measure(&plan.variants, watch)?));
        }
        let (cells, paths) = run_all(&plan, watch)?;
        for (variant, paths) in &paths {
            for (path, calls) in paths.iter().filter(|(path, _)| findings::is_shown(path)) {
                watch.row(&path_row(variant, path, *calls));
            }
        }
        Ok(findings::findings(&cells, &paths))
    }
}

#[cfg(test)]
mod tests;
