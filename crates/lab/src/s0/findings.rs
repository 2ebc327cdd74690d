//! The tables of s0, and what they show.
//!
//! Owns: the arrangement, the integers that the reads must be. Does not own: the runs.
//! Invariants: a sentence about a figure is made from the figure.

use report::{Align, Axis, Cell as Text, Figure, Plot, Quantity, Row, Series, Shape, Table};

use super::published::{PERF, SPEEDS};
use super::reads::Path;
use super::{Cell, PathsOf};
use crate::experiment::Findings;

const BASE: &str = "linux-2.6.31";

/// Whether a path is one that kernel-facts counts: let through at once, or after one write of a chunk.
pub(super) fn is_shown(path: &Path) -> bool {
    path.0 == "C" || path.0 == "WC"
}

/// What the kernel's code reads on the path, counted by hand from it.
pub(super) fn expected(variant: &str, path: &Path) -> Option<[u64; 3]> {
    match (variant, path.0.as_str()) {
        // The tail's two are read unless the device's writeback is in progress.
        (BASE, "C") => Some(if path.1[0] == 12 { [12, 7, 4] } else { [14, 9, 4] }),
        // Two computations of limits, one test, and the tail.
        (BASE, "WC") => Some(if path.1[0] == 21 { [21, 11, 8] } else { [23, 13, 8] }),
        // Having written, August's and September's go round once more.
        ("s0-august" | "s0-september", "WC") => Some([18, 8, 4]),
        // Below the half-way mark nothing of the device is looked at.
        ("s0-merged", "C") if path.1[2] == 0 => Some([8, 3, 0]),
        ("s0-merged", "C" | "WC") => Some([8, 3, 2]),
        (_, "C" | "WC") => Some([9, 4, 2]),
        _ => None,
    }
}

fn speeds(cells: &[Cell]) -> Table {
    let right = Align::Right;
    let mut table = Table::new(
        "Speed of storing, MiB/s (standard deviation), and by how much the patch is faster",
        &[
            ("size", right),
            ("variant", Align::Left),
            ("ours", right),
            ("gain", right),
            ("published", right),
            ("gain", right),
            ("waited", right),
            ("calls", right),
        ],
    );
    for cell in cells {
        let base = cells.iter().find(|other| other.variant() == BASE && other.size_mib == cell.size_mib);
        let gain = |of: Option<f64>| of.map_or_else(String::new, |gain| format!("{gain:+.1} %"));
        let own = base.filter(|_| cell.variant() != BASE).map(|base| (cell.speed.mean / base.speed.mean - 1.0) * 100.0);
        let line = SPEEDS.iter().find(|line| line.0 == cell.size_mib);
        let (published, published_gain) = match (line, cell.variant()) {
            (Some(line), BASE) => (Some(line.1), None),
            (Some(line), "s0-july") => (Some(line.2), Some((line.2[0] / line.1[0] - 1.0) * 100.0)),
            _ => (None, None),
        };
        let speed = |[mean, sd]: [f64; 2]| format!("{mean:.1} ({sd:.2})");
        let waited = cell.mean(|run| run.pause_s);
        table.row([
            Text::from(format!("{} MiB", cell.size_mib)),
            Text::from(cell.variant()),
            Text::from(speed([cell.speed.mean, cell.speed.sd])),
            Text::from(gain(own)),
            Text::from(published.map_or_else(String::new, speed)),
            Text::from(gain(published_gain)),
            Text::from(format!("{waited:.2} s")),
            Text::from(format!("{:.0}", cell.mean(|run| run.calls as f64))),
        ]);
    }
    table.note("Published: 2.6.31-rc3, ten runs, fastest and slowest dropped; patched there is the July form.");
    table
}

