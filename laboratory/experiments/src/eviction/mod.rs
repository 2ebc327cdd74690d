//! Experiment eviction: which page to evict, by hit ratios, by time on devices, and by bytes read of real traces.
//!
//! Owns: the options, the order of the parts, the rows.
//! Does not own: the engine's policies, those for comparison (`references`), the generators
//! (`afflux_workloads::touches`), the traces (`traces`), tables and charts (`findings`).
//! Invariants: the engine's policies run as its own code with its own page states (`ours`), or in the whole engine
//! (`device_time`); nothing was chosen to match anything published.

mod device_time;
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

use crate::experiment::{Experiment, Findings, LabError, Request, StoredRows, Watch};
use crate::options::{options, values};
use findings::own_row;
use part::Part;
use ratios::{Cell, ENGINES, POLICIES};
use traces::{RealTrace, TRACES, TraceRow};

/// The seed of all touches.
const SEED: u64 = 1;
/// In the second part, a cache holds a 16th or a quarter of the pages.
const DEVICE_PARTS: [u64; 2] = [16, 4];

options! {
    OPTIONS {
        /// Caches of 1/N of the pages, or of a fraction; --quick: 16,4
        PARTS: Part = parsed("parts", "LIST", "64,16,4,7/10,8/10,9/10,19/20,99/100", Part::read);
        /// Pages that a generator touches
        PAGES: u64 = number("pages", "N", "65536", 1024..=4_194_304);
        /// Touches of a generator
        TOUCHES: u64 = number("touches", "N", "400000", 1000..=1_000_000_000);
        /// Names of generators, or all
        WHICH: Vec<&'static Generator> = parsed("generators", "LIST", "all", generators);
        /// Devices of the second part, by names of the catalogue; none leaves it out; --quick: disk
        DEVICES: Option<String> = parsed("devices", "LIST", "usb2-disk,disk,nvme-ssd,object-store", device);
        /// Pages in the second part, touched three times as often
        DEVICE_PAGES: u64 = number("device-pages", "N", "8192", 1024..=4_194_304);
        /// Recorded traces by name, all, or none
        WHICH_TRACES: Vec<&'static RealTrace> = parsed("traces", "LIST", "all", recorded);
    }
}
/// The cases of a quick run: as long as all others.
const QUICK_PARTS: &str = "16,4";
const QUICK_DEVICES: &str = "disk";

fn generators(name: &str) -> Result<Vec<&'static Generator>, String> {
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
    options: OPTIONS,
    can_measure: false,
    run: run_experiment,
};

fn run_experiment(request: &Request, watch: &mut StoredRows<'_>) -> Result<Findings, LabError> {
    let asked = EvictionOptions::read(request)?;
    let all = asked.runs() as f64;
    let mut cells = Vec::new();
    for generator in &asked.generators {
        for part in &asked.parts {
            watch.step(&format!("{}, cache {part}", generator.name), cells.len() as f64 / all);
            let sizes = Sizes { pages: asked.pages, frames: part.of(asked.pages), touches: asked.touches };
            let cell = Cell::run(generator, *part, sizes, SEED);
            (0..POLICIES.len()).for_each(|policy| watch.row(&cell_row(&cell, policy)));
            cells.push(cell);
        }
    }
    let mut cases = 0;
    for device in &asked.devices {
        for generator in &asked.generators {
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
    for trace in &asked.traces {
        for &part in asked.trace_parts {
            let done = (cells.len() + cases + rows.len()) as f64 / all;
            watch.step(&format!("trace {}, cache {part}", trace.name), done);
            let found = TraceRow::run(trace, part)?;
            (0..POLICIES.len()).for_each(|policy| watch.row(&trace_row(&found, policy)));
            rows.push(found);
        }
    }
    Ok(findings::findings(&cells, &rows, &watch.rows))
}

values! {
    /// The options of a run.
    struct EvictionOptions = read(request) {
        parts: Vec<Part> = PARTS.list_or_quick(request, QUICK_PARTS)?,
        pages: u64 = PAGES.value(request)?,
        touches: u64 = TOUCHES.value(request)?,
        generators: Vec<&'static Generator> = WHICH.list(request)?.concat(),
        devices: Vec<String> = DEVICES.list_or_quick(request, QUICK_DEVICES)?.into_iter().flatten().collect(),
        device_pages: u64 = DEVICE_PAGES.value(request)?,
        traces: Vec<&'static RealTrace> = WHICH_TRACES.list(request)?.concat(),
        trace_parts: &'static [Part] = if request.quick { &traces::QUICK_PARTS } else { &traces::PARTS },
    }
}

impl EvictionOptions {
    /// The number of runs in all parts; a cell counts as one, and so does a row of a trace.
    fn runs(&self) -> usize {
        let cells = self.generators.len() * self.parts.len();
        let rows = self.traces.len() * self.trace_parts.len();
        cells + rows + self.generators.len() * self.devices.len() * DEVICE_PARTS.len() * ENGINES.len()
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
