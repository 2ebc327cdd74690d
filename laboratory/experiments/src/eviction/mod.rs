//! Experiment eviction: which page to evict, by hit ratios, by time on devices, and by bytes read of real traces.
//!
//! Owns: the options, the order of the parts, the rows.
//! Does not own: the engine's policies, those for comparison (`references`), the generators
//! (`afflux_workloads::touches`), the traces (`traces`), tables and charts (`findings`).
//! Invariants: the engine's policies run as its own code with its own page states (`ours`), or in the whole engine
//! (`device_time`); nothing was chosen to match anything published.

mod device_time;
mod dirty;
mod findings;
mod ours;
mod part;
mod ratios;
mod references;
#[cfg(test)]
mod tests;
mod traces;

use afflux_engine::eviction::EvictionKind;
use afflux_report::{Fields, Row};
use afflux_simulator::catalogue;
use afflux_workloads::touches::{GENERATORS, Generator, Sizes, generator_named};
use clap::Args;

use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use crate::options::{List, list, number};
use dirty::DirtyCell;
use findings::own_row;
use part::Part;
use ratios::{Cell, ENGINES, POLICIES};
use traces::{RealTrace, TRACES, TraceRow};

/// The seed of all touches.
const SEED: u64 = 1;
/// In the second part, a cache holds a 16th or a quarter of the pages.
const DEVICE_PARTS: [u64; 2] = [16, 4];

/// The options of a run.
#[derive(Args)]
struct EvictionOptions {
    /// Caches of 1/N of the pages, or of a fraction; --quick: 16,4
    #[arg(long, value_name = "LIST", default_value = "64,16,4,7/10,8/10,9/10,19/20,99/100")]
    #[arg(value_parser = list(Part::read))]
    parts: List<Part>,
    /// Pages that a generator touches
    #[arg(long, value_name = "N", default_value = "65536", value_parser = number(1024..=4_194_304))]
    pages: u64,
    /// Touches of a generator
    #[arg(long, value_name = "N", default_value = "400000", value_parser = number(1000..=1_000_000_000))]
    touches: u64,
    /// Names of generators, or all
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = list(chosen))]
    generators: List<Vec<&'static Generator>>,
    /// Devices of the second part, by names of the catalogue; none leaves it out; --quick: disk
    #[arg(long, value_name = "LIST", default_value = "usb2-disk,disk,nvme-ssd,object-store")]
    #[arg(value_parser = list(device))]
    devices: List<Option<String>>,
    /// Pages in the second part, touched three times as often
    #[arg(long, value_name = "N", default_value = "8192", value_parser = number(1024..=4_194_304))]
    device_pages: u64,
    /// Recorded traces by name, all, or none
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = list(recorded))]
    traces: List<Vec<&'static RealTrace>>,
}

fn chosen(name: &str) -> Result<Vec<&'static Generator>, String> {
    if name == "all" { Ok(GENERATORS.iter().collect()) } else { Ok(vec![generator_named(name)?]) }
}

fn device(name: &str) -> Result<Option<String>, String> {
    match name {
        "none" => Ok(None),
        name if catalogue::names().contains(&name) => Ok(Some(name.to_owned())),
        name => Err(format!("'{name}' is none of {}, none", catalogue::names().join(", "))),
    }
}

fn recorded(name: &str) -> Result<Vec<&'static RealTrace>, String> {
    match name {
        "all" => Ok(TRACES.iter().collect()),
        "none" => Ok(Vec::new()),
        name => traces::named(name).map(|trace| vec![trace]),
    }
}

