//! Rows, goals and plots of the case `kernel`.
//!
//! Owns: the two sides beside each other, the columns.
//! Does not own: the runs, the figures (`written`).
//! Invariants: a distance is that of the simulated figure from the measured one.

use afflux_report::{Axis, Fields, FigureSource, Plot, Quantity, Row, Series, Shape};

use super::compare::{Look, deviation};
use super::origins::LABELS;
use super::plan::Rate;
use super::surroundings::{BEFORE_S, Surroundings};
use super::written::{Form, GOAL, Written, apart_by_second, by_second, figures};
use crate::experiment::{Findings, Watch};
use crate::machine;
use crate::views::{Check, TableView, View, add_checks};

const NAMES: &[&str] = &[
    "rate_bytes_per_s",
    "max_bytes",
    "dirty_bytes",
    "seconds",
    "dirty_limit_bytes",
    "hz",
    "filling_s",
    "others_bytes_per_s",
    "late_p99_ms",
];

const VIEW: View = View {
    tables: &[
        TableView::of(
            "A writer at full speed under linux-6.1 and under the kernel of this machine",
            NAMES,
            &[
                ("accepted, MB/s", "accepted_mb_per_s", 1),
                ("dirty, MB", "dirty_mb", 1),
                ("write p99, ms", "write_p99_ms", 1),
                ("fsync, s", "sync_s", 2),
            ],
            "Accepted and dirty: means after ten seconds.",
        ),
        TableView::of(
            "How far the simulated kernel is from it, %",
            &[],
            &[
                ("accepted", "accepted_deviation_percent", 1),
                ("by second", "accepted_by_second_apart_percent", 1),
                ("dirty", "dirty_deviation_percent", 1),
                ("write p99", "write_p99_deviation_percent", 1),
                ("fsync", "sync_deviation_percent", 1),
            ],
            "By second: how far apart what was accepted in each of these seconds is, in the mean.",
        ),
    ],
    charts: &[],
    text: include_str!("kernel_findings.md"),
    facts: &[],
    labels: LABELS,
};

/// Both sides of a form.
pub(super) struct Compared<'a> {
    pub(super) form: &'a Form,
    pub(super) surroundings: &'a Surroundings,
    pub(super) ours: &'a Written,
    pub(super) theirs: Option<&'a Written>,
}

/// The findings, as they grow.
pub(super) struct KernelFindings<'a> {
    rate: &'a Rate,
    seconds: u64,
    rows: Vec<Row>,
    plots: Vec<Plot>,
}

fn tenths(values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(|value| (value * 10.0).round() / 10.0).collect()
}

impl<'a> KernelFindings<'a> {
    pub(super) fn new(rate: &'a Rate, seconds: u64) -> Self {
        Self { rate, seconds, rows: Vec::new(), plots: Vec::new() }
    }

    pub(super) fn add(&mut self, compared: &Compared<'_>, watch: &mut dyn Watch) {
        let sides = [(Some(compared.ours), FigureSource::Simulated), (compared.theirs, FigureSource::Measured)];
        for (written, source) in sides {
            let row = written.map(|written| self.row(compared, written, source));
            row.iter().for_each(|row| watch.row(row));
            self.rows.extend(row);
        }
        self.plots.extend(self.plots(compared));
    }

    pub(super) fn findings(self) -> Findings {
        let mut findings = VIEW.findings(&self.rows);
        let checks: Vec<Check> = self.rows.iter().flat_map(checks).collect();
        add_checks(&mut findings, "The simulated kernel beside this one", &checks);
        findings.figures = self.plots.into_iter().map(Into::into).collect();
        findings
    }

