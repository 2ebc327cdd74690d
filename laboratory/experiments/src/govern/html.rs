//! Goals, tables, plots and sentences.
//!
//! Owns: the goals of figures, the wording.
//! Does not own: the figures (`simulated`, `measured`).
//! Invariants: only the governor has goals; a goal that compares uses figures of the same series of runs.

use std::time::Duration;

use afflux_report::{Align, Axis, Cell, Plot, Quantity, Series, Shape, Source, Table, units};

use super::plan::{GovernRace, Plan, Subject};
use super::{Look, Ran};
use crate::experiment::Findings;
use crate::host_load::{busy, load};
use crate::prose::{filled, paragraph, section};
use crate::statistics::median_and_range;

const TEXT: &str = include_str!("html.md");
const SIMULATED: &str = section(TEXT, "how simulated");
const MEASURED: &str = section(TEXT, "how measured");
const COMPARED: &str = section(TEXT, "what is compared");
const SLOWER: &str = section(TEXT, "slower");
const BURST: &str = section(TEXT, "burst");
const QUICK: &str = section(TEXT, "quick");

/// The goal for a figure of the governor.
#[derive(Clone, Copy)]
enum Goal {
    None,
    AtMost(f64),
    /// At most this many times the budget, in seconds.
    Budgets(f64),
    /// At least this share of the ungoverned kernel's figure.
    OfKernel(f64),
    /// At most the figure with the limit set by hand, to the precision of percentiles: a 32nd.
    AsByHand,
}

/// A figure: a line of the table.
struct Line {
    race: GovernRace,
    metric: &'static str,
    about: &'static str,
    places: usize,
    goal: Goal,
}

const fn line(race: GovernRace, metric: &'static str, about: &'static str, places: usize, goal: Goal) -> Line {
    Line { race, metric, about, places, goal }
}

const LINES: &[Line] = &[
    line(GovernRace::FullSpeed, "sync_s", "full speed: fsync at the end, s", 2, Goal::Budgets(1.3)),
    line(
        GovernRace::FullSpeed,
        "end_to_end_mb_per_s",
        "full speed: until all is on the disk, MB/s",
        2,
        Goal::OfKernel(0.99),
    ),
    line(GovernRace::FullSpeed, "write_p99_ms", "full speed: a write, p99, ms", 1, Goal::None),
    line(GovernRace::FullSpeed, "write_p999_ms", "full speed: a write, p99.9, ms", 1, Goal::AsByHand),
    line(GovernRace::FullSpeed, "write_max_ms", "full speed: a write, longest, ms", 0, Goal::None),
    line(GovernRace::Paced, "write_p999_ms", "need not wait: a write, p99.9, ms", 1, Goal::None),
    line(GovernRace::Paced, "write_max_ms", "need not wait: a write, longest, ms", 0, Goal::None),
    line(GovernRace::Paced, "sync_s", "need not wait: fsync at the end, s", 2, Goal::Budgets(1.3)),
    line(GovernRace::Slower, "followed_s", "disk gets slower: followed after, s", 1, Goal::AtMost(10.0)),
    line(GovernRace::Slower, "sync_s", "disk gets slower: fsync {follow} later, s", 2, Goal::Budgets(1.3)),
    line(GovernRace::Burst, "alone_ms", "burst to another disk: alone, ms", 0, Goal::None),
    line(GovernRace::Burst, "beside_ms", "burst to another disk: beside the writer, ms", 0, Goal::None),
    line(GovernRace::Burst, "beside_by_alone", "burst to another disk: times as long as alone", 2, Goal::None),
    line(GovernRace::FullSpeed, "cpu_percent", "full speed: the governor, of a CPU, %", 3, Goal::AtMost(0.1)),
];

/// The findings, as they grow.
pub(super) struct GovernPage<'a> {
    plan: &'a Plan,
    all: Vec<(Source, GovernRace, Subject, Ran)>,
    is_measured: bool,
    load: Option<(f64, usize)>,
}

