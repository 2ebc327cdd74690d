//! The table of the race.
//!
//! Owns: medians, ratios, spreads, rows of Markdown.
//! Does not own: the figures.
//! Invariants: a ratio's spread is that of the rounds' own ratios.

use super::servers::Running;
use super::{Figure, Raced};

/// A rate with three digits.
pub(super) fn short(rate: f64) -> String {
    match rate {
        rate if rate >= 999_500.0 => format!("{:.2} M", rate / 1e6),
        rate if rate >= 99_950.0 => format!("{:.0} k", rate / 1e3),
        rate if rate >= 9_995.0 => format!("{:.1} k", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}

/// The median, the least and the most; `None` without values.
pub(crate) fn median_and_range(mut values: Vec<f64>) -> Option<(f64, f64, f64)> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    Some((f64::midpoint(low, high), least, most))
}

fn median(values: Vec<f64>) -> Option<f64> {
    Some(median_and_range(values)?.0)
}

fn figures(raced: &Raced, which: Running) -> Vec<Figure> {
    raced.rounds.iter().filter_map(|round| round[which as usize]).collect()
}

/// The ratio of two servers by rounds: median, least and most.
fn ratio(raced: &Raced, of: Running, to: Running) -> Option<(f64, f64, f64)> {
    let of_round = |round: &[Option<Figure>; _]| Some(round[of as usize]?.rate / round[to as usize]?.rate.max(1e-9));
    median_and_range(raced.rounds.iter().filter_map(of_round).collect())
}

fn shown(ratio: Option<(f64, f64, f64)>) -> String {
    match ratio {
        None => "–".to_owned(),
        Some((middle, least, most)) => format!("**{middle:.2}×** ({least:.2}–{most:.2})"),
    }
}

fn rate(raced: &Raced, which: Running) -> String {
    let rates = figures(raced, which).into_iter().map(|figure| figure.rate).collect();
    median(rates).map_or_else(|| "–".to_owned(), short)
}

fn cpu(raced: &Raced, which: Running) -> String {
    microseconds(raced, which, |figure| figure.cpu_us)
}

fn microseconds(raced: &Raced, which: Running, of: fn(Figure) -> f64) -> String {
    let times = figures(raced, which).into_iter().map(of).collect();
    median(times).map_or_else(|| "–".to_owned(), |us| format!("{us:.1}"))
}

fn delays(raced: &Raced, which: Running) -> String {
    let of = |pick: fn(&Figure) -> f64| median(figures(raced, which).iter().map(pick).collect()).unwrap_or(0.0);
    let (p50, p99) = (of(|figure| figure.p50_us), of(|figure| figure.p99_us));
    if p50 > 0.0 { format!("{p50:.0}/{p99:.0}") } else { "–".to_owned() }
}

/// The throughput of a stream of writes beside the calls; empty if there was none.
fn streams(raced: &Raced) -> String {
    let of = |which| median(figures(raced, which).into_iter().map(|figure| figure.stream_mib).collect());
    let all = [Running::Ganesha, Running::Afflux, Running::AffluxUnsynced].map(|which| of(which).unwrap_or(0.0));
    if all.iter().all(|mib| *mib == 0.0) {
        return String::new();
    }
    let [ganesha, afflux, unsynced] = all.map(|mib| format!("{mib:.0}"));
    format!("{ganesha}, {afflux}, {unsynced}")
}

/// All rows; those about names have our two durability modes.
pub(super) fn table(all: &[Raced]) -> String {
    let mut text = String::from(
        "| case | unit a second | nfs-ganesha | afflux | ratio (least–most) | wanted | p50/p99 µs, ganesha and afflux | CPU µs a \
         call, ganesha, afflux and its client |\n|-|-|-|-|-|-|-|-|\n",
    );
    let (names, others): (Vec<&Raced>, Vec<&Raced>) = all.iter().partition(|raced| raced.case.changes_names());
    let (delays_rows, others): (Vec<&Raced>, Vec<&Raced>) =
        others.into_iter().partition(|raced| raced.case.is_about_delays());
    let (cold, others): (Vec<&Raced>, Vec<&Raced>) = others.into_iter().partition(|raced| raced.case.is_cold());
    for raced in others {
        let ratio = ratio(raced, Running::Afflux, Running::Ganesha);
        let wanted = raced.case.wanted;
        let missed = if ratio.is_none_or(|(middle, ..)| middle < wanted) { " missed" } else { "" };
        text += &format!(
            "| {} | {} | {} | {} | {} | {wanted}×{missed} | {}, {} | {}, {}, {} |\n",
            raced.case.name,
            raced.case.unit,
            rate(raced, Running::Ganesha),
            rate(raced, Running::Afflux),
            shown(ratio),
            delays(raced, Running::Ganesha),
            delays(raced, Running::Afflux),
            cpu(raced, Running::Ganesha),
            cpu(raced, Running::Afflux),
            microseconds(raced, Running::Afflux, |figure| figure.client_us),
        );
    }
    text += "\nNames. nfs-ganesha answers before a change of names is durable; afflux after, unless told otherwise \
             (`async`). *Host* is a loop of a program that makes each change and syncs it.\n\n";
    text += "| case | nfs-ganesha | afflux | afflux, async | host, synced | async to ganesha | wanted | durable to host | \
             CPU µs a call, ganesha and afflux | stream beside, MiB/s, ganesha, afflux and async |\n\
             |-|-|-|-|-|-|-|-|-|-|\n";
    for raced in names {
        let equal_terms = ratio(raced, Running::AffluxUnsynced, Running::Ganesha);
        let wanted = raced.case.wanted;
        let missed = match equal_terms {
            Some((middle, ..)) if middle >= wanted => "",
            _ => " missed",
        };
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {wanted}×{missed} | {} | {}, {} | {} |\n",
            raced.case.name,
            rate(raced, Running::Ganesha),
            rate(raced, Running::Afflux),
            rate(raced, Running::AffluxUnsynced),
            rate(raced, Running::Host),
            shown(equal_terms),
            shown(ratio(raced, Running::Afflux, Running::Host)),
            cpu(raced, Running::Ganesha),
            cpu(raced, Running::Afflux),
            streams(raced),
        );
    }
    text + &table_of_delays(&delays_rows) + &table_of_cold_reads(&cold)
}

