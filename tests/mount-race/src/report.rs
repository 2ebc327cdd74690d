//! The tables of the race.
//!
//! Owns: medians, ratios, spreads, marks for stolen time, rows of Markdown.
//! Does not own: the figures, the goals.
//! Invariants: a ratio's spread is that of the rounds' own ratios. A goal whose runs lost time to the hypervisor is
//! neither met nor missed.

use afflux_experiments::statistics::median_and_range;

use crate::cases::{Against, Bound, Goal, Raced, Unit};
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

fn of_who(raced: &Raced, who: Who) -> Vec<Figure> {
    let all = raced.rounds.iter().flatten();
    all.filter(|(whose, _)| *whose == who).map(|(_, figure)| *figure).collect()
}

fn median(figures: &[Figure], of: fn(&Figure) -> f64) -> f64 {
    median_and_range(figures.iter().map(of).collect()).map_or(0.0, |[middle, ..]| middle)
}

/// All tables.
pub(crate) fn text(all: &[Raced], remarks: &[String], machine: &Machine<'_>) -> String {
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
    for remark in remarks.iter().chain(all.iter().flat_map(|raced| &raced.failed)) {
        text += &format!("\n- {remark}");
    }
    text + "\n"
}

fn goals(all: &[Raced]) -> String {
    let mut text = String::from("| case | compared | goal | median (least–most of the rounds) | |\n|-|-|-|-|-|\n");
    for raced in all {
        for goal in raced.case.goals {
            let compared = match goal.against {
                Against::Contender(who) => format!("{} to {}", goal.of.name(), who.name()),
                Against::Nothing => goal.of.name().to_owned(),
            };
            let unit = if matches!(goal.against, Against::Nothing) { raced.case.unit } else { Unit::Times };
            let bound = match goal.bound {
                Bound::AtMost(most) => format!("at most {}", value(unit, most)),
                Bound::AtLeast(least) => format!("at least {}", value(unit, least)),
            };
            let (shown, verdict) = match reached(raced, goal) {
                Some(([middle, least, most], stolen)) => {
                    let range = format!("({}–{})", value(unit, least), value(unit, most));
                    (format!("**{}** {range}", value(unit, middle)), verdict(goal, middle, stolen))
                }
                None => ("–".to_owned(), "not measured"),
            };
            text += &format!("| {} | {compared} | {bound} | {shown} | {verdict} |\n", raced.case.name);
        }
    }
    text
}

/// Median, least and most of the rounds, and the milliseconds stolen from the runs.
fn reached(raced: &Raced, goal: &Goal) -> Option<([f64; 3], u64)> {
    let mut stolen = 0;
    let of_round = |round: &Vec<(Who, Figure)>| {
        let mut figure = |who| {
            let figure = round.iter().find(|(whose, _)| *whose == who)?.1;
            stolen += figure.stolen_ms;
            Some(figure.value)
        };
        let own = figure(goal.of)?;
        match goal.against {
            Against::Contender(who) => Some(own / figure(who)?.max(1e-9)),
            Against::Nothing => Some(own),
        }
    };
    let values = raced.rounds.iter().filter_map(of_round).collect();
    median_and_range(values).map(|range| (range, stolen))
}

fn verdict(goal: &Goal, middle: f64, stolen_ms: u64) -> &'static str {
    let met = match goal.bound {
        Bound::AtMost(most) => middle <= most,
        Bound::AtLeast(least) => middle >= least,
    };
    match (stolen_ms, met) {
        (0, true) => "met",
        (0, false) => "**missed**",
        _ => "no verdict: time was stolen",
    }
}

fn figures(all: &[Raced]) -> String {
    let mut text = String::from(
        "| case | contender | median (least–most of the rounds) | processor µs, caller + servers | context switches | \
         stolen |\n|-|-|-|-|-|-|\n",
    );
    for raced in all {
        for who in raced.case.who {
            let figures = of_who(raced, *who);
            let Some([middle, least, most]) = median_and_range(figures.iter().map(|it| it.value).collect()) else {
                continue;
            };
            let (caller, servers) = (median(&figures, |it| it.caller_us), median(&figures, |it| it.servers_us));
            let stolen: u64 = figures.iter().map(|it| it.stolen_ms).sum();
            let unit = raced.case.unit;
            text += &format!(
                "| {} | {} | {} ({}–{}) | {caller:.1} + {servers:.1} | {:.2} | {} |\n",
                raced.case.name,
                who.name(),
                value(unit, middle),
                value(unit, least),
                value(unit, most),
                median(&figures, |it| it.switches),
                if stolen == 0 { "–".to_owned() } else { format!("{stolen} ms") },
            );
        }
    }
    text
}

#[cfg(test)]
mod tests;
