//! The findings of the experiment: the tables and charts of its rows, and figures over all of them.
//!
//! Owns: the columns, a row for each load with all policies, means over loads, the goals.
//! Does not own: the figures of single runs.
//! Invariants: changes on devices are against two-list under the same load.

use afflux_report::{Fields, Quantity, Row};

use super::dirty::DirtyCell;
use super::ratios::{Cell, ENGINES, POLICIES, Spread};
use super::traces::TraceRow;
use crate::experiment::Findings;
use crate::labels::{Cells, Label};
use crate::machine::{rounded, row};
use crate::pick::{figure, fits};
use crate::views::{Along, ChartView, Check, Pick, TableView, View, Within, add_checks};

/// The most that the default may read for each page or byte of what it is compared with.
pub(super) const GOAL: f64 = 1.03;
/// The most that it may in any row.
const GOAL_OF_WORST: f64 = 1.08;

/// The policy that the others' time on devices is compared with.
const BASE: &str = afflux_linux_policies::TWO_LISTS.name;

const VIEW: View = View {
    tables: &[
        TableView::of(
            "Misses saved against FIFO, in percent, over all rows",
            &[],
            &[
                ("P10", "saved_p10_percent", 1),
                ("mean", "saved_mean_percent", 1),
                ("P90", "saved_p90_percent", 1),
                ("worst", "saved_worst_percent", 1),
                ("LRU to Belady", "gap_closed_mean", 2),
                ("looked at a miss", "looked_at_mean", 1),
            ],
            "Below 0: of the policy's own misses, those that FIFO saves. LRU to Belady: the part closed of the gap between \
             them, mean of the rows where there is one.",
        ),
        TableView::of(
            "All loads on devices together",
            &["device"],
            &[
                ("device time to two-list, %", "device_change_percent", 1),
                ("worst, %", "device_change_worst_percent", 1),
                ("clients' time, %", "client_change_percent", 1),
                ("read p99, %", "read_p99_change_percent", 1),
                ("held back, µs", "held_back_mean_us", 2),
                ("hits, %", "hits_mean_percent", 1),
            ],
            "Mean of the changes. Held back: writers by the flush budget, for each request.",
        ),
        TableView::of(
            "Pages that each policy reads of a trace, and MiB that a disk reads",
            &["held_out", "cache_part"],
            &[
                ("fifo", "fifo", 0),
                ("lru", "lru", 0),
                ("arc", "arc", 0),
                ("two-list", "two-list", 0),
                ("s3-fifo", "s3-fifo", 0),
                ("sieve", "sieve", 0),
                ("s3-window", "s3-window", 0),
                ("belady", "belady", 0),
                ("to best", "to_best", 3),
                ("two-list MiB", "two-list MiB", 1),
                ("ahead", "two-list ahead", 3),
                ("s3-window MiB", "s3-window MiB", 1),
                ("ahead", "s3-window ahead", 3),
            ],
            "To best: pages that the default reads, for each that the best of the others but fifo and belady reads. MiB: read by a disk \
             without readahead. Ahead: with readahead, for each byte without.",
        )
        .only(&[("held_out", "")]),
        TableView::of(
            "Hits in percent",
            &["part_of_pages"],
            &[
                ("fifo", "fifo", 1),
                ("lru", "lru", 1),
                ("arc", "arc", 1),
                ("two-list", "two-list", 1),
                ("s3-fifo", "s3-fifo", 1),
                ("sieve", "sieve", 1),
                ("s3-window", "s3-window", 1),
                ("belady", "belady", 1),
                ("behind", "behind", 1),
                ("to best", "to_best", 3),
            ],
            "To best: misses of the default, for each of the best of the others but fifo and belady. Behind: by how many points the default is behind the best of two-list, s3-fifo and sieve, if by more than one.",
        )
        .only(&[("part_of_pages", "")])
        .detail(),
        TableView::of(
            "Misses if written pages are dirty for 30 s, for each miss if none ever is",
            &["part_with_dirty"],
            &[("two-list", "two-list dirty", 3), ("s3-window", "s3-window dirty", 3)],
            "A fifth of the frames is dirty at most.",
        )
        .only(&[("dirty_pages", "")])
        .detail(),
        TableView::of(
            "Device time of a request, in µs",
            &["device", "generator", "cache_part"],
            &[
                ("device, µs", "device_us", 1),
                ("client, µs", "client_us", 1),
                ("read p99, µs", "read_p99_us", 1),
                ("written per dirtied", "written_per_dirtied", 3),
            ],
            "Time in which the device had a request: misses, readahead, and everything that was dirtied written back.",
        )
        .detail(),
    ],
    charts: &[
        ChartView {
            title: "Misses saved against FIFO, from the tenth percentile to the ninetieth",
            rows: &[],
            label: "Misses saved",
            quantity: Quantity::Plain("%"),
            figure: ("saved_mean_percent", 1.0),
            within: Within::Ends("saved_p10_percent", "saved_p90_percent"),
            along: Along::Groups(&[]),
        },
        ChartView {
            title: "Device time of a request, against two-list",
            rows: &[("device", "")],
            label: "more than two-list's",
            quantity: Quantity::Plain("%"),
            figure: ("device_change_percent", 1.0),
            within: Within::Rows,
            along: Along::Groups(&["device"]),
        },
    ],
    text: include_str!("findings.md"),
    facts: &[
        ("saved_own", |rows| saved_percent(rows, &[("variant", "s3-window")])),
        ("saved_arc", |rows| saved_percent(rows, &[("variant", "arc")])),
        ("saved_lists", |rows| saved_percent(rows, &[("variant", "two-list")])),
        ("saved_belady", |rows| saved_percent(rows, &[("variant", "belady")])),
        ("behind", |rows| behind(rows).map(|(behind, _)| behind.to_string())),
        ("patterns", |rows| behind(rows).map(|(_, all)| all.to_string())),
    ],
    labels: LABELS,
};

