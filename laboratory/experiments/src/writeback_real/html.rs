//! Goals, tables, plots and sentences of the races.
//!
//! Owns: the goals of figures, medians and spreads, the wording.
//! Does not own: the figures (`full_speed`, `small_sync`, `burst`, `direct`).
//! Invariants: only the engine has goals, and its medians are compared with them; the kernel is never judged.

use std::time::Duration;

use afflux_report::{Align, Axis, Cell, Plot, Quantity, Series, Shape, Table, units};

use super::plan::{Plan, Subject, WritebackRace};
use super::{Look, Ran};
use crate::experiment::Findings;
use crate::host_load::{busy, load};
use crate::prose::{filled, paragraph, section};
use crate::statistics::median_and_range;

const TEXT: &str = include_str!("html.md");
const HOW: &str = section(TEXT, "how it was measured");
const COUNTED: &str = section(TEXT, "what is counted");
const GOALS: &str = section(TEXT, "goals");
const NOT_SHOWN: &str = section(TEXT, "not shown");
const QUICK: &str = section(TEXT, "quick");

/// The share of O_DIRECT's rate, which needs figures of two runs.
const OF_RAW: &str = "of_raw";

/// The goal for a figure.
#[derive(Clone, Copy)]
enum Goal {
    None,
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    fn is_met(self, value: f64) -> Option<bool> {
        match self {
            Self::None => None,
            Self::AtMost(most) => Some(value <= most),
            Self::AtLeast(least) => Some(value >= least),
        }
    }

    fn text(self, line: &Line) -> String {
        match self {
            Self::None => String::new(),
            Self::AtMost(most) => format!("≤ {}", line.number(most)),
            Self::AtLeast(least) => format!("≥ {}", line.number(least)),
        }
    }
}

/// A figure of a race: a line of the table.
struct Line {
    race: WritebackRace,
    metric: &'static str,
    about: &'static str,
    unit: &'static str,
    places: usize,
    goal: Goal,
}

const fn line(
    race: WritebackRace,
    metric: &'static str,
    about: &'static str,
    unit: &'static str,
    places: usize,
) -> Line {
    Line { race, metric, about, unit, places, goal: Goal::None }
}

impl Line {
    const fn at_most(self, most: f64) -> Self {
        Self { goal: Goal::AtMost(most), ..self }
    }

    const fn at_least(self, least: f64) -> Self {
        Self { goal: Goal::AtLeast(least), ..self }
    }

    fn number(&self, value: f64) -> String {
        format!("{value:.*}", self.places)
    }
}

const LINES: &[Line] = &[
    line(WritebackRace::FullSpeed, "sync_s", "fsync of everything", "s", 2).at_most(1.2),
    line(WritebackRace::FullSpeed, "accepted_mb_per_s", "accepted, once it has filled", "MB/s", 1),
    line(WritebackRace::FullSpeed, "write_p50_ms", "a write, p50", "ms", 3),
    line(WritebackRace::FullSpeed, "write_p99_ms", "a write, p99", "ms", 1),
    line(WritebackRace::FullSpeed, "write_p999_ms", "a write, p99.9", "ms", 1).at_most(6.0),
    line(WritebackRace::FullSpeed, "write_max_ms", "a write, longest", "ms", 1),
    line(WritebackRace::AtRate, "write_p50_ms", "a write, p50", "ms", 3),
    line(WritebackRace::AtRate, "write_p99_ms", "a write, p99", "ms", 1),
    line(WritebackRace::AtRate, "write_p999_ms", "a write, p99.9", "ms", 1).at_most(6.0),
    line(WritebackRace::AtRate, "write_max_ms", "a write, longest", "ms", 1),
    line(WritebackRace::AtRate, "sync_s", "fsync of everything", "s", 2),
    line(WritebackRace::SmallSync, "sync_p50_s", "fsync of 4 KiB, p50", "s", 3),
    line(WritebackRace::SmallSync, "sync_max_s", "fsync of 4 KiB, longest", "s", 3).at_most(0.3),
    line(WritebackRace::Burst, "alone_ms", "alone", "ms", 0),
    line(WritebackRace::Burst, "beside_ms", "beside the writer", "ms", 0),
    line(WritebackRace::Burst, "beside_by_alone", "beside by alone", "×", 2).at_most(1.2),
    line(WritebackRace::Direct, "mb_per_s", "until durable", "MB/s", 0),
    line(WritebackRace::Direct, OF_RAW, "of O_DIRECT", "%", 1).at_least(98.0),
];

