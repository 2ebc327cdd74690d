//! The tables of the race.
//!
//! Owns: their rows, the words above them.
//! Does not own: the figures; medians, ratios and the form of a table (`afflux_rig`).
//! Invariants: a case without a figure has missed its goal.

use afflux_rig::{self as rig, MedianAndRange, Table, ratio, short};

use super::cases::Case;
use super::figure::Figure;
use super::servers::Running::{self, Afflux, AffluxUnsynced, Ganesha, Host};
use crate::failure::Failure;

/// A case with the figures of its participants.
pub(super) struct Raced {
    pub(super) case: Case,
    pub(super) figures: rig::Raced<Running, Figure, Failure>,
}

impl Raced {
    /// The ratio of two servers' rates.
    fn ratio(&self, of: Running, to: Running) -> Option<MedianAndRange> {
        self.figures.ratio(of, to, |figure| figure.rate)
    }

    /// Medians of a value of some participants.
    fn medians<const N: usize>(
        &self,
        all: [Running; N],
        value: fn(&Figure) -> f64,
        shown: fn(f64) -> String,
    ) -> String {
        all.map(|which| self.figures.median(which, value).map_or_else(|| "–".to_owned(), shown)).join(", ")
    }

    fn rate(&self, which: Running) -> String {
        self.medians([which], |figure| figure.rate, short)
    }

    fn cpu<const N: usize>(&self, all: [Running; N]) -> String {
        self.medians(all, |figure| figure.cpu_us, |us| format!("{us:.1}"))
    }

    /// Times of calls; a dash if they were not measured.
    fn delays(&self, which: Running, values: &[fn(&Figure) -> f64]) -> String {
        let of = |value: &fn(&Figure) -> f64| self.figures.median(which, value).filter(|us| *us > 0.0);
        let all: Option<Vec<String>> = values.iter().map(|value| Some(format!("{:.0}", of(value)?))).collect();
        all.map_or_else(|| "–".to_owned(), |all| all.join("/"))
    }

    /// The goal, and whether a ratio misses it.
    fn wanted(&self, ratio: Option<MedianAndRange>) -> String {
        let wanted = self.case.wanted;
        let missed = if ratio.is_none_or(|[middle, ..]| middle < wanted) { " missed" } else { "" };
        format!("{wanted}×{missed}")
    }

    /// The throughput of a stream of writes beside the calls; empty if there was none.
    fn streams(&self) -> String {
        let all = [Ganesha, Afflux, AffluxUnsynced];
        let has_any =
            all.iter().any(|which| self.figures.median(*which, |it| it.stream_mib).is_some_and(|it| it > 0.0));
        if has_any { self.medians(all, |it| it.stream_mib, |mib| format!("{mib:.0}")) } else { String::new() }
    }
}

/// A table of the cases of a kind, below its words; nothing without such cases.
fn table_of<const N: usize>(words: &str, head: [&str; N], all: Vec<&Raced>, row: fn(&Raced) -> [String; N]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(head);
    all.into_iter().for_each(|raced| table.row(row(raced)));
    format!("{words}{table}\n")
}

/// All tables.
pub(super) fn table(all: &[Raced]) -> String {
    let (names, others): (Vec<&Raced>, Vec<&Raced>) = all.iter().partition(|raced| raced.case.changes_names());
    let (delays, others): (Vec<&Raced>, Vec<&Raced>) =
        others.into_iter().partition(|raced| raced.case.is_about_delays());
    let (cold, others): (Vec<&Raced>, Vec<&Raced>) = others.into_iter().partition(|raced| raced.case.is_cold());
    [of_calls(others), of_names(names), of_delays(delays), of_cold_reads(cold)].concat()
}

fn of_calls(all: Vec<&Raced>) -> String {
    let head = [
        "case",
        "unit a second",
        "nfs-ganesha",
        "afflux",
        "ratio (least–most)",
        "wanted",
        "p50/p99 µs, ganesha and afflux",
        "CPU µs a call, ganesha, afflux and its client",
    ];
    table_of("", head, all, |raced| {
        let found = raced.ratio(Afflux, Ganesha);
        let delays = [Ganesha, Afflux].map(|which| raced.delays(which, &[|it| it.p50_us, |it| it.p99_us])).join(", ");
        let client = raced.medians([Afflux], |figure| figure.client_us, |us| format!("{us:.1}"));
        [
            raced.case.name.to_owned(),
            raced.case.unit.to_owned(),
            raced.rate(Ganesha),
            raced.rate(Afflux),
            ratio(found),
            raced.wanted(found),
            delays,
            format!("{}, {client}", raced.cpu([Ganesha, Afflux])),
        ]
    })
}

fn of_names(all: Vec<&Raced>) -> String {
    let words = "Names. nfs-ganesha answers before a change of names is durable; afflux after, unless told otherwise (`async`). \
                 *Host* is a loop of a program that makes each change and syncs it.\n\n";
    let head = [
        "case",
        "nfs-ganesha",
        "afflux",
        "afflux, async",
        "host, synced",
        "async to ganesha",
        "wanted",
        "durable to host",
        "CPU µs a call, ganesha and afflux",
        "stream beside, MiB/s, ganesha, afflux and async",
    ];
    table_of(words, head, all, |raced| {
        let equal_terms = raced.ratio(AffluxUnsynced, Ganesha);
        [
            raced.case.name.to_owned(),
            raced.rate(Ganesha),
            raced.rate(Afflux),
            raced.rate(AffluxUnsynced),
            raced.rate(Host),
            ratio(equal_terms),
            raced.wanted(equal_terms),
            ratio(raced.ratio(Afflux, Host)),
            raced.cpu([Ganesha, Afflux]),
            raced.streams(),
        ]
    })
}

/// Times of calls at half of each server's rate.
fn of_delays(all: Vec<&Raced>) -> String {
    let words = "Half load: each server gets half of the calls a second that it did with 64 in flight, each when it is due, and a \
                 call's time counts from then.\n\n";
    let head = [
        "case",
        "calls a second, ganesha and afflux",
        "p50/p99/p99.9 µs, ganesha",
        "afflux",
        "CPU µs a call, ganesha and afflux",
    ];
    table_of(words, head, all, |raced| {
        let times = |which| raced.delays(which, &[|it| it.p50_us, |it| it.p99_us, |it| it.p999_us]);
        [
            raced.case.name.to_owned(),
            raced.medians([Ganesha, Afflux], |figure| figure.rate, short),
            times(Ganesha),
            times(Afflux),
            raced.cpu([Ganesha, Afflux]),
        ]
    })
}

/// The cases that are compared with the bare loop.
fn of_cold_reads(all: Vec<&Raced>) -> String {
    let words = "Cold data. The bare loop receives the same calls, reads by io_uring with O_DIRECT and sends, on the servers' CPU. \
                 It has no cache.\n\n";
    let head = [
        "case",
        "nfs-ganesha",
        "afflux",
        "bare loop",
        "afflux to it",
        "wanted",
        "CPU µs a call, ganesha, afflux, loop",
    ];
    table_of(words, head, all, |raced| {
        let found = raced.ratio(Afflux, Host);
        [
            raced.case.name.to_owned(),
            raced.rate(Ganesha),
            raced.rate(Afflux),
            raced.rate(Host),
            ratio(found),
            raced.wanted(found),
            raced.cpu([Ganesha, Afflux, Host]),
        ]
    })
}
