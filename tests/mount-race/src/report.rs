//! The tables of the race.
//!
//! Owns: marks for stolen time, the rows.
//! Does not own: the figures, the goals; medians, ratios and the form of a table (`afflux_rig`).
//! Invariants: a goal whose runs lost time to the hypervisor is
//! neither met nor missed.

use afflux_rig::{Bound, MedianAndRange, Table, remarks};

use crate::cases::{Against, Goal, Raced, Unit};
use crate::contenders::Who;
use crate::figure::Figure;

/// The state of the machine during the race.
pub(crate) struct Machine<'a> {
    /// The load before the race.
    pub(crate) load: &'a str,
    /// Stolen time in the whole race.
    pub(crate) stolen_ms: u64,
    pub(crate) cpu: Option<usize>,
}

/// A value with its unit.
pub(crate) fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Us if value >= 100.0 => format!("{value:.0} µs"),
        Unit::Us => format!("{value:.2} µs"),
        Unit::Rate => format!("{value:.0} files/s"),
        Unit::Ms => format!("{value:.0} ms"),
        Unit::Seconds => format!("{value:.1} s"),
        Unit::Times => format!("{value:.2}×"),
    }
}

/// A median with its range.
fn range(unit: Unit, [middle, least, most]: MedianAndRange) -> [String; 2] {
    [value(unit, middle), format!("({}–{})", value(unit, least), value(unit, most))]
}

/// All tables.
pub(crate) fn text(all: &[Raced], machine: &Machine<'_>) -> String {
    let cpu = machine.cpu.map_or_else(
        || "All CPUs.".to_owned(),
        |cpu| format!("Callers and servers on CPU {cpu}, a build and those beside slow disks on all."),
    );
    let mut text = format!(
        "{cpu} The load was {} before. The hypervisor took {} ms in the race.\n\n{}\n{}",
        machine.load,
        machine.stolen_ms,
        goals(all),
        figures(all)
    );
    for remark in remarks(all.iter().map(|raced| (raced.case.name, &raced.figures)), Who::word) {
        text += &format!("\n- {remark}");
    }
    text + "\n"
}

fn goals(all: &[Raced]) -> Table {
    let mut table = Table::new(["case", "compared", "goal", "median (least–most of the rounds)", ""]);
    for (raced, goal) in all.iter().flat_map(|raced| raced.case.goals.iter().map(move |goal| (raced, goal))) {
        let (compared, unit) = match goal.against {
            Against::Contender(who) => (format!("{} to {}", goal.of.word(), who.word()), Unit::Times),
            Against::Nothing => (goal.of.word().to_owned(), raced.case.unit),
        };
        let bound = match goal.bound {
            Bound::AtMost(most) => format!("at most {}", value(unit, most)),
            Bound::AtLeast(least) => format!("at least {}", value(unit, least)),
        };
        let (shown, verdict) = match reached(raced, goal) {
            Some(found) => {
                let [middle, range] = range(unit, found);
                (format!("**{middle}** {range}"), verdict(goal, found[0], stolen_ms(raced, goal)))
            }
            None => ("–".to_owned(), "not measured"),
        };
        table.row([raced.case.name, &compared, &bound, &shown, verdict]);
    }
    table
}

/// Median, least and most of the rounds.
fn reached(raced: &Raced, goal: &Goal) -> Option<MedianAndRange> {
    let of_figure = |figure: &Figure| figure.value;
    match goal.against {
        Against::Contender(who) => raced.figures.ratio(goal.of, who, of_figure),
        Against::Nothing => raced.figures.figure(goal.of, of_figure),
    }
}

/// Milliseconds stolen from the runs that a goal compares.
fn stolen_ms(raced: &Raced, goal: &Goal) -> u64 {
    let against = match goal.against {
        Against::Contender(who) => raced.figures.of(who),
        Against::Nothing => &[],
    };
    raced.figures.of(goal.of).iter().chain(against).map(|figure| figure.stolen_ms).sum()
}

fn verdict(goal: &Goal, middle: f64, stolen_ms: u64) -> &'static str {
    match (stolen_ms, goal.bound.is_met(middle)) {
        (0, true) => "met",
        (0, false) => "**missed**",
        _ => "no verdict: time was stolen",
    }
}

fn figures(all: &[Raced]) -> Table {
    let mut table = Table::new([
        "case",
        "contender",
        "median (least–most of the rounds)",
        "processor µs, caller + servers",
        "context switches",
        "stolen",
    ]);
    for raced in all {
        for who in raced.figures.contenders() {
            let Some(found) = raced.figures.figure(who, |it| it.value) else { continue };
            let median = |of: fn(&Figure) -> f64| raced.figures.median(who, of).unwrap_or(0.0);
            let stolen: u64 = raced.figures.of(who).iter().map(|it| it.stolen_ms).sum();
            table.row([
                raced.case.name.to_owned(),
                who.word().to_owned(),
                range(raced.case.unit, found).join(" "),
                format!("{:.1} + {:.1}", median(|it| it.caller_us), median(|it| it.servers_us)),
                format!("{:.2}", median(|it| it.switches)),
                if stolen == 0 { "–".to_owned() } else { format!("{stolen} ms") },
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests;
