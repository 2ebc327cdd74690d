//! The findings of s4: tables beside the published one, plots, and conclusions.
//!
//! Owns: their arrangement and wording; fixed paragraphs are in `findings.md`.
//! Does not own: the figures; the measured part (`measured`).
//! Invariants: a sentence that names a figure takes it from the rows.

mod columns;
mod measured;

use afflux_report::{Align, Axis, Bar, Bars, Plot, Quantity, Series, Shape, Table};

use super::formula;
use super::plan::{Plan, Threshold};
use super::published;
use super::simulated::Cell;
use crate::experiment::Findings;
use crate::prose::{paragraph, section};
use columns::{column_title, table};
pub(super) use measured::add_measured;

const TEXT: &str = include_str!("findings.md");
const AFFLUX: &str = section(TEXT, "afflux");
const NOT_SHOWN: &str = section(TEXT, "not shown");

const BY_COMPLETIONS: &str = "linux-3.6-completions";
const BY_COMPLETIONS_KEPT: &str = "linux-3.6-completions-kept";

/// The threshold that the seed advises.
const SECOND: Threshold = Threshold::Centisecs(100);

/// A figure of a cell, to take means of.
type Metric = fn(&Cell) -> f64;

fn rate(cell: &Cell) -> f64 {
    cell.copy.rate_mb_per_s()
}

fn commit_wait(cell: &Cell) -> f64 {
    cell.copy.commit_wait_ms()
}