fn saved_percent(rows: &[Row], policy: Pick) -> Option<String> {
    behind(rows)?;
    figure(rows, policy, "saved_mean_percent").map(|percent| format!("{percent:.0}"))
}

/// In how many rows of hits the default is behind, and how many rows there are.
fn behind(rows: &[Row]) -> Option<(usize, usize)> {
    let hits: Vec<&Row> = rows.iter().filter(|row| fits(row, &[("part_of_pages", "")])).collect();
    let is_behind = |row: &&&Row| row.metrics.get("behind").is_some_and(|behind| !behind.is_null());
    (!hits.is_empty()).then(|| (hits.iter().filter(is_behind).count(), hits.len()))
}

/// The origins of the figures.
pub(super) const LABELS: &[Cells] = &[
    Cells::of(Label::PutIn, "the generated patterns, the traces", &["generator", "trace", "cache_part"]),
    Cells::of(
        Label::HoldOut,
        "the held-out traces",
        &["pages_read", "disk_bytes_read", "disk_bytes_read_with_readahead"],
    )
    .only(&[("held_out", "1")]),
    Cells::of(Label::Chosen, "readahead's accounts, by the other traces", &["disk_bytes_read_with_readahead"])
        .only(&[("variant", "s3-window"), ("trace", "")]),
];

pub(super) fn findings(cells: &[Cell], dirty: &[DirtyCell], traces: &[TraceRow], rows: &[Row]) -> Findings {
    let on_devices: Vec<Row> = rows.iter().filter(|row| row.params.get("device").is_some()).cloned().collect();
    let over_loads = devices(&on_devices);
    let all = on_devices.into_iter().chain(cells.iter().map(hits));
    let all = all.chain(POLICIES.iter().map(|policy| saved(cells, policy)));
    let all: Vec<Row> =
        all.chain(over_loads).chain(traces.iter().map(trace)).chain(dirty.iter().map(with_dirty)).collect();
    let mut findings = VIEW.findings(&all);
    add_checks(&mut findings, "Goals of the default policy", &checks(cells, traces));
    findings
}

/// A row of this experiment.
pub(super) fn own_row(variant: &str, params: Fields, metrics: Fields) -> Row {
    row("eviction", variant, params, metrics, Fields::new())
}

fn checks(cells: &[Cell], traces: &[TraceRow]) -> Vec<Check> {
    let check = |what: &str, met, all| Check::all(what, met, all, " rows");
    let near_best = |goal: f64| cells.iter().filter(|cell| cell.to_best() <= goal).count();
    let near_best_traces = |goal: f64| traces.iter().filter(|row| row.to_best() <= goal).count();
    let ahead = traces.iter().filter(|row| row.readahead_ratio() <= GOAL).count();
    let near = cells.iter().filter(|cell| cell.shortfall().is_none()).count();
    let all = [
        check("at most 3 % more misses of a pattern than the best policy", near_best(GOAL), cells.len()),
        check("at most 8 % more", near_best(GOAL_OF_WORST), cells.len()),
        check("hits at most a point behind the best of two-list, s3-fifo and sieve", near, cells.len()),
        check("at most 3 % more pages of a trace than the best policy", near_best_traces(GOAL), traces.len()),
        check("at most 8 % more pages", near_best_traces(GOAL_OF_WORST), traces.len()),
        check("with readahead at most 3 % more bytes of a trace than without", ahead, traces.len()),
    ];
    all.into_iter().flatten().collect()
}