/// All runs of a contender in a race.
struct Runs {
    race: WritebackRace,
    subject: Subject,
    runs: Vec<Ran>,
}

impl Runs {
    fn values(&self, metric: &str) -> Vec<f64> {
        let of = |ran: &Ran| ran.metrics.iter().find(|(name, _)| *name == metric).map(|(_, value)| *value);
        self.runs.iter().filter_map(of).collect()
    }
}

/// The findings, as they grow.
pub(super) struct WritebackPage<'a> {
    plan: &'a Plan,
    all: Vec<Runs>,
    left_out: Vec<String>,
    load: Option<(f64, usize)>,
}

impl<'a> WritebackPage<'a> {
    pub(super) fn new(plan: &'a Plan, left_out: Vec<String>) -> Self {
        Self { plan, all: Vec::new(), left_out, load: load() }
    }

    pub(super) fn add(&mut self, race: WritebackRace, subject: &Subject, ran: Ran) {
        match self.all.iter_mut().find(|runs| runs.race == race && runs.subject == *subject) {
            Some(runs) => runs.runs.push(ran),
            None => self.all.push(Runs { race, subject: subject.clone(), runs: vec![ran] }),
        }
    }

    pub(super) fn findings(&self) -> Findings {
        let figures = [("Accepted", accepted as LookFigure), ("Dirty", dirty as LookFigure)];
        let plots = figures.into_iter().filter_map(|(what, of)| self.plot(what, of));
        let figures = plots.map(Into::into).collect();
        Findings { answer: self.answer(), tables: self.tables(), figures, says: self.says(), ..Findings::default() }
    }

    /// The time of a sync after a stream, and the waits of a writer meanwhile.
    fn answer(&self) -> String {
        let each = |metric: &str, unit_s: f64| {
            let line = LINES.iter().find(|line| line.race == WritebackRace::FullSpeed && line.metric == metric);
            let of = |subject: &&Subject| {
                let [median, ..] = median_and_range(self.values(line?, subject))?;
                Some(format!("{} {}", subject.name(), units::latency((median * unit_s * 1e9).round() as u64)))
            };
            self.subjects().iter().filter_map(of).collect::<Vec<_>>().join("; ")
        };
        let (syncs, waits) = (each("sync_s", 1.0), each("write_p999_ms", 1e-3));
        if syncs.is_empty() {
            return "The race at full speed was not run: see the table.".to_owned();
        }
        let rate = units::rate(self.plan.rate_bytes_per_s, Duration::from_secs(1));
        format!(
            "After a writer at full speed to {rate} an fsync takes: {syncs}. Meanwhile one write in a thousand takes longer \
             than: {waits}."
        )
    }

    fn subjects(&self) -> Vec<&Subject> {
        let mut subjects: Vec<&Subject> = Vec::new();
        for runs in &self.all {
            if !subjects.contains(&&runs.subject) {
                subjects.push(&runs.subject);
            }
        }
        let place = |subject: &&Subject| match subject {
            Subject::Raw => 0,
            Subject::Kernel => 1,
            Subject::Tuned => 2,
            Subject::Ours(at, _) => 3 + at,
        };
        subjects.sort_by_key(place);
        subjects
    }

    /// One table for each race.
    fn tables(&self) -> Vec<Table> {
        let ran = |race: &WritebackRace| self.all.iter().any(|runs| runs.race == *race);
        let races: Vec<WritebackRace> = WritebackRace::ALL.iter().map(|(_, race)| *race).filter(ran).collect();
        let mut tables: Vec<Table> = races.into_iter().map(|race| self.table(race)).collect();
        if let Some(last) = tables.last_mut() {
            last.note("An asterisk: the goal is missed.");
            self.left_out.iter().for_each(|what| last.note(what.as_str()));
        }
        tables
    }