/// Times of calls at half of each server's rate.
fn table_of_delays(rows: &[&Raced]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\nHalf load: each server gets half of the calls a second that it did with 64 in flight, each when it is due, and a \
         call's time counts from then.\n\n| case | calls a second, ganesha and afflux | p50/p99/p99.9 µs, ganesha | \
         afflux | CPU µs a call, ganesha and afflux |\n|-|-|-|-|-|\n",
    );
    for raced in rows {
        let times = |which| {
            let of = |pick: fn(&Figure) -> f64| median(figures(raced, which).iter().map(pick).collect()).unwrap_or(0.0);
            format!("{:.0}/{:.0}/{:.0}", of(|it| it.p50_us), of(|it| it.p99_us), of(|it| it.p999_us))
        };
        text += &format!(
            "| {} | {}, {} | {} | {} | {}, {} |\n",
            raced.case.name,
            rate(raced, Running::Ganesha),
            rate(raced, Running::Afflux),
            times(Running::Ganesha),
            times(Running::Afflux),
            cpu(raced, Running::Ganesha),
            cpu(raced, Running::Afflux),
        );
    }
    text
}

/// The cases that are compared with the bare loop.
fn table_of_cold_reads(rows: &[&Raced]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\nCold data. The bare loop receives the same calls, reads by io_uring with O_DIRECT and sends, on the servers' \
         CPU. It has no cache.\n\n\
         | case | nfs-ganesha | afflux | bare loop | afflux to it | wanted | CPU µs a call, ganesha, afflux, loop |\n\
         |-|-|-|-|-|-|-|\n",
    );
    for raced in rows {
        let ratio = ratio(raced, Running::Afflux, Running::Host);
        let wanted = raced.case.wanted;
        let missed = if ratio.is_none_or(|(middle, ..)| middle < wanted) { " missed" } else { "" };
        text += &format!(
            "| {} | {} | {} | {} | {} | {wanted}×{missed} | {}, {}, {} |\n",
            raced.case.name,
            rate(raced, Running::Ganesha),
            rate(raced, Running::Afflux),
            rate(raced, Running::Host),
            shown(ratio),
            cpu(raced, Running::Ganesha),
            cpu(raced, Running::Afflux),
            cpu(raced, Running::Host),
        );
    }
    text
}

#[cfg(test)]
mod tests;
