//! The reads by path beside the kernel's code, the seed's perf stat, the plots; all findings together.
//!
//! Owns: their arrangement.
//! Does not own: the runs, the expected reads (`kernel_reads`), the tables of speeds (`tables`), the sentences
//! (`conclusions`).
//! Invariants: a figure shown is one of a row.

use afflux_kernels::Reads;
use afflux_report::{Align, Axis, Cell as Text, Figure, Plot, Quantity, Series, Shape, Table};

use super::cell::{Cell, PathsOf};
use super::kernel_reads::{expected, is_shown, read_on};
use super::parts::BASE;
use super::plan::Case;
use super::published::{PERF, SPEEDS};
use super::tables::{self, of_case};
use crate::experiment::Findings;

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
            ("of these always 0 here", right),
            ("device", right),
            ("kernel's code", right),
        ],
    )
    .named_by(2);
    for (variant, paths) in paths {
        for (path, calls) in paths.iter().filter(|(path, _)| is_shown(path)) {
            let name = if path.0.starts_with('C') { "let through" } else { "wrote one chunk" };
            let name = format!("{name}{}", if path.0.ends_with('f') { " while the flusher is at work" } else { "" });
            let Reads { global, dirty, device, absent } = path.1;
            let kernel = expected(variant, path).map_or_else(String::new, |[a, b, c]| format!("{a} / {b} / {c}"));
            let same = expected(variant, path) == Some(read_on(path));
            table.row([
                Text::from(*variant),
                Text::from(name),
                Text::from(afflux_report::units::count(*calls)),
                Text::from(global.to_string()),
                Text::from(dirty.to_string()),
                Text::from(absent.to_string()),
                Text::from(device.to_string()),
                if same { Text::from(kernel) } else { Text::flagged(kernel) },
            ]);
        }
    }
    table.note(
        "Always 0 here: anonymous memory, pages written through a copy, pages unstable on a server, which no \
         experiment here has. They are read as the kernel's are, and cost as much; they decide nothing.",
    );
    table.note(
        "Kernel's code: counted by hand; July's, of which there is no copy, as August's. The merged form's two rows are \
         below the half-way mark between background and limit, and above it. Before the patch two more are read on the way \
         out unless writeback of the device is in progress.",
    );
    table.note(
        "Chunks come from runs with a queue of 4 requests: with 128, what is in the queue keeps a device's dirty pages \
         below its share. August's and September's forms go round once more after a chunk: two passes of 9, 4 and 2 each.",
    );
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

fn lines<'a>(plot: Plot, cells: &[&'a Cell], name: impl Fn(&'a Cell) -> String) -> Plot {
    let mut names: Vec<String> = Vec::new();
    for cell in cells {
        let own = name(cell);
        if !names.contains(&own) {
            names.push(own);
        }
    }
    names.into_iter().fold(plot, |plot, own| {
        let points = cells.iter().filter(|cell| name(cell) == own);
        let points = points.map(|cell| (cell.size_mib as f64, cell.speed.mean)).collect();
        plot.with(Series::new(own, Shape::Line, points))
    })
}

fn new_plot(title: &str) -> Plot {
    let axis = |label: &str, unit| Axis::new(label, Quantity::Plain(unit));
    Plot::new(title, axis("size", "MiB").near_data(), axis("speed", "MiB/s"))
}

fn plots(cells: &[Cell]) -> Vec<Figure> {
    let mut figures = Vec::new();
    // The unchanged forms have the same speed, so one line stands for all of them.
    let shown = |cell: &&Cell| cell.is_changed() || [BASE, "s0-merged"].contains(&cell.variant());
    let speeds: Vec<&Cell> = of_case(cells, Case::Speeds).filter(shown).collect();
    if !speeds.is_empty() {
        let mut plot = lines(new_plot("Speed by size"), &speeds, |cell| cell.name().to_owned());
        let of_seed = if speeds.iter().any(|cell| cell.published().is_some()) { &SPEEDS[..] } else { &[] };
        for (name, column) in [("published, 2.6.31-rc3", 0), ("published, patched", 1)].into_iter().take(of_seed.len())
        {
            let points = of_seed.iter().map(|line| (line.0 as f64, if column == 0 { line.1[0] } else { line.2[0] }));
            plot = plot.with(Series::new(name, Shape::Line, points.collect()));
        }
        figures.push(Figure::Plot(plot));
    }
    let near: Vec<&Cell> = of_case(cells, Case::Near).collect();
    if !near.is_empty() {
        let name = |cell: &Cell| format!("{}, {}", cell.variant(), cell.change.label);
        figures.push(Figure::Plot(lines(new_plot("Speed near the limit"), &near, name)));
    }
    figures
}

/// All findings of the experiment.
pub(super) fn findings(cells: &[Cell], paths: &PathsOf) -> Findings {
    let mut all = tables::tables(cells);
    if !paths.is_empty() {
        all.push(reads(paths));
    }
    let (answer, says) = (super::conclusions::answer(cells, paths), super::conclusions::conclusions(cells, paths));
    Findings { answer, tables: all, details: vec![perf()], figures: plots(cells), says }
}
