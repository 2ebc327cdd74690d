//! Experiment s0: the reordering of balance_dirty_pages, in its variants.
//!
//! Owns: its rows, the order of its parts.
//! Does not own: the plan (`plan`), a run (`mapped_writes`), the kernels (`kernels`).
//! Invariants: rows come from runs; published figures are shown beside them.

mod cell;
mod findings;
mod kernel_reads;
mod mapped_writes;
mod measured;
mod parts;
mod plan;
mod published;

use afflux_kernels::{Path, Reads};
use afflux_report::{Fields, Row};
use clap::Args;

use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use crate::machine::{rounded, row};
use crate::options::Named;
use cell::{Cell, PathsOf, middle};
use mapped_writes::{Ran, Rig, Variant, run_many};
#[cfg(test)]
pub(crate) use parts::LIMIT_OF_ALL_ONLY;
use parts::{AS_IT_IS, BASE, PATCHED};
use plan::{Case, Plan, Planned};
use published::{Line, gain};

/// The experiment.
pub(crate) static S0: Experiment = Experiment {
    name: "s0",
    about: "How often balance_dirty_pages reads shared counters, and how fast a writer stores near the limit",
    labels: findings::LABELS,
    thread: "Thread: '[RFC][PATCH] mm: reorder balance_dirty_pages to improve (some) write performance', Richard Kennedy, \
         linux-kernel, 24 to 29 July 2009; merged in 2010 in another form",
    words: include_str!("words.md"),
    options: Plan::augment_args,
    can_measure: true,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let plan = Plan::read(request)?;
    if request.measured {
        measured::measure(watch);
        return Ok(findings::findings(&watch.rows, &PathsOf::new()));
    }
    let (_, paths) = run_all(&plan, watch)?;
    for (variant, paths) in paths.iter().filter(|_| plan.has(Case::Reads)) {
        for (path, calls) in paths {
            watch.row(&path_row(variant, path, *calls));
        }
    }
    Ok(findings::findings(&watch.rows, &paths))
}

/// The row of a cell; `base` is the speed of the unchanged law before the patch under the same circumstances.
fn speed_row(cell: &Cell, base: Option<f64>) -> Row {
    let Cell { size_mib, speed, runs, .. } = cell;
    let per_call = |at: usize| {
        let (reads, calls) = runs.iter().fold((0, 0), |sum, run| (sum.0 + run.reads[at], sum.1 + run.calls));
        rounded(reads as f64 / calls.max(1) as f64, 3)
    };
    let metrics = Fields::new()
        .with("mib_per_s_mean", rounded(speed.mean, 3))
        .with("gain_percent", base.map(|base| rounded((speed.mean / base - 1.0) * 100.0, 1)))
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
        .with("kernel", runs[0].kernel.clone());
    let mut params = Fields::new()
        .with("case", cell.case.name())
        .with("size_mib", *size_mib)
        .with("memory_mib", cell.rig.memory_mib)
        .with("runs", runs.len());
    if cell.is_changed() {
        params = params.with("change", cell.change.label);
        if cell.case == Case::Speeds {
            params = params.with("published_of", PATCHED);
        }
    }
    if cell.rig.others_mib > 0 {
        params = params.with("others_mib", cell.rig.others_mib);
    }
    if cell.rig.writers > 1 {
        params = params.with("writers", cell.rig.writers);
    }
    row("s0", cell.variant(), params, metrics, cell.published().map_or_else(Fields::new, |line| published(cell, line)))
}

/// The published figures beside a cell: its own column, and the gain of the patch.
fn published(cell: &Cell, line: &Line) -> Fields {
    let patched = cell.variant() == PATCHED || cell.is_changed();
    let [mean, _] = match cell.case {
        Case::Speeds if patched => line.2,
        Case::Speeds if cell.variant() == BASE => line.1,
        Case::Parts if cell.is_changed() => return Fields::new().with("gain_percent", rounded(gain(line), 1)),
        _ => return Fields::new(),
    };
    let fields = Fields::new().with("mib_per_s_mean", mean);
    if patched { fields.with("gain_percent", rounded(gain(line), 1)) } else { fields }
}

/// The row for one path of one variant.
fn path_row(variant: &str, path: &Path, calls: u64) -> Row {
    let (steps, Reads { global, dirty, device, absent }) = path;
    let metrics = Fields::new()
        .with("calls", calls)
        .with("global_reads_per_call", *global)
        .with("dirty_reads_per_call", *dirty)
        .with("device_reads_per_call", *device)
        .with("always_zero_reads_per_call", *absent);
    // The expected reads were counted by hand from the kernels' code; no published source has them.
    let metrics = match kernel_reads::expected(variant, path) {
        Some([global, dirty, device]) => metrics
            .with("kernel_code_global_reads", global)
            .with("kernel_code_dirty_reads", dirty)
            .with("kernel_code_device_reads", device),
        None => metrics,
    };
    let params = Fields::new().with("path", steps.as_str());
    row("s0", variant, params, metrics, Fields::new())
}

fn add_paths(paths: &mut PathsOf, variant: &'static str, runs: &[Ran]) {
    let of_variant = paths.entry(variant).or_default();
    for (path, calls) in runs.iter().flat_map(|run| &run.paths) {
        *of_variant.entry(path.clone()).or_default() += calls;
    }
}

/// The speed of the unchanged law before the patch in the same case, unless the cell is that itself.
fn base_of(cells: &[Cell], cell: &Cell) -> Option<f64> {
    let is_base = |other: &&Cell| other.variant() == BASE && !other.is_changed();
    let of = |cell: &Cell| (cell.case, cell.size_mib, cell.rig.others_mib);
    let same = |other: &&Cell| of(other) == of(cell);
    cells.iter().filter(is_base).find(same).map(|base| base.speed.mean)
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
        let cell = Cell { case, change, rig, size_mib, speed: middle(&runs), runs };
        watch.row(&speed_row(&cell, base_of(&cells, &cell)));
        cells.push(cell);
    }
    if plan.has(Case::Reads) {
        for name in plan.variants.iter().copied() {
            add_paths(&mut paths, name, &run_many(Variant::named(name), 90, 1, Rig::SMALL)?);
        }
    }
    Ok((cells, paths))
}

#[cfg(test)]
mod tests;