fn reads(paths: &PathsOf) -> Table {
    let right = Align::Right;
    let mut table = Table::new(
        "Reads of shared counters in one call, by path",
        &[
            ("variant", Align::Left),
            ("path", Align::Left),
            ("calls", right),
            ("global", right),
            ("of these dirty", right),
            ("device", right),
            ("kernel's code", right),
        ],
    );
    for (variant, paths) in paths {
        for (path, calls) in paths.iter().filter(|(path, _)| is_shown(path)) {
            let name = if path.0 == "C" { "let through" } else { "wrote one chunk" };
            let [global, dirty, device] = path.1;
            let kernel = expected(variant, path).map_or_else(String::new, |[a, b, c]| format!("{a} / {b} / {c}"));
            let same = expected(variant, path) == Some(path.1);
            table.row([
                Text::from(*variant),
                Text::from(name),
                Text::from(calls.to_string()),
                Text::from(global.to_string()),
                Text::from(dirty.to_string()),
                Text::from(device.to_string()),
                if same { Text::from(kernel) } else { Text::flagged(kernel) },
            ]);
        }
    }
    table.note("Kernel's code: counted from it by hand; the merged form from memory. Its two rows without a chunk are");
    table
        .note("below the half-way mark between background and limit, and above it. Before the patch two more are read");
    table.note("on the way out unless writeback of the device is in progress. Chunks come from runs with a queue of 4");
    table.note("requests: with 128, what is in the queue keeps a device's dirty pages below its share.");
    table
}

fn perf() -> Table {
    let right = Align::Right;
    let mut table = Table::new(
        "The seed's perf stat, one typical run",
        &[("", Align::Left), ("2.6.31-rc4", right), ("patched", right), ("what can be said of it", Align::Left)],
    );
    for (what, base, patched, said) in PERF {
        let number = |value: f64| if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") };
        table.row([Text::from(what), Text::from(number(base)), Text::from(number(patched)), Text::from(said)]);
    }
    table
}

fn plot(cells: &[Cell]) -> Figure {
    let axis = |label: &str, unit| Axis::new(label, Quantity::Plain(unit));
    let mut plot = Plot::new("Speed by size", axis("size", "MiB"), axis("speed", "MiB/s"));
    let mut variants: Vec<&str> = cells.iter().map(|cell| cell.variant()).collect();
    variants.dedup();
    let mut shown: Vec<&str> = Vec::new();
    for variant in variants {
        if shown.contains(&variant) {
            continue;
        }
        shown.push(variant);
        let own = cells.iter().filter(|cell| cell.variant() == variant);
        let points = own.map(|cell| (cell.size_mib as f64, cell.speed.mean)).collect();
        plot = plot.with(Series::new(variant, Shape::Line, points));
    }
    for (name, column) in [("published, 2.6.31-rc3", 0), ("published, patched", 1)] {
        let points = SPEEDS.iter().map(|line| (line.0 as f64, if column == 0 { line.1[0] } else { line.2[0] }));
        plot = plot.with(Series::new(name, Shape::Dots, points.collect()));
    }
    Figure::Plot(plot)
}

/// What a decision costs here.
pub(super) fn of_measured(rows: &[Row]) -> Findings {
    let right = Align::Right;
    let mut table = Table::new(
        "A snapshot and a decision on this machine, ns (median)",
        &[("variant", Align::Left), ("threads beside", right), ("ns", right)],
    );
    for row in rows {
        let of = |value: Option<&serde_json::Value>| value.map_or_else(String::new, ToString::to_string);
        let cells = [of(row.params.get("threads_beside")), of(row.metrics.get("decision_ns_median"))];
        let [threads, ns] = cells;
        table.row([row.variant.clone(), threads, ns]);
    }
    let says = "Shows what a decision costs here, with the counters at rest and while two threads change them. The engine \
                reads each shared counter once a decision, whatever the law asks of the snapshot; so this does not show \
                what the reads that the patch saves cost a kernel of 2009. Other work on this machine disturbs it.";
    Findings { tables: vec![table], figures: Vec::new(), says: vec![says.to_owned()] }
}

/// All of it.
pub(super) fn findings(cells: &[Cell], paths: &PathsOf) -> Findings {
    Findings {
        tables: vec![speeds(cells), reads(paths), perf()],
        figures: vec![plot(cells)],
        says: super::conclusions::conclusions(cells, paths),
    }
}
