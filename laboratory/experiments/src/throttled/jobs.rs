//! The case `jobs`: the same job files, simulated and by the real engine.
//!
//! Owns: rows, tables and plots of this case.
//! Does not own: the two sides, the comparison.
//! Invariants: a simulated row needs no hardware; a deviation needs both sides.

use afflux_report::{Align, Axis, Cell, Fields, FigureSource, Plot, Quantity, Row, Series, Shape, Table};

use super::compare::{DIRTY_GOAL, Figures, SYNC_GOAL, Side, THROUGHPUT_GOAL, deviation, dirty_deviation};
use super::plan::{Group, Plan, Rate, plan};
use super::{real, simulated};
use crate::experiment::{Findings, LabError, Request, Watch};
use crate::hardware::{DiskRates, SlowDisk};
use crate::prose::{opening, paragraph, section};

const TEXT: &str = include_str!("jobs.md");
const BOTH_SIDES: &str = section(TEXT, "both sides");
const MEASURED: &str = section(TEXT, "measured");
const FOUND: &str = section(TEXT, "found by comparing");
const LATENCY: &str = section(TEXT, "latency");
const NOTHING_MEASURED: &str = section(TEXT, "nothing measured");

/// Bytes of the slow disk's image.
const IMAGE_BYTES: u64 = 2 << 30;
const IMAGE_BYTES_QUICK: u64 = 1 << 30;

pub(super) fn run(request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
    let plan = plan(request)?;
    let image_bytes = if request.quick { IMAGE_BYTES_QUICK } else { IMAGE_BYTES };
    let disk = match request.measured {
        false => None,
        true => Some(
            SlowDisk::new(&plan.directory, image_bytes, DiskRates::default())
                .map_err(|error| LabError::Failed(error.to_string()))?,
        ),
    };
    let mut findings = Findings { opening: opening(TEXT, &[], &[]), ..Findings::default() };
    let mut table = table(request.measured);
    let total = (plan.rates.len() * plan.groups.len()) as f64;
    let mut apart = LargestDistances::default();
    let mut done = 0.0;
    for rate in &plan.rates {
        for group in &plan.groups {
            watch.step(&format!("{} at {}/s, simulated", group.name, rate.text), done / total);
            let latency_ns = disk.as_ref().map(real::latency_ns).transpose()?;
            let simulated = simulated::run(group, rate, plan.memory_bytes, latency_ns)?;
            let mut simulated_row = row(group, rate, &plan, &simulated, FigureSource::Simulated, None);
            if let Some(latency_ns) = latency_ns {
                simulated_row.params.push("latency_us", latency_ns as f64 / 1e3);
            }
            watch.row(&simulated_row);
            let measured = match &disk {
                None => None,
                Some(disk) => {
                    watch.step(&format!("{} at {}/s, measured", group.name, rate.text), (done + 0.1) / total);
                    let measured = real::run(group, rate, plan.memory_bytes, disk)?;
                    watch.row(&row(group, rate, &plan, &measured, FigureSource::Measured, Some(&simulated)));
                    Some(measured)
                }
            };
            apart.add(group, rate, &simulated, measured.as_ref());
            lines(&mut table, group, rate, &simulated, measured.as_ref());
            plots(&mut findings, group, rate, &simulated, measured.as_ref());
            done += 1.0;
        }
    }
    notes(&mut table, request.measured);
    findings.tables.push(table);
    findings.answer = apart.answer();
    findings.says = says(request.measured);
    Ok(findings)
}

/// The largest distances of the two sides, and the simulated jobs.
#[derive(Default)]
struct LargestDistances {
    throughput: f64,
    sync: f64,
    measured: u64,
    simulated: Vec<String>,
}

impl LargestDistances {
    fn add(&mut self, group: &Group, rate: &Rate, simulated: &Side, measured: Option<&Side>) {
        let ours = simulated.figures();
        self.simulated.push(format!("{} at {}/s {:.1} MB/s", group.name, rate.text, ours.mb_per_s));
        let Some(theirs) = measured.map(Side::figures) else { return };
        self.measured += 1;
        self.throughput = self.throughput.max(deviation(ours.mb_per_s, theirs.mb_per_s).abs());
        self.sync = self.sync.max(deviation(ours.sync_mean_ms, theirs.sync_mean_ms).abs());
    }

    fn answer(&self) -> String {
        if self.measured > 0 {
            return format!(
                "Over {} runs of the same jobs the simulator's throughput is within {:.1} % of the real disk's, and its mean \
                 sync within {:.1} %.",
                self.measured,
                100.0 * self.throughput,
                100.0 * self.sync
            );
        }
        format!(
            "Nothing was measured, so nothing is compared: that takes --measured. Simulated: {}.",
            self.simulated.join(", ")
        )
    }
}

fn row(group: &Group, rate: &Rate, plan: &Plan, side: &Side, source: FigureSource, other: Option<&Side>) -> Row {
    let mut metrics = side.figures().fields();
    metrics.push("dirty_bytes_max", side.looks.iter().map(|look| look.dirty_bytes).max().unwrap_or(0));
    metrics.push("dirty_limit_bytes", side.limit_bytes);
    metrics.push("dirty_mib_by_second", side.dirty_mib_by_second());
    metrics.push("delays", side.delays.clone());
    if let Some(simulated) = other {
        let (ours, theirs) = (simulated.figures(), side.figures());
        let (mean, most) = dirty_deviation(simulated, side);
        metrics.push("throughput_deviation_percent", 100.0 * deviation(ours.mb_per_s, theirs.mb_per_s));
        metrics.push("sync_mean_deviation_percent", 100.0 * deviation(ours.sync_mean_ms, theirs.sync_mean_ms));
        metrics.push("dirty_deviation_mean_percent_of_limit", 100.0 * mean);
        metrics.push("dirty_deviation_p95_percent_of_limit", 100.0 * most);
    }
    Row {
        experiment: "throttled".to_owned(),
        variant: group.name.clone(),
        params: Fields::new()
            .with("rate_bytes_per_s", rate.bytes_per_s)
            .with("memory_bytes", plan.memory_bytes)
            .with("seed", simulated::SEED),
        metrics,
        published: Fields::new(),
        source,
    }
}