    fn row(&self, compared: &Compared<'_>, written: &Written, source: FigureSource) -> Row {
        let Compared { form, surroundings, .. } = compared;
        let own = figures(written, self.seconds);
        let mut metrics = Fields::new()
            .with("accepted_mb_per_s", own.accepted_mb_per_s)
            .with("dirty_mb", own.plateau_mb)
            .with("write_p99_ms", own.p99_ms)
            .with("write_max_ms", written.max_ns as f64 / 1e6)
            .with("sync_s", own.sync_s)
            .with("accepted_mb_by_second", tenths(by_second(written, self.seconds)));
        if let Some(delays) = &written.delays {
            metrics.push("delays", delays.clone());
        }
        if matches!(source, FigureSource::Measured) {
            let simulated = figures(compared.ours, self.seconds);
            for (name, ours, theirs) in [
                ("accepted_deviation_percent", simulated.accepted_mb_per_s, own.accepted_mb_per_s),
                ("dirty_deviation_percent", simulated.plateau_mb, own.plateau_mb),
                ("write_p99_deviation_percent", simulated.p99_ms, own.p99_ms),
                ("sync_deviation_percent", simulated.sync_s, own.sync_s),
            ] {
                metrics.push(name, 100.0 * deviation(ours, theirs));
            }
            let apart = apart_by_second(compared.ours, written, self.seconds);
            metrics.push("accepted_by_second_apart_percent", 100.0 * apart);
            let others = surroundings.others_bytes.iter().map(|bytes| *bytes as f64 / 1e6).collect();
            metrics.push("others_mb_by_second", tenths(others));
        }
        let (limit_bytes, background_bytes) = form.limit_bytes.unwrap_or_default();
        let params = Fields::new()
            .with("rate_bytes_per_s", self.rate.bytes_per_s)
            .with("max_bytes", form.max_bytes)
            .with("dirty_bytes", limit_bytes)
            .with("dirty_background_bytes", background_bytes)
            .with("seconds", self.seconds)
            .with("before_s", BEFORE_S)
            .with("dirty_limit_bytes", surroundings.dirty_limit_bytes)
            .with("hz", surroundings.hz)
            .with("filling_s", surroundings.filling().as_secs_f64())
            .with("others_bytes_per_s", surroundings.others_bytes_per_s())
            .with("late_p99_ms", surroundings.late_p99_ns as f64 / 1e6);
        Row { source, ..machine::row("throttled", form.name, params, metrics, Fields::new()) }
    }

    fn plots(&self, compared: &Compared<'_>) -> [Plot; 2] {
        let title = |what: &str| format!("{what}: {} at {}/s", compared.form.name, self.rate.text);
        let sides = [("simulated", Some(compared.ours)), ("measured", compared.theirs)];
        let seconds = || Axis::new("time", Quantity::Time);
        let mut dirty = Plot::new(title("Dirty bytes"), seconds(), Axis::new("dirty", Quantity::Memory));
        let mut accepted = Plot::new(title("Accepted"), seconds(), Axis::new("accepted", Quantity::Data));
        for (name, written) in sides.iter().filter_map(|(name, written)| written.map(|written| (*name, written))) {
            let points =
                |of: &dyn Fn(&Look) -> u64| written.looks.iter().map(|look| (look.at_s, of(look) as f64)).collect();
            dirty = dirty.with(Series::new(name, Shape::Line, points(&|look| look.dirty_bytes)));
            accepted = accepted.with(Series::new(name, Shape::Line, points(&|look| look.accepted_bytes)));
        }
        [dirty, accepted]
    }
}

/// Whether the distances of a measured row are within the goal.
fn checks(row: &Row) -> Vec<Check> {
    let names = VIEW.tables[1].columns.iter();
    let of = |(title, name, _): &(&str, &str, usize)| {
        let percent = row.metrics.get(name)?.as_f64()?;
        let what = format!("{}: {title} within {:.0} %", row.variant, 100.0 * GOAL);
        Some(Check { what, found: format!("{percent:+.1} %"), met: percent.abs() <= 100.0 * GOAL })
    };
    names.filter_map(of).collect()
}