    fn table(&self, race: WritebackRace) -> Table {
        let (subjects, right) = (self.subjects(), Align::Right);
        let names: Vec<String> = subjects.iter().map(|subject| subject.name()).collect();
        let mut columns = vec![(race.about(), Align::Left), ("goal", right)];
        columns.extend(names.iter().map(|name| (name.as_str(), right)));
        let repeats = match self.plan.repeats {
            1 => "one run of each".to_owned(),
            repeats => format!("medians of {repeats} (least to most)"),
        };
        let mut table = Table::new(format!("Measured, {}, {repeats}", race.name()), &columns);
        for line in LINES.iter().filter(|line| line.race == race) {
            let cells: Vec<Cell> = subjects.iter().map(|subject| self.cell(line, subject)).collect();
            let about = format!("{}, {}", line.about, line.unit);
            table.row([about.into(), line.goal.text(line).into()].into_iter().chain(cells));
        }
        table
    }

    fn of(&self, race: WritebackRace, subject: &Subject) -> Option<&Runs> {
        self.all.iter().find(|runs| runs.race == race && runs.subject == *subject)
    }

    /// The values of a line; a share is relative to the run of O_DIRECT in the same repeat.
    fn values(&self, line: &Line, subject: &Subject) -> Vec<f64> {
        let values = |subject, metric| self.of(line.race, subject).map(|runs| runs.values(metric)).unwrap_or_default();
        if line.metric != OF_RAW {
            return values(subject, line.metric);
        }
        if *subject == Subject::Raw {
            return Vec::new();
        }
        let (own, raw) = (values(subject, "mb_per_s"), values(&Subject::Raw, "mb_per_s"));
        own.iter().zip(&raw).map(|(own, raw)| 100.0 * own / raw.max(1e-9)).collect()
    }

    fn cell(&self, line: &Line, subject: &Subject) -> Cell {
        let Some([median, least, most]) = median_and_range(self.values(line, subject)) else { return Cell::default() };
        let mut text = line.number(median);
        if self.plan.repeats > 1 {
            text.push_str(&format!(" ({} to {})", line.number(least), line.number(most)));
        }
        match line.goal.is_met(median).filter(|_| subject.is_ours()) {
            None => text.into(),
            Some(true) => format!("{text} met").into(),
            Some(false) => Cell::flagged(format!("{text} missed")),
        }
    }

    fn plot(&self, what: &str, of: LookFigure) -> Option<Plot> {
        let rate = units::rate(self.plan.rate_bytes_per_s, Duration::from_secs(1));
        let title = format!("{what}, a writer at full speed, then fsync, {rate}");
        let y = Axis::new(what.to_lowercase(), Quantity::Data).log();
        let plot = Plot::new(title, Axis::new("time", Quantity::Time), y).note("The first run of each.");
        let mut series = 0;
        let plot = self.subjects().into_iter().fold(plot, |plot, subject| {
            let Some(first) = self.of(WritebackRace::FullSpeed, subject).and_then(|runs| runs.runs.first()) else {
                return plot;
            };
            series += 1;
            // A logarithmic axis has no zero.
            let shown = first.looks.iter().filter(|look| of(look) > 0);
            let points = shown.map(|look| (look.at_s, of(look) as f64)).collect();
            plot.with(Series::new(subject.name(), Shape::Line, points))
        });
        (series > 0).then_some(plot)
    }

    fn says(&self) -> Vec<String> {
        let plan = self.plan;
        let rate = units::rate(plan.rate_bytes_per_s, Duration::from_secs(1));
        let (max_bytes, memory) = (units::data(plan.max_bytes), units::memory(plan.memory_bytes));
        let values = [("rate", rate.as_str()), ("max_bytes", &max_bytes), ("memory", &memory)];
        let mut says = Vec::new();
        says.extend(plan.quick.then(|| paragraph(QUICK)));
        says.extend(busy(self.load));
        says.extend([filled(HOW, &values), paragraph(COUNTED), paragraph(GOALS), paragraph(NOT_SHOWN)]);
        says
    }
}

/// The figure of a plot, from the state at an instant.
type LookFigure = fn(&Look) -> u64;

fn accepted(look: &Look) -> u64 {
    look.accepted_bytes
}

fn dirty(look: &Look) -> u64 {
    look.dirty_bytes
}

#[cfg(test)]
mod tests;
