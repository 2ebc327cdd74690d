//! The tables and charts of the races, the goals, and a writer's course over time.
//!
//! Owns: the columns, the goals of figures, shares of O_DIRECT.
//! Does not own: the figures (`races`).
//! Invariants: only the engine has goals, and its medians are compared with them; the kernel is never judged.

use afflux_figures::median;
use afflux_report::{Plot, Row, Series};
use afflux_rig::Bound::{self, AtLeast, AtMost};
use serde_json::Value;

use crate::contenders::ran::{self, Look, Ran};
use crate::experiment::Findings;
use crate::host::busy;
use crate::labels::{Cells, Label};
use crate::views::{Check, Column, Pick, TableView, View, add_checks};

const WRITES: &[Column] = &[
    ("fsync of everything, s", "sync_s", 2),
    ("accepted, once full, MB/s", "accepted_mb_per_s", 1),
    ("a write, p50, ms", "write_p50_ms", 3),
    ("p99, ms", "write_p99_ms", 1),
    ("p99.9, ms", "write_p999_ms", 1),
    ("longest, ms", "write_max_ms", 1),
];

const fn race(caption: &'static str, rows: Pick, columns: &'static [Column]) -> TableView {
    let names = &["rate_bytes_per_s", "seconds", "block_bytes", "max_bytes", "memory_bytes"];
    TableView::of(caption, names, columns, "Medians of the repeats, least to most.").only(rows)
}

const VIEW: View = View {
    tables: &[
        race("A writer at full speed, then fsync", &[("race", "full-speed")], WRITES),
        race("A writer at the disk's rate, then fsync", &[("race", "at-rate")], WRITES),
        race(
            "4 KiB with fsync beside a writer at full speed",
            &[("race", "small-sync")],
            &[("fsync of 4 KiB, p50, s", "sync_p50_s", 3), ("longest, s", "sync_max_s", 3)],
        ),
        race(
            "A burst to a fast disk beside the writer",
            &[("race", "burst")],
            &[("alone, ms", "alone_ms", 0), ("beside, ms", "beside_ms", 0), ("beside by alone", "beside_by_alone", 2)],
        ),
        race(
            "The real disk, unthrottled, until durable",
            &[("race", "direct")],
            &[("MB/s", "mb_per_s", 0), ("of O_DIRECT, %", OF_RAW, 1)],
        ),
    ],
    charts: &[],
    text: include_str!("findings.md"),
    facts: &[],
    labels: LABELS,
};

/// The origins of the figures.
pub(super) const LABELS: &[Cells] =
    &[Cells::of(Label::PutIn, "the disks, the limits set by hand", &["rate_bytes_per_s", "max_bytes", "block_bytes"])];

/// The share of O_DIRECT's rate in the same repeat.
const OF_RAW: &str = "of_raw_percent";

/// A race, its figure, and the bound.
const GOALS: [(&str, &str, Bound); 6] = [
    ("full-speed", "sync_s", AtMost(1.2)),
    ("full-speed", "write_p999_ms", AtMost(6.0)),
    ("at-rate", "write_p999_ms", AtMost(6.0)),
    ("small-sync", "sync_max_s", AtMost(0.3)),
    ("burst", "beside_by_alone", AtMost(1.2)),
    ("direct", OF_RAW, AtLeast(98.0)),
];

pub(super) fn findings(
    mut rows: Vec<Row>,
    full_speed: &[(String, Ran)],
    left_out: Vec<String>,
    load: Option<(f64, usize)>,
) -> Findings {
    add_shares(&mut rows);
    let mut findings = VIEW.findings(&rows);
    add_checks(
        &mut findings,
        "Goals of the engine",
        &GOALS.iter().flat_map(|goal| checks(&rows, goal)).collect::<Vec<_>>(),
    );
    let plots =
        [plot(full_speed, "Accepted", |look| look.accepted_bytes), plot(full_speed, "Dirty", |look| look.dirty_bytes)];
    findings.figures = plots.into_iter().flatten().map(Into::into).collect();
    findings.says.extend(busy(load).into_iter().chain(left_out));
    findings
}

fn figure(row: &Row, name: &str) -> Option<f64> {
    row.metrics.get(name).and_then(Value::as_f64)
}

fn add_shares(rows: &mut [Row]) {
    let raw: Vec<Row> = rows.iter().filter(|row| row.variant == "O_DIRECT").cloned().collect();
    for row in rows.iter_mut().filter(|row| row.variant != "O_DIRECT") {
        let base = raw.iter().find(|raw| raw.params == row.params).and_then(|raw| figure(raw, "mb_per_s"));
        if let (Some(own), Some(base)) = (figure(row, "mb_per_s"), base) {
            row.metrics.push(OF_RAW, 100.0 * own / base.max(1e-9));
        }
    }
}

/// A goal for each engine that ran.
fn checks(rows: &[Row], (race, metric, bound): &(&str, &str, Bound)) -> Vec<Check> {
    let of_race = |row: &&Row| row.params.get("race").and_then(Value::as_str) == Some(race);
    let ours = rows.iter().filter(of_race).filter(|row| row.variant.starts_with("afflux"));
    let mut engines: Vec<&str> = ours.clone().map(|row| row.variant.as_str()).collect();
    engines.dedup();
    engines.sort_unstable();
    engines.dedup();
    let check = |engine: &str| {
        let own = ours.clone().filter(|row| row.variant == engine).filter_map(|row| figure(row, metric));
        let median = median(own)?;
        let what = format!("{engine}, {race}: {metric} {bound}");
        Some(Check { what, found: format!("{median:.3}"), met: bound.is_met(median) })
    };
    engines.into_iter().filter_map(check).collect()
}

/// The first run of each contender at full speed.
fn plot(runs: &[(String, Ran)], what: &str, of: fn(&Look) -> u64) -> Option<Plot> {
    let mut names: Vec<&str> = Vec::new();
    let lines = runs.iter().filter_map(|(name, ran)| {
        let is_first = !names.contains(&name.as_str());
        names.push(name);
        is_first.then(|| ran.line(name, of))
    });
    let lines: Vec<Series> = lines.collect();
    ran::plot(format!("{what}, a writer at full speed, then fsync"), &what.to_lowercase(), lines)
}

#[cfg(test)]
mod tests;