/// The experiment.
pub(crate) static EVICTION: Experiment = Experiment {
    name: "eviction",
    about: "Which page to evict: hits beside ARC and Belady's, time on devices with dirty pages, real traces",
    labels: findings::LABELS,
    thread: "Thread: none. The policies are of papers: S3-FIFO (SOSP 2023), SIEVE (NSDI 2024), ARC (FAST 2003), Belady's (1966); \
         two lists are Linux's",
    words: include_str!("words.md"),
    options: EvictionOptions::augment_args,
    can_measure: false,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let mut asked: EvictionOptions = request.read()?;
    request.shorten("parts", &mut asked.parts, vec![Part(1, 16), Part(1, 4)]);
    request.shorten("devices", &mut asked.devices, vec![Some("disk".to_owned())]);
    let trace_parts: &[Part] = if request.quick { &traces::QUICK_PARTS } else { &traces::PARTS };
    let generators = asked.generators.concat();
    let all = asked.runs(generators.len(), trace_parts.len()) as f64;
    let mut cells = Vec::new();
    for generator in &generators {
        for part in &asked.parts {
            watch.step(&format!("{}, cache {part}", generator.name), cells.len() as f64 / all);
            let sizes = Sizes { pages: asked.pages, frames: part.of(asked.pages), touches: asked.touches };
            let cell = Cell::run(generator, *part, sizes, SEED);
            (0..POLICIES.len()).for_each(|policy| watch.row(&cell_row(&cell, policy)));
            cells.push(cell);
        }
    }
    let (mut dirty_cells, mut cases) = (Vec::new(), 0);
    for generator in &generators {
        for part in &asked.parts {
            watch.step(&format!("{}, cache {part}, dirty pages", generator.name), (cells.len() + cases) as f64 / all);
            let sizes = Sizes { pages: asked.pages, frames: part.of(asked.pages), touches: asked.touches };
            let found = DirtyCell::run(generator, *part, sizes, SEED);
            if let Some(cell) = &found {
                let of_each = ENGINES.iter().zip(cell.misses);
                of_each.for_each(|(kind, misses)| watch.row(&dirty_row(cell, kind.name, misses)));
            }
            dirty_cells.extend(found);
            cases += 1;
        }
    }
    for device in asked.devices.iter().flatten() {
        for generator in &generators {
            for part in DEVICE_PARTS {
                watch.step(&format!("{} on {device}", generator.name), (cells.len() + cases) as f64 / all);
                let (pages, touches) = (asked.device_pages, 3 * asked.device_pages);
                let sizes = Sizes { pages, frames: pages / part, touches };
                for kind in ENGINES {
                    watch.row(&device_time::run(device, generator, sizes, kind, SEED)?);
                    cases += 1;
                }
            }
        }
    }
    let mut rows = Vec::new();
    for trace in asked.traces.iter().flatten() {
        for &part in trace_parts {
            let done = (cells.len() + cases + rows.len()) as f64 / all;
            watch.step(&format!("trace {}, cache {part}", trace.name), done);
            let found = TraceRow::run(trace, part)?;
            (0..POLICIES.len()).for_each(|policy| watch.row(&trace_row(&found, policy)));
            rows.push(found);
        }
    }
    Ok(findings::findings(&cells, &dirty_cells, &rows, &watch.rows))
}

impl EvictionOptions {
    /// The number of runs in all parts; a cell counts as one, and so does a row of a trace.
    fn runs(&self, generators: usize, trace_parts: usize) -> usize {
        let devices = self.devices.iter().flatten().count();
        let traces = self.traces.iter().flatten().count();
        generators * (2 * self.parts.len() + devices * DEVICE_PARTS.len() * ENGINES.len()) + traces * trace_parts
    }
}

fn cell_row(cell: &Cell, policy: usize) -> Row {
    let name = POLICIES[policy];
    let params = Fields::new().with("generator", cell.generator).with("cache_part", cell.part.value());
    let mut metrics = Fields::new()
        .with("hit_ratio", cell.hit_ratio(name))
        .with("miss_reduction_to_fifo", cell.miss_reduction(name))
        .with("gap_closed", cell.gap_closed(name));
    if name == EvictionKind::default().name {
        metrics.push("to_best", cell.to_best());
    }
    if let Some(looks) = cell.looks[policy] {
        metrics.push("looked_at_per_miss", looks);
    }
    own_row(name, params, metrics)
}

fn dirty_row(cell: &DirtyCell, policy: &str, [clean, dirty]: [u64; 2]) -> Row {
    let params = Fields::new().with("dirty", 1).with("generator", cell.generator).with("cache_part", cell.part.value());
    own_row(
        policy,
        params,
        Fields::new().with("misses", dirty).with("misses_to_clean", dirty as f64 / clean.max(1) as f64),
    )
}

fn trace_row(found: &TraceRow, policy: usize) -> Row {
    let params = Fields::new()
        .with("trace", found.trace)
        .with("held_out", u64::from(found.held_out))
        .with("cache_part", found.part.value());
    let mut metrics = Fields::new().with("pages_read", found.misses[policy]);
    if let Some(engine) = ENGINES.iter().position(|kind| kind.name == POLICIES[policy]) {
        metrics.push("disk_bytes_read", found.disk_bytes[engine][0]);
        metrics.push("disk_bytes_read_with_readahead", found.disk_bytes[engine][1]);
    }
    own_row(POLICIES[policy], params, metrics)
}
