//! Rows and plots of the case `kernel`.
//!
//! Owns: the columns.
//! Does not own: the runs, the figures (`written`).
//! Invariants: none.

use afflux_report::{Axis, Fields, Plot, Quantity, Row, Series, Shape};

use super::compare::Look;
use super::origins::LABELS;
use super::plan::Rate;
use super::written::{Form, KernelOfRun, Written, by_second, figures};
use crate::experiment::{Findings, Watch};
use crate::machine;
use crate::views::{TableView, View};

const NAMES: &[&str] = &["rate_bytes_per_s", "max_bytes", "dirty_bytes", "seconds", "dirty_limit_bytes", "hz"];

const VIEW: View = View {
    tables: &[TableView::of(
        "A writer at full speed under linux-6.1",
        NAMES,
        &[
            ("accepted, MB/s", "accepted_mb_per_s", 1),
            ("dirty, MB", "dirty_mb", 1),
            ("write p99, ms", "write_p99_ms", 1),
            ("fsync, s", "sync_s", 2),
        ],
        "Accepted and dirty: means after ten seconds.",
    )],
    charts: &[],
    text: include_str!("kernel_findings.md"),
    facts: &[
        ("dirty_default", |rows| of_form(rows, "kernel-default", "dirty_mb", 0)),
        ("sync_default", |rows| of_form(rows, "kernel-default", "sync_s", 0)),
        ("dirty_tuned", |rows| of_form(rows, "kernel-tuned", "dirty_mb", 0)),
        ("sync_tuned", |rows| of_form(rows, "kernel-tuned", "sync_s", 1)),
    ],
    labels: LABELS,
};

fn of_form(rows: &[Row], form: &str, name: &str, places: usize) -> Option<String> {
    let figure = rows.iter().find(|row| row.variant == form)?.metrics.get(name)?.as_f64()?;
    Some(format!("{figure:.places$}"))
}

/// The findings, as they grow.
pub(super) struct KernelFindings<'a> {
    rate: &'a Rate,
    seconds: u64,
    kernel: KernelOfRun,
    rows: Vec<Row>,
    plots: Vec<Plot>,
}

impl<'a> KernelFindings<'a> {
    pub(super) fn new(rate: &'a Rate, seconds: u64, kernel: KernelOfRun) -> Self {
        Self { rate, seconds, kernel, rows: Vec::new(), plots: Vec::new() }
    }

    pub(super) fn add(&mut self, form: &Form, written: &Written, watch: &mut dyn Watch) {
        let row = self.row(form, written);
        watch.row(&row);
        self.rows.push(row);
        let of_dirty = self.plot(form, written, ("dirty", Quantity::Memory), |look| look.dirty_bytes);
        let of_accepted = self.plot(form, written, ("accepted", Quantity::Data), |look| look.accepted_bytes);
        self.plots.extend([of_dirty, of_accepted]);
    }

    pub(super) fn findings(self) -> Findings {
        let mut findings = VIEW.findings(&self.rows);
        findings.figures = self.plots.into_iter().map(Into::into).collect();
        findings
    }

    fn row(&self, form: &Form, written: &Written) -> Row {
        let own = figures(written, self.seconds);
        let tenths = |values: Vec<f64>| values.into_iter().map(|value| machine::rounded(value, 1)).collect::<Vec<_>>();
        let metrics = Fields::new()
            .with("accepted_mb_per_s", own.accepted_mb_per_s)
            .with("dirty_mb", own.plateau_mb)
            .with("write_p99_ms", own.p99_ms)
            .with("write_max_ms", written.max_ns as f64 / 1e6)
            .with("sync_s", own.sync_s)
            .with("accepted_mb_by_second", tenths(by_second(written, self.seconds)))
            .with("delays", written.delays.clone());
        let (limit_bytes, background_bytes) = form.limit_bytes.unwrap_or_default();
        let params = Fields::new()
            .with("rate_bytes_per_s", self.rate.bytes_per_s)
            .with("max_bytes", form.max_bytes)
            .with("dirty_bytes", limit_bytes)
            .with("dirty_background_bytes", background_bytes)
            .with("seconds", self.seconds)
            .with("dirty_limit_bytes", self.kernel.dirty_limit_bytes)
            .with("hz", self.kernel.hz);
        machine::row("throttled", form.name, params, metrics, Fields::new())
    }

    fn plot(&self, form: &Form, written: &Written, what: (&str, Quantity), of: fn(&Look) -> u64) -> Plot {
        let title = format!("{}: {} at {}/s", what.0, form.name, self.rate.text);
        let points = written.looks.iter().map(|look| (look.at_s, of(look) as f64)).collect();
        let plot = Plot::new(title, Axis::new("time", Quantity::Time), Axis::new(what.0, what.1));
        plot.with(Series::new(form.name, Shape::Line, points))
    }
}