/// A generator with a cache size, under all policies.
fn hits(cell: &Cell) -> Row {
    let metrics = POLICIES
        .iter()
        .fold(Fields::new(), |metrics, policy| metrics.with(*policy, rounded(100.0 * cell.hit_ratio(policy), 1)));
    let behind = cell.shortfall().map(|shortfall| rounded(100.0 * shortfall, 1));
    own_row(
        cell.generator,
        Fields::new().with("part_of_pages", cell.part.value()),
        metrics.with("behind", behind).with("to_best", cell.to_best()),
    )
}

/// A generator that writes, with a cache size: what dirty pages cost each policy.
fn with_dirty(cell: &DirtyCell) -> Row {
    let params = Fields::new().with("dirty_pages", 1).with("part_with_dirty", cell.part.value());
    let metrics = ENGINES.iter().zip(cell.misses).fold(Fields::new(), |metrics, (kind, [clean, dirty])| {
        metrics.with(format!("{} dirty", kind.name), dirty as f64 / clean.max(1) as f64)
    });
    own_row(cell.generator, params, metrics)
}

/// A policy over all generators and cache sizes.
fn saved(cells: &[Cell], policy: &str) -> Row {
    let spread = Spread::of(cells.iter().map(|cell| cell.miss_reduction(policy)));
    let at = POLICIES.iter().position(|name| *name == policy).unwrap_or(0);
    let percent = |share: f64| rounded(100.0 * share, 1);
    let mean = |figures: Vec<f64>| (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64);
    let metrics = Fields::new()
        .with("saved_p10_percent", percent(spread.p10))
        .with("saved_mean_percent", percent(spread.mean))
        .with("saved_p90_percent", percent(spread.p90))
        .with("saved_worst_percent", percent(spread.worst))
        .with("gap_closed_mean", mean(cells.iter().filter_map(|cell| cell.gap_closed(policy)).collect()))
        .with("looked_at_mean", mean(cells.iter().filter_map(|cell| cell.looks[at]).collect()));
    own_row(policy, Fields::new(), metrics)
}

fn trace(found: &TraceRow) -> Row {
    let params = Fields::new().with("held_out", found.held_out).with("cache_part", found.part.value());
    let pages = POLICIES.iter().zip(&found.misses);
    let metrics = pages.fold(Fields::new(), |metrics, (policy, misses)| metrics.with(*policy, *misses));
    let metrics = ENGINES.iter().zip(found.disk_bytes).fold(metrics, |metrics, (kind, [without, with])| {
        metrics
            .with(format!("{} MiB", kind.name), without as f64 / f64::from(1 << 20))
            .with(format!("{} ahead", kind.name), with as f64 / without.max(1) as f64)
    });
    own_row(found.trace, params, metrics.with("to_best", found.to_best()))
}

/// Rows with the same touches, device and cache follow each other, in the order of [`ENGINES`].
fn change(load: &[Row], policy: &str, name: &str) -> Option<f64> {
    let of = |policy: &str| load.iter().find(|row| row.variant == policy)?.metrics.get(name)?.as_f64();
    of(BASE).filter(|base| *base > 0.0).and_then(|base| Some(of(policy)? / base - 1.0))
}

/// Each policy of the engine on each device.
fn devices(rows: &[Row]) -> Vec<Row> {
    let mean = |figures: &[f64]| figures.iter().sum::<f64>() / figures.len().max(1) as f64;
    let percent = |share: f64| rounded(100.0 * share, 1);
    let of = |rows: &[Row], policy: &'static str| {
        let changes =
            |name| -> Vec<f64> { rows.chunks(ENGINES.len()).filter_map(|load| change(load, policy, name)).collect() };
        let own = rows.iter().filter(|row| row.variant == policy);
        let mean_of = |name| mean(&own.clone().filter_map(|row| row.metrics.get(name)?.as_f64()).collect::<Vec<_>>());
        let device = changes("device_us");
        let metrics = Fields::new()
            .with("device_change_percent", percent(mean(&device)))
            .with("device_change_worst_percent", percent(device.iter().copied().fold(f64::MIN, f64::max)))
            .with("client_change_percent", percent(mean(&changes("client_us"))))
            .with("read_p99_change_percent", percent(mean(&changes("read_p99_us"))))
            .with("held_back_mean_us", mean_of("held_back_us"))
            .with("hits_mean_percent", 100.0 * mean_of("hit_ratio"));
        own_row(policy, Fields::new().with("device", rows[0].params.get("device").cloned()), metrics)
    };
    let devices = rows.chunk_by(|one, other| one.params.get("device") == other.params.get("device"));
    devices.flat_map(|rows| ENGINES.map(|kind| of(rows, kind.name))).collect()
}