fn table(measured: bool) -> Table {
    let caption = if measured { "Simulated and measured" } else { "Simulated" };
    let right = Align::Right;
    Table::new(
        caption,
        &[
            ("job", Align::Left),
            ("rate", right),
            ("side", Align::Left),
            ("MB/s", right),
            ("syncs", right),
            ("sync mean, ms", right),
            ("sync p50, ms", right),
            ("sync p99, ms", right),
            ("sync max, ms", right),
            ("dirty off, mean", right),
            ("dirty off, p95", right),
        ],
    )
    .named_by(3)
}

fn lines(table: &mut Table, group: &Group, rate: &Rate, simulated: &Side, measured: Option<&Side>) {
    let line = |side: &str, figures: &Figures| -> Vec<Cell> {
        let syncs = if figures.syncs == 0 { String::new() } else { figures.syncs.to_string() };
        let ms = |value: f64| match figures.syncs {
            0 => String::new(),
            _ if value >= 999.5 => afflux_report::units::count(value.round() as u64),
            _ => format!("{value:.1}"),
        };
        vec![
            group.name.clone().into(),
            format!("{}/s", rate.text).into(),
            side.into(),
            format!("{:.2}", figures.mb_per_s).into(),
            syncs.into(),
            ms(figures.sync_mean_ms).into(),
            ms(figures.sync_p50_ms).into(),
            ms(figures.sync_p99_ms).into(),
            ms(figures.sync_max_ms).into(),
        ]
    };
    let ours = simulated.figures();
    table.row(line("simulated", &ours));
    let Some(measured) = measured else { return };
    let theirs = measured.figures();
    table.row(line("measured", &theirs));
    let apart = |share: f64| match share > DIRTY_GOAL {
        true => Cell::flagged(format!("{:.1} %", 100.0 * share)),
        false => format!("{:.1} %", 100.0 * share).into(),
    };
    let percent = |share: f64, goal: Option<f64>| {
        let text = format!("{:+.1} %", 100.0 * share);
        if goal.is_some_and(|goal| share.abs() > goal) { Cell::flagged(text) } else { text.into() }
    };
    let (mean, most) = dirty_deviation(simulated, measured);
    let sync = |ours: f64, theirs: f64, goal: Option<f64>| match theirs == 0.0 {
        true => Cell::default(),
        false => percent(deviation(ours, theirs), goal),
    };
    table.row(vec![
        group.name.clone().into(),
        format!("{}/s", rate.text).into(),
        "deviation".into(),
        percent(deviation(ours.mb_per_s, theirs.mb_per_s), Some(THROUGHPUT_GOAL)),
        "".into(),
        sync(ours.sync_mean_ms, theirs.sync_mean_ms, Some(SYNC_GOAL)),
        sync(ours.sync_p50_ms, theirs.sync_p50_ms, None),
        sync(ours.sync_p99_ms, theirs.sync_p99_ms, None),
        sync(ours.sync_max_ms, theirs.sync_max_ms, None),
        apart(mean),
        apart(most),
    ]);
}

fn notes(table: &mut Table, measured: bool) {
    table.note("MB/s: bytes that the job moved, over the time until its last sync ended.");
    if measured {
        table.note("dirty off: how far apart the dirty bytes are over time, in shares of the limit.");
        table.note(format!(
            "An asterisk: further apart than {:.0} % in throughput, {:.0} % in the mean sync, {:.0} % of the limit.",
            100.0 * THROUGHPUT_GOAL,
            100.0 * SYNC_GOAL,
            100.0 * DIRTY_GOAL
        ));
    }
}

fn plots(findings: &mut Findings, group: &Group, rate: &Rate, simulated: &Side, measured: Option<&Side>) {
    let dirty = |side: &Side| side.looks.iter().map(|look| (look.at_s, look.dirty_bytes as f64)).collect();
    let end_s = simulated.looks.iter().chain(measured.iter().flat_map(|side| &side.looks));
    let end_s = end_s.map(|look| look.at_s).fold(0.0, f64::max);
    let limit = simulated.limit_bytes as f64;
    let title = format!("Dirty bytes: {} at {}/s", group.name, rate.text);
    let mut plot = Plot::new(title, Axis::new("time", Quantity::Time), Axis::new("dirty", Quantity::Memory))
        .with(Series::new("simulated", Shape::Line, dirty(simulated)));
    if let Some(measured) = measured {
        plot = plot.with(Series::new("measured", Shape::Line, dirty(measured)));
    }
    plot = plot.with(Series::new("limit", Shape::Reference, vec![(0.0, limit), (end_s, limit)]));
    findings.figures.push(plot.into());
}

fn says(measured: bool) -> Vec<String> {
    let mut says = vec![paragraph(BOTH_SIDES)];
    if measured {
        says.push(paragraph(MEASURED));
        says.push(paragraph(FOUND));
        says.push(paragraph(LATENCY));
    } else {
        says.push(paragraph(NOTHING_MEASURED));
    }
    says
}

#[cfg(test)]
mod tests;