/// The word for the source of a figure.
pub(super) fn said(source: Source) -> &'static str {
    if source == Source::Measured { "measured" } else { "simulated" }
}

impl<'a> GovernPage<'a> {
    pub(super) fn new(plan: &'a Plan, is_measured: bool) -> Self {
        Self { plan, all: Vec::new(), is_measured, load: is_measured.then(load).flatten() }
    }

    pub(super) fn add(&mut self, source: Source, race: GovernRace, subject: Subject, ran: Ran) {
        self.all.push((source, race, subject, ran));
    }

    pub(super) fn findings(self) -> Findings {
        let (mut findings, rate) =
            (Findings::default(), units::rate(self.plan.rate_bytes_per_s, Duration::from_secs(1)));
        for source in [Source::Measured, Source::Simulated] {
            findings.tables.extend(self.table(source, &rate));
        }
        for source in [Source::Measured, Source::Simulated] {
            let full = format!("Dirty, a writer at full speed, then fsync, {rate}, {}", said(source));
            let slower = format!("Dirty, and the limit, as a disk gets slower, {}", said(source));
            findings.figures.extend(self.plot(&full, source, GovernRace::FullSpeed, false).map(Into::into));
            findings.figures.extend(self.plot(&slower, source, GovernRace::Slower, true).map(Into::into));
        }
        findings.answer = self.answer(&rate);
        findings.says = self.says(&rate);
        findings
    }

    /// The time of a sync after a stream, for each subject; measured if there was such a run.
    fn answer(&self, rate: &str) -> String {
        let of = |source, subject: Subject| {
            let sync = self.value(source, GovernRace::FullSpeed, subject, "sync_s")?;
            let speed = self.value(source, GovernRace::FullSpeed, subject, "end_to_end_mb_per_s")?;
            Some(format!("{} {sync:.2} s at {speed:.1} MB/s", subject.name()))
        };
        for source in [Source::Measured, Source::Simulated] {
            let each: Vec<String> = Subject::ALL.into_iter().filter_map(|subject| of(source, subject)).collect();
            if !each.is_empty() {
                return format!(
                    "After a writer at full speed to a disk of {rate} an fsync takes, {}: {}.",
                    said(source),
                    each.join("; ")
                );
            }
        }
        "The race at full speed was not run: see the tables.".to_owned()
    }

    /// Median, minimum and maximum.
    fn values(&self, source: Source, race: GovernRace, subject: Subject, metric: &str) -> Option<[f64; 3]> {
        let own = self.all.iter().filter(|(from, own, who, _)| *from == source && *own == race && *who == subject);
        let found = own.filter_map(|(.., ran)| ran.metrics.iter().find(|(name, _)| *name == metric));
        median_and_range(found.map(|(_, value)| *value).collect())
    }

    fn value(&self, source: Source, race: GovernRace, subject: Subject, metric: &str) -> Option<f64> {
        self.values(source, race, subject, metric).map(|[median, ..]| median)
    }

    fn table(&self, source: Source, rate: &str) -> Option<Table> {
        let budget = units::time(Duration::from_millis(self.plan.budget_ms));
        let caption = format!("A disk of {rate}, budget {budget}, {}", said(source));
        let mut columns = vec![("", Align::Left)];
        columns.extend(Subject::ALL.map(|subject| (subject.name(), Align::Right)));
        columns.push(("goal", Align::Right));
        let mut table = Table::new(caption, &columns);
        let mut has_missed = false;
        for line in LINES {
            let value = |subject| self.value(source, line.race, subject, line.metric);
            if Subject::ALL.into_iter().all(|subject| value(subject).is_none()) {
                continue;
            }
            let number = |value: f64| format!("{value:.*}", line.places);
            let goal = self.goal(source, line);
            let follow = units::time(Duration::from_secs(self.plan.follow_s));
            let mut cells = vec![Cell::from(line.about.replace("{follow}", &follow))];
            for subject in Subject::ALL {
                let text = match self.values(source, line.race, subject, line.metric) {
                    Some([median, least, most]) if least < most => {
                        format!("{} ({} to {})", number(median), number(least), number(most))
                    }
                    Some([median, ..]) => number(median),
                    None => String::new(),
                };
                let is_missed = subject == Subject::Governed
                    && goal.zip(value(subject)).is_some_and(
                        |((at_least, goal), value)| {
                            if at_least { value < goal } else { value > goal }
                        },
                    );
                has_missed |= is_missed;
                cells.push(if is_missed { Cell::flagged(text) } else { text.into() });
            }
            let goal = goal.map(|(at_least, goal)| format!("{} {}", if at_least { "≥" } else { "≤" }, number(goal)));
            cells.push(goal.unwrap_or_default().into());
            table.row(cells);
        }
        if has_missed {
            table.note("*: the goal is missed.");
        }
        (!table.is_empty()).then_some(table)
    }

