//! The figures, their goals, and the table.
//!
//! Owns: the list of loads with units and goals; medians, spreads, the rows of Markdown.
//! Does not own: the figures' origin.
//! Invariants: a ratio's spread is that of the rounds' own ratios. A goal without figures is not reached.

use std::collections::BTreeMap;

use afflux_rig::{Table, median_and_range, short};

use super::participant::Who;

/// The goal of this server.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Goal {
    /// This part of plain requests' rate, at least.
    OfRaw(f64),
    /// The round trip and so much more, at most.
    MoreThanRoundTrip(f64),
    /// So many round trips, at most.
    RoundTrips(f64),
    /// This value, at most.
    AtMost(f64),
}

/// The loads: name, unit and goal of each.
macro_rules! loads {
    ($($load:ident: $name:literal, $unit:literal, $goal:expr;)+) => {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub(super) enum Load { $($load),+ }

        const ALL: &[Load] = &[$(Load::$load),+];

        impl Load {
            fn row(self) -> (&'static str, &'static str, Goal) {
                match self { $(Self::$load => ($name, $unit, $goal)),+ }
            }
        }
    };
}

loads! {
    StreamWrite: "sequential write", "MB/s", Goal::OfRaw(0.9);
    StreamRead: "sequential read", "MB/s", Goal::OfRaw(0.85);
    StreamPuts: "write of 1 GiB", "PUTs", Goal::AtMost(135.0);
    Commit: "COMMIT of 4 KiB, p50", "ms", Goal::MoreThanRoundTrip(3.0);
    CommitPuts: "COMMIT of 4 KiB", "PUTs", Goal::AtMost(1.1);
    CommitOfMany: "COMMIT of 4 KiB, 32 clients, p50", "ms", Goal::RoundTrips(1.6);
    CommitOfManySlow: "COMMIT of 4 KiB, 32 clients, p99", "ms", Goal::RoundTrips(2.5);
    CommitBesideStream: "COMMIT of 4 KiB beside a stream, p50", "ms", Goal::RoundTrips(3.0);
    SmallPuts: "1,000 files of 8 KiB from 32 clients", "PUTs", Goal::AtMost(150.0);
    ColdGets: "1,000 cold files of 8 KiB in order", "GETs and LISTs", Goal::AtMost(30.0);
    IdlePuts: "idle, PUTs", "a second", Goal::AtMost(0.1);
    IdleGets: "idle, GETs and LISTs", "a second", Goal::AtMost(1.0);
    Untar: "untar of files of 4 KiB", "ms a file", Goal::RoundTrips(4.0);
    UntarPuts: "untar of files of 4 KiB", "PUTs a file", Goal::AtMost(4.0);
    UntarAsync: "untar with --async-metadata", "ms a file", Goal::RoundTrips(1.2);
    UntarAsyncPuts: "untar with --async-metadata", "PUTs a file", Goal::AtMost(1.2);
    BackAfterKill: "back after a kill, same host", "s", Goal::AtMost(1.2);
    TakeOver: "back after a kill, another host", "s", Goal::AtMost(4.0);
}

impl Load {
    pub(super) fn name(self) -> &'static str {
        self.row().0
    }

    pub(super) fn unit(self) -> &'static str {
        self.row().1
    }
}

/// The figures of all rounds.
#[derive(Default)]
pub(super) struct Figures(BTreeMap<(Load, Who), Vec<f64>>);

impl Figures {
    pub(super) fn note(&mut self, load: Load, who: Who, value: f64) {
        self.0.entry((load, who)).or_default().push(value);
    }

    fn of(&self, load: Load, who: Who) -> &[f64] {
        self.0.get(&(load, who)).map_or(&[], Vec::as_slice)
    }

    /// This server's figure as the goal sees it, by rounds.
    fn compared(&self, load: Load, goal: Goal) -> Vec<f64> {
        let own = self.of(load, Who::Afflux).iter();
        let with = |other: &[f64], compare: fn(f64, f64) -> f64| -> Vec<f64> {
            own.clone().zip(other).map(|(own, other)| compare(*own, *other)).collect()
        };
        let round_trips = self.of(Load::Commit, Who::Raw);
        match goal {
            Goal::OfRaw(_) => with(self.of(load, Who::Raw), |own, raw| own / raw),
            Goal::MoreThanRoundTrip(_) => with(round_trips, |own, round_trip| own - round_trip),
            Goal::RoundTrips(_) => with(round_trips, |own, round_trip| own / round_trip),
            Goal::AtMost(_) => own.copied().collect(),
        }
    }
}

impl Goal {
    fn words(self) -> String {
        match self {
            Self::OfRaw(least) => format!("≥ {least} of raw"),
            Self::MoreThanRoundTrip(ms) => format!("≤ R + {ms} ms"),
            Self::RoundTrips(most) => format!("≤ {most} R"),
            Self::AtMost(most) => format!("≤ {most}"),
        }
    }

    fn is_reached(self, value: f64) -> bool {
        match self {
            Self::OfRaw(least) => value >= least,
            Self::MoreThanRoundTrip(most) | Self::RoundTrips(most) | Self::AtMost(most) => value <= most,
        }
    }
}

fn shown(values: &[f64]) -> String {
    match median_and_range(values.iter().copied()) {
        None => "–".to_owned(),
        Some([middle, ..]) if values.len() == 1 => short(middle),
        Some([middle, least, most]) => format!("{} ({}–{})", short(middle), short(least), short(most)),
    }
}

/// The table.
pub(super) fn markdown(figures: &Figures) -> String {
    let round_trip = shown(figures.of(Load::Commit, Who::Raw));
    let words = format!(
        "Medians (least–most) of rounds that alternate. *Raw* has as many requests side by side as afflux had. R is the \
         round trip of a PUT of 4 KiB: {round_trip} ms. Peers have no COMMIT: theirs is a file of 4 KiB that is written, \
         synced and closed. Their counts of small files are computed from a part."
    );
    let head = ["load", "unit"].into_iter().chain(Who::ALL.map(Who::word));
    let mut table = Table::new(head.chain(["as its goal sees afflux", "goal"]));
    for &load in ALL {
        let (name, unit, goal) = load.row();
        let compared = figures.compared(load, goal);
        let is_reached = median_and_range(compared.iter().copied()).is_some_and(|[middle, ..]| goal.is_reached(middle));
        let goal = format!("{}{}", goal.words(), if is_reached { "" } else { ", missed" });
        let all = Who::ALL.map(|who| shown(figures.of(load, who)));
        table.row([name.to_owned(), unit.to_owned()].into_iter().chain(all).chain([shown(&compared), goal]));
    }
    format!("{words}\n\n{table}")
}

#[cfg(test)]
mod tests;