/// The mean of a column of a variant.
fn mean(cells: &[Cell], variant: &str, threshold: Threshold, metric: Metric) -> Option<f64> {
    let of_column = |cell: &&Cell| cell.variant == variant && cell.threshold == threshold;
    let values: Vec<f64> = cells.iter().filter(of_column).map(metric).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The published mean of a column, if the plan is the seed's.
fn published_mean(plan: &Plan, threshold: Threshold) -> Option<f64> {
    published::of(threshold, |centisecs| published::mean(centisecs, &plan.records)).filter(|_| plan.is_published)
}

/// Our figure, and its deviation from the published one.
fn with_published(ours: f64, published: Option<f64>) -> String {
    match published {
        Some(published) => format!("{ours:.3} ({:+.1} %)", (ours / published - 1.0) * 100.0),
        None => format!("{ours:.3}"),
    }
}

pub(super) fn of_simulated(plan: &Plan, cells: &[Cell]) -> Findings {
    let mut findings = Findings { tables: vec![means(plan, cells)], ..Findings::default() };
    findings.tables.push(commit_waits(plan, cells));
    findings.details.extend(plan.variants.iter().map(|variant| by_record(plan, cells, variant.name)));
    findings.figures.push(rates_bars(plan, cells).into());
    // The plot shows columns that a list of other thresholds lacks.
    findings
        .figures
        .extend([Threshold::OFF, SECOND].iter().any(|it| plan.columns.contains(it)).then(|| dirty_plot(cells).into()));
    findings.figures.extend(starts_plot(cells).map(Into::into));
    findings.answer = answer(cells);
    findings.says = says(plan, cells);
    findings
}

/// The gain of the knob.
fn answer(cells: &[Cell]) -> String {
    let of = |variant, threshold| mean(cells, variant, threshold, rate);
    let own = of("afflux", Threshold::OFF)
        .map(|own| format!(" The flush budget of this project, with nothing set, copies at {own:.2} MB/s."))
        .unwrap_or_default();
    let gain = ["linux-3.6", BY_COMPLETIONS].map(|variant| Some((of(variant, Threshold::OFF)?, of(variant, SECOND)?)));
    let [Some((off, second)), by_completions] = gain else {
        return format!("The run has no copies with a threshold of 100 cs and without one to compare.{own}");
    };
    let percent = |(off, second): (f64, f64)| format!("{:+.1} %", (second / off - 1.0) * 100.0);
    let learned = by_completions.map(|pair| {
        format!(
            ", and at {:.2} MB/s ({}) where it learns the disk's speed at each write that ends",
            pair.1,
            percent(pair)
        )
    });
    format!(
        "A server told to begin writing at a second's worth of its disk (100 cs) takes a copy at {second:.2} MB/s, {} \
         against {off:.2} without{}.{own}",
        percent((off, second)),
        learned.unwrap_or_default(),
    )
}

fn means(plan: &Plan, cells: &[Cell]) -> Table {
    let distance = if plan.is_published { ", and how far from the published mean" } else { "" };
    let mut table = table(plan, &format!("Mean of the records, MB/s{distance}"), "server", Align::Left);
    let of = |threshold: &Threshold| published_mean(plan, *threshold);
    if plan.is_published {
        let row = plan.columns.iter().map(|column| of(column).map_or(String::new(), |mean| format!("{mean:.3}")));
        table.row(std::iter::once("published".to_owned()).chain(row));
    }
    let formula = plan
        .columns
        .iter()
        .map(|column| formula::mb_per_s(plan, *column).map_or(String::new(), |rate| with_published(rate, of(column))));
    table.row(std::iter::once("the seed's formula".to_owned()).chain(formula));
    for variant in &plan.variants {
        let row = plan.columns.iter().map(|column| {
            mean(cells, variant.name, *column, rate).map_or(String::new(), |ours| with_published(ours, of(column)))
        });
        table.row(std::iter::once(variant.name.to_owned()).chain(row));
    }
    table.note(
        "The seed's formula has nothing chosen to match: a window comes over the link, and what is left of it goes to the disk.",
    );
    table.note("300 cs: the server begins to write when it has as much dirty as its disk writes in 3 s. Off: without that knob.");
    if !plan.is_published {
        table.note("Not what the seed measured, so its figures do not stand beside these.");
    }
    table
}

fn by_record(plan: &Plan, cells: &[Cell], variant: &str) -> Table {
    let behind = if plan.is_published { ": ours, and the published cell behind it" } else { "" };
    let caption = format!("{variant}, MB/s{behind}");
    let mut table = table(plan, &caption, "record bytes", Align::Right);
    for &record in &plan.records {
        let row = plan.columns.iter().map(|&threshold| {
            let same = |cell: &&Cell| (cell.variant, cell.threshold, cell.record_bytes) == (variant, threshold, record);
            let Some(ours) = cells.iter().find(same).map(rate) else { return String::new() };
            match published::of(threshold, |cs| published::rate(cs, record)).filter(|_| plan.is_published) {
                Some(published) => format!("{ours:.2} / {published:.2} {:+.1} %", (ours / published - 1.0) * 100.0),
                None => format!("{ours:.2}"),
            }
        });
        table.row(std::iter::once(record.to_string()).chain(row));
    }
    table
}

fn commit_waits(plan: &Plan, cells: &[Cell]) -> Table {
    let mut table = table(plan, "How long the client waits for a COMMIT, mean, ms", "server", Align::Left);
    for variant in &plan.variants {
        let row = plan.columns.iter().map(|&threshold| {
            mean(cells, variant.name, threshold, commit_wait).map_or(String::new(), |ms| format!("{ms:.0}"))
        });
        table.row(std::iter::once(variant.name.to_owned()).chain(row));
    }
    table
}

fn rates_bars(plan: &Plan, cells: &[Cell]) -> Bars {
    let published = plan.is_published.then_some("published");
    let series = published.into_iter().chain(plan.variants.iter().map(|variant| variant.name));
    let bars = Bars::new("Rate of a copy by threshold", "rate", Quantity::DataRate, series).note(
        "Mean of the records. The smaller the threshold (300 cs: 3 s of the disk's time), the less is left to be written when \
         the client commits.",
    );
    plan.columns.iter().fold(bars, |bars, &threshold| {
        let bar = |mb: Option<f64>| mb.map(|mb| Bar::new(mb * 1e6));
        let of_seed = published.map(|_| bar(published_mean(plan, threshold)));
        let ours = plan.variants.iter().map(|variant| bar(mean(cells, variant.name, threshold, rate)));
        bars.group(column_title(threshold), of_seed.into_iter().chain(ours).collect())
    })
}

fn dirty_plot(cells: &[Cell]) -> Plot {
    let (x, y) = (Axis::new("time since the copy began", Quantity::Time), Axis::new("dirty", Quantity::Data));
    let plot = Plot::new("Dirty data on the server during one copy, linux-3.6", x, y).note(
        "Without a threshold in time it grows until the ordinary background limit, 10 percent of memory; \
               each fall to nothing is a COMMIT.",
    );
    [Threshold::OFF, SECOND].into_iter().fold(plot, |plot, threshold| {
        let cell = cells.iter().find(|cell| cell.variant == "linux-3.6" && cell.threshold == threshold);
        let Some(cell) = cell else { return plot };
        let began = cell.copy.looks.first().map_or(0, |look| look.at_ns);
        let looks = cell.copy.looks.iter();
        let points = looks.map(|look| ((look.at_ns - began) as f64 / 1e9, look.dirty_bytes as f64)).collect();
        plot.with(Series::new(column_title(threshold), Shape::Line, points))
    })
}

/// Starts of writing over the windows of all copies; `None` for a single window, which makes no line.
fn starts_plot(cells: &[Cell]) -> Option<Plot> {
    let starts = |variant: &str| -> Vec<(f64, f64)> {
        let of_variant = cells.iter().filter(|cell| cell.variant == variant && cell.threshold == SECOND);
        let starts = of_variant.flat_map(|cell| cell.copy.first_writes_bytes());
        starts.enumerate().map(|(at, bytes)| (at as f64 + 1.0, bytes as f64)).collect()
    };
    if starts("linux-3.6").len() < 2 {
        return None;
    }
    let x = Axis::new("window of the client, over all copies of the column", Quantity::Count);
    let y = Axis::new("dirty when the server begins to write", Quantity::Data);
    let plot = Plot::new("Where writing begins at 100 centiseconds", x, y)
        .note("The estimate of the disk's bandwidth starts at 100 MiB/s. A new server begins there for each copy.");
    let variants = ["linux-3.6", "linux-3.6-kept", BY_COMPLETIONS, BY_COMPLETIONS_KEPT];
    let add = |plot: Plot, variant| plot.with(Series::new(variant, Shape::Line, starts(variant)));
    Some(variants.into_iter().fold(plot, add))
}

/// The first and the last amount of a column at which writing begins, in MB.
fn starts_mb(cells: &[Cell], variant: &str, threshold: Threshold) -> Option<(f64, f64)> {
    let of_column = |cell: &&Cell| cell.variant == variant && cell.threshold == threshold;
    let starts: Vec<u64> = cells.iter().filter(of_column).flat_map(|cell| cell.copy.first_writes_bytes()).collect();
    Some((*starts.first()? as f64 / 1e6, *starts.last()? as f64 / 1e6))
}

fn says(plan: &Plan, cells: &[Cell]) -> Vec<String> {
    let mut says = Vec::new();
    if let (Some(off), Some(second)) =
        (mean(cells, "linux-3.6", Threshold::OFF, rate), mean(cells, "linux-3.6", SECOND, rate))
    {
        says.push(format!(
            "Shown: a server that begins to write while it receives takes {:+.1} % more at 100 centiseconds than \
             without a threshold in time ({second:.2} against {off:.2} MB/s).",
            (second / off - 1.0) * 100.0
        ));
    }
    if let Some((first, last)) = starts_mb(cells, "linux-3.6", Threshold::OFF) {
        says.push(format!(
            "Without a threshold in time the server begins to write at {first:.0} MB dirty in the first window (a \
             device that has completed nothing has no share of the background limit, so that the flusher's look every \
             five seconds starts it) and at {last:.0} MB in the last: the ordinary background limit, 10 percent of \
             {:.0} MB. Where that is below the client's window it is worth part of the gain.",
            plan.memory_bytes as f64 / 1e6
        ));
    }
    // A single copy leaves nothing for a next one to keep.
    let several = plan.records.len() > 1;
    if several
        && let (Some(fresh), Some(kept)) =
            (starts_mb(cells, BY_COMPLETIONS, SECOND), starts_mb(cells, BY_COMPLETIONS_KEPT, SECOND))
    {
        let kept_rate = mean(cells, BY_COMPLETIONS_KEPT, SECOND, rate).unwrap_or_default();
        says.push(format!(
            "An estimate that is kept and learned at each completed write, as later kernels do it, ends lower than the disk's \
             speed: at 100 centiseconds writing begins at {:.0} MB \
             in the first window and at {:.0} MB in the last of a server that goes on, so that it copies at \
             {kept_rate:.2} MB/s; a new server gets from {:.0} to {:.0} MB in one copy. Idle time between \
             writes counts as slowness of the disk: what is measured once writing keeps up is the network.",
            kept.0, kept.1, fresh.0, fresh.1
        ));
    }
    if several
        && let (Some(fresh), Some(kept)) =
            (starts_mb(cells, "linux-3.6", SECOND), starts_mb(cells, "linux-3.6-kept", SECOND))
    {
        says.push(format!(
            "As the posted kernels learn it, from the flusher's passes alone, writing begins at {:.0} MB in the first \
             window and at {:.0} MB in the last of a server that goes on, and from {:.0} to {:.0} MB in one copy of a new \
             one.",
            kept.0, kept.1, fresh.0, fresh.1
        ));
    }
    says.extend(gain_by_clients(plan, cells));
    says.push(paragraph(AFFLUX));
    says.push(paragraph(NOT_SHOWN));
    says
}

/// The gain of a threshold in bytes on the thread's later machine: a hold-out.
fn gain_by_clients(plan: &Plan, cells: &[Cell]) -> Option<String> {
    let (link, disk, bytes) = published::GAINS_OF;
    let published = published::gain_percent(plan.clients)?;
    if (plan.link.bits_per_second, plan.disk_bytes_per_s) != (link, disk) {
        return None;
    }
    let of = |threshold| mean(cells, "linux-3.6", threshold, rate);
    let (off, on) = (of(Threshold::OFF)?, of(Threshold::Bytes(bytes))?);
    Some(format!(
        "Hold-out: with {} clients the thread printed {published:+.2} % for dirty_background_bytes of {}; here it is \
         {:+.2} %. The thread's file, windows and memory are not known.",
        plan.clients,
        afflux_report::units::data(bytes),
        (on / off - 1.0) * 100.0,
    ))
}
