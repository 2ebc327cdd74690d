//! Rows, table and plots of the case `kernel`.
//!
//! Owns: the two sides beside each other, the sentences.
//! Does not own: the runs, the figures (`written`).
//! Invariants: a figure that misses its goal carries a mark.

use afflux_report::{Align, Axis, Cell, Fields, Plot, Quantity, Row, Series, Shape, Source, Table};

use super::compare::{Look, deviation};
use super::plan::Rate;
use super::surroundings::{BEFORE_S, Surroundings};
use super::written::{FILLING_S, Figures, Form, GOAL, Written, apart_by_second, by_second, figures};
use crate::experiment::{Findings, Watch};
use crate::prose::{paragraph, section};

const TEXT: &str = include_str!("kernel_html.md");
/// The paragraphs for every run.
const SAYS: [&str; 5] = [
    section(TEXT, "the writer"),
    section(TEXT, "a device not seen before"),
    section(TEXT, "ticks"),
    section(TEXT, "late sleepers"),
    section(TEXT, "the running kernel"),
];

/// Both sides of a form.
pub(super) struct Compared<'a> {
    pub(super) form: &'a Form,
    pub(super) surroundings: &'a Surroundings,
    pub(super) ours: &'a Written,
    pub(super) theirs: Option<&'a Written>,
}

/// The findings, as they grow.
pub(super) struct KernelPage<'a> {
    rate: &'a Rate,
    seconds: u64,
    table: Table,
    answers: Vec<String>,
    findings: Findings,
}

fn tenths(values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(|value| (value * 10.0).round() / 10.0).collect()
}

impl<'a> KernelPage<'a> {
    pub(super) fn new(rate: &'a Rate, seconds: u64) -> Self {
        let right = Align::Right;
        let table = Table::new(
            "linux-6.1 simulated, and the kernel of this machine",
            &[
                ("form", Align::Left),
                ("side", Align::Left),
                ("accepted, MB/s", right),
                ("by second", right),
                ("dirty, MB", right),
                ("write p99, ms", right),
                ("fsync, s", right),
            ],
        )
        .named_by(2);
        Self { rate, seconds, table, answers: Vec::new(), findings: Findings::default() }
    }

    pub(super) fn add(&mut self, compared: &Compared<'_>, watch: &mut dyn Watch) {
        watch.row(&self.row(compared, compared.ours, Source::Simulated));
        if let Some(theirs) = compared.theirs {
            watch.row(&self.row(compared, theirs, Source::Measured));
        }
        self.answers.push(self.answer(compared));
        self.lines(compared);
        self.plots(compared);
    }

    pub(super) fn findings(mut self) -> Findings {
        self.findings.answer = self.answers.join(" ");
        self.table.note(format!(
            "Accepted and dirty: means from second {FILLING_S} to {}. By second: how far apart what was accepted in \
             each of these seconds is, in the mean. An asterisk: more than 15 % apart.",
            self.seconds
        ));
        self.findings.tables.push(self.table);
        self.findings.says = SAYS.map(paragraph).to_vec();
        self.findings
    }

    fn row(&self, compared: &Compared<'_>, written: &Written, source: Source) -> Row {
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
        if matches!(source, Source::Measured) {
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
        Row {
            experiment: "throttled".to_owned(),
            variant: form.name.to_owned(),
            params: Fields::new()
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
                .with("late_p99_ms", surroundings.late_p99_ns as f64 / 1e6),
            metrics,
            published: Fields::new(),
            source,
        }
    }

    fn answer(&self, compared: &Compared<'_>) -> String {
        let (name, ours) = (compared.form.name, figures(compared.ours, self.seconds));
        match compared.theirs.map(|written| (figures(written, self.seconds), written)) {
            Some((theirs, written)) => format!(
                "{name}: the simulated kernel accepts {:.1} MB/s where the real one accepts {:.1}, {:.1} % apart by second; \
                 the fsync takes {:.2} s and {:.2}.",
                ours.accepted_mb_per_s,
                theirs.accepted_mb_per_s,
                100.0 * apart_by_second(compared.ours, written, self.seconds),
                ours.sync_s,
                theirs.sync_s,
            ),
            None => format!(
                "{name}: the simulated kernel accepts {:.1} MB/s and its fsync takes {:.2} s; nothing was measured.",
                ours.accepted_mb_per_s, ours.sync_s
            ),
        }
    }

    fn lines(&mut self, compared: &Compared<'_>) {
        let name = compared.form.name;
        let line = |side: &str, figures: &Figures| {
            [
                name.to_owned(),
                side.to_owned(),
                format!("{:.1}", figures.accepted_mb_per_s),
                String::new(),
                format!("{:.1}", figures.plateau_mb),
                format!("{:.1}", figures.p99_ms),
                format!("{:.2}", figures.sync_s),
            ]
        };
        let ours = figures(compared.ours, self.seconds);
        self.table.row(line("simulated", &ours));
        let Some(written) = compared.theirs else { return };
        let theirs = figures(written, self.seconds);
        self.table.row(line("measured", &theirs));
        let marked = |share: f64, text: String| if share.abs() > GOAL { Cell::flagged(text) } else { text.into() };
        let percent = |ours: f64, theirs: f64| {
            let share = deviation(ours, theirs);
            marked(share, format!("{:+.1} %", 100.0 * share))
        };
        let apart = apart_by_second(compared.ours, written, self.seconds);
        self.table.row(vec![
            name.into(),
            "deviation".into(),
            percent(ours.accepted_mb_per_s, theirs.accepted_mb_per_s),
            marked(apart, format!("{:.1} %", 100.0 * apart)),
            percent(ours.plateau_mb, theirs.plateau_mb),
            percent(ours.p99_ms, theirs.p99_ms),
            percent(ours.sync_s, theirs.sync_s),
        ]);
        let Surroundings { dirty_limit_bytes, hz, .. } = compared.surroundings;
        let filling = match compared.surroundings.filling().as_secs_f64() {
            0.0 => String::new(),
            seconds => format!(", memory filled in {seconds:.1} s"),
        };
        self.table.note(format!(
            "{name}, taken from the measured machine: {} MB may be dirty, {hz} ticks a second, others wrote {:.1} MB/s \
             to other disks{filling}. Who slept there ran again up to {:.1} ms late (99th percentile).",
            dirty_limit_bytes / 1_000_000,
            compared.surroundings.others_bytes_per_s() as f64 / 1e6,
            compared.surroundings.late_p99_ns as f64 / 1e6
        ));
    }

    fn plots(&mut self, compared: &Compared<'_>) {
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
        self.findings.figures.push(dirty.into());
        self.findings.figures.push(accepted.into());
    }
}