    /// Whether the goal is a minimum, and its value.
    fn goal(&self, source: Source, line: &Line) -> Option<(bool, f64)> {
        let of = |subject| self.value(source, line.race, subject, line.metric);
        match line.goal {
            Goal::None => None,
            Goal::AtMost(most) => Some((false, most)),
            Goal::Budgets(times) => Some((false, times * self.plan.budget_ms as f64 / 1e3)),
            Goal::OfKernel(share) => of(Subject::Kernel).map(|value| (true, share * value)),
            Goal::AsByHand => of(Subject::ByHand).map(|value| (false, value / 32.0 * 33.0)),
        }
    }

    fn plot(&self, title: &str, source: Source, race: GovernRace, with_limit: bool) -> Option<Plot> {
        let y = Axis::new("dirty", Quantity::Data).log();
        let mut plot = Plot::new(title, Axis::new("time", Quantity::Time), y).note("The first run of each.");
        let mut is_empty = true;
        // The kernel comes last. It does not run the race with a disk that gets slower, and each subject should look
        // the same in both drawings.
        for subject in [Subject::ByHand, Subject::Governed, Subject::Kernel] {
            let is_its = |run: &&(Source, GovernRace, Subject, Ran)| (run.0, run.1, run.2) == (source, race, subject);
            let Some((.., ran)) = self.all.iter().find(is_its) else { continue };
            // A logarithmic axis has no zero.
            let points = |of: fn(&Look) -> u64| {
                let shown = ran.looks.iter().filter(move |look| of(look) > 0);
                shown.map(move |look| (look.at_s, of(look) as f64)).collect::<Vec<_>>()
            };
            plot = plot.with(Series::new(subject.name(), Shape::Line, points(|look| look.dirty_bytes)));
            if with_limit && subject == Subject::Governed {
                plot = plot.with(Series::new("the governor's limit", Shape::Line, points(|look| look.limit_bytes)));
            }
            is_empty = false;
        }
        (!is_empty).then_some(plot)
    }

    fn says(&self, rate: &str) -> Vec<String> {
        let plan = self.plan;
        let (memory, budget) = (units::memory(plan.memory_bytes), units::time(Duration::from_millis(plan.budget_ms)));
        let slow = units::rate(plan.slow_bytes_per_s, Duration::from_secs(1));
        let mut says = Vec::new();
        says.extend(plan.quick.then(|| paragraph(QUICK)));
        says.extend(busy(self.load));
        says.push(filled(COMPARED, &[("budget", &budget)]));
        if self.is_measured {
            says.push(filled(MEASURED, &[("rate", rate)]));
        }
        if !plan.measured_only {
            says.push(filled(SIMULATED, &[("rate", rate), ("memory", &memory)]));
        }
        let follow = units::time(Duration::from_secs(plan.follow_s));
        says.push(filled(SLOWER, &[("slow", &slow), ("follow", &follow)]));
        says.extend(self.is_measured.then(|| paragraph(BURST)));
        says
    }
}
