//! The tables and charts of the races, the goals, and dirty bytes over time.
//!
//! Owns: the columns, the goals of figures.
//! Does not own: the figures (`simulated`, `measured`).
//! Invariants: only the governor has goals; a goal that compares uses figures of the same series of runs.

use afflux_figures::median;
use afflux_report::{FigureSource, Plot, Row};
use afflux_rig::Bound;

use super::plan::{GovernRace, Plan, Subject};
use crate::contenders::ran::{self, Ran};
use crate::experiment::Findings;
use crate::host::busy;
use crate::labels::{Cells, Label};
use crate::options::Named;
use crate::views::{Check, Column, Pick, TableView, View, add_checks};

const WRITES: &[Column] = &[
    ("fsync at the end, s", "sync_s", 2),
    ("until all is on the disk, MB/s", "end_to_end_mb_per_s", 2),
    ("a write, p99, ms", "write_p99_ms", 1),
    ("p99.9, ms", "write_p999_ms", 1),
    ("longest, ms", "write_max_ms", 0),
    ("followed after, s", "followed_s", 1),
    ("the governor, of a CPU, %", "cpu_percent", 3),
];

const fn race(caption: &'static str, rows: Pick) -> TableView {
    TableView::of(caption, &["rate_bytes_per_s", "budget_ms", "seconds"], WRITES, "").only(rows)
}

const VIEW: View = View {
    tables: &[
        race("A writer at full speed", &[("race", "full-speed")]),
        race("A writer that need not wait", &[("race", "paced")]),
        race("A disk that gets slower", &[("race", "slower")]),
        TableView::of(
            "A burst to another disk",
            &["rate_bytes_per_s"],
            &[
                ("alone, ms", "alone_ms", 0),
                ("beside the writer, ms", "beside_ms", 0),
                ("times alone", "beside_by_alone", 2),
            ],
            "",
        ),
    ],
    charts: &[],
    text: include_str!("findings.md"),
    facts: &[],
    labels: LABELS,
};

/// The origins of the figures.
pub(super) const LABELS: &[Cells] =
    &[Cells::of(Label::PutIn, "the disk, the limit by hand", &["rate_bytes_per_s", "budget_ms", "seconds"])];

/// The bound of a figure of the governor.
#[derive(Clone, Copy)]
enum Goal {
    AtMost(f64),
    /// At most this many times the budget, in seconds.
    Budgets(f64),
    /// At least this share of the ungoverned kernel's figure.
    OfKernel(f64),
    /// At most the figure with the limit set by hand, to the precision of percentiles: a 32nd.
    AsByHand,
}

const GOALS: [(GovernRace, &str, Goal); 7] = [
    (GovernRace::FullSpeed, "sync_s", Goal::Budgets(1.3)),
    (GovernRace::FullSpeed, "end_to_end_mb_per_s", Goal::OfKernel(0.99)),
    (GovernRace::FullSpeed, "write_p999_ms", Goal::AsByHand),
    (GovernRace::FullSpeed, "cpu_percent", Goal::AtMost(0.1)),
    (GovernRace::Paced, "sync_s", Goal::Budgets(1.3)),
    (GovernRace::Slower, "followed_s", Goal::AtMost(10.0)),
    (GovernRace::Slower, "sync_s", Goal::Budgets(1.3)),
];

/// A run with its series.
pub(super) type RanRace = (FigureSource, GovernRace, Subject, Ran);

/// The word for the source of a figure.
pub(super) fn said(source: FigureSource) -> &'static str {
    if source == FigureSource::Measured { "measured" } else { "simulated" }
}

pub(super) fn findings(plan: &Plan, all: &[RanRace], rows: &[Row], load: Option<(f64, usize)>) -> Findings {
    let mut findings = VIEW.findings(rows);
    for source in [FigureSource::Measured, FigureSource::Simulated] {
        findings.figures.extend(dirty_plot(all, source, GovernRace::FullSpeed).map(Into::into));
        findings.figures.extend(dirty_plot(all, source, GovernRace::Slower).map(Into::into));
    }
    let checks =
        [FigureSource::Measured, FigureSource::Simulated].into_iter().flat_map(|source| checks(plan, all, source));
    add_checks(&mut findings, "Goals of the governor", &checks.collect::<Vec<_>>());
    findings.says.extend(busy(load));
    findings
}

/// The median of a figure.
fn value(all: &[RanRace], source: FigureSource, race: GovernRace, subject: Subject, metric: &str) -> Option<f64> {
    let own = all.iter().filter(|(from, own, who, _)| *from == source && *own == race && *who == subject);
    median(own.filter_map(|(.., ran)| ran.metrics.get(metric)?.as_f64()))
}

fn checks(plan: &Plan, all: &[RanRace], source: FigureSource) -> Vec<Check> {
    let of = |(race, metric, goal): &(GovernRace, &str, Goal)| {
        let found = value(all, source, *race, Subject::Governed, metric)?;
        let other = |subject| value(all, source, *race, subject, metric);
        let bound = match goal {
            Goal::AtMost(most) => Bound::AtMost(*most),
            Goal::Budgets(times) => Bound::AtMost(times * plan.budget_ms as f64 / 1e3),
            Goal::OfKernel(share) => Bound::AtLeast(share * other(Subject::Kernel)?),
            Goal::AsByHand => Bound::AtMost(other(Subject::ByHand)? / 32.0 * 33.0),
        };
        let what = format!("{}, {}: {metric} {bound:.3}", said(source), race.name());
        Some(Check { what, found: format!("{found:.3}"), met: bound.is_met(found) })
    };
    GOALS.iter().filter_map(of).collect()
}

/// Dirty bytes of the first run of each subject. The kernel comes last: it does not run the race with a disk that gets
/// slower, and each subject should look the same in both drawings.
fn dirty_plot(all: &[RanRace], source: FigureSource, race: GovernRace) -> Option<Plot> {
    let mut lines = Vec::new();
    for subject in [Subject::ByHand, Subject::Governed, Subject::Kernel] {
        let is_its = |run: &&RanRace| (run.0, run.1, run.2) == (source, race, subject);
        let Some((.., ran)) = all.iter().find(is_its) else { continue };
        lines.push(ran.line(subject.name(), |look| look.dirty_bytes));
        if race == GovernRace::Slower && subject == Subject::Governed {
            lines.push(ran.line("the governor's limit", |look| look.limit_bytes));
        }
    }
    ran::plot(format!("Dirty bytes, {}, {}", race.name(), said(source)), "dirty", lines)
}
