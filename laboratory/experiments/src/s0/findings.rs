//! The findings of s0: the tables and charts of its rows, the seed's perf stat, the check of reads.
//!
//! Owns: the columns.
//! Does not own: the runs, the expected reads (`kernel_reads`).
//! Invariants: a gain is against the unchanged `linux-2.6.31`, at the same size on the same machine.

use afflux_report::{Align, Cell as Text, Quantity, Row, Table};

use super::cell::PathsOf;
use super::kernel_reads::{expected, is_counted, read_on};
use super::parts::{BASE, LIMIT_OF_ALL_ONLY, PATCHED};
use super::published::{self, PERF, SPEEDS};
use crate::experiment::Findings;
use crate::labels::{Cells, Label};
use crate::pick::{figure, fits};
use crate::views::{Along, ChartView, Check, Column, Pick, TableView, View, Within, add_checks};

const SPEED: &[Column] = &[
    ("MiB/s", "mib_per_s_mean", 1),
    ("gain, %", "gain_percent", 1),
    ("waited, s", "pause_s", 2),
    ("calls", "calls", 0),
];
/// What happened in a run, in the mean.
const COURSE: &[Column] = &[
    ("MiB/s", "mib_per_s_mean", 1),
    ("gain, %", "gain_percent", 1),
    ("passes", "passes", 1),
    ("calls", "calls", 0),
    ("waits", "pauses", 1),
    ("waited, s", "pause_s", 3),
    ("first, MiB", "first_pause_mib", 1),
    ("flushing, s", "background_asked_s", 3),
    ("own pages", "written_by_writer_pages", 0),
];
const LEGEND: &str = "First: the disk's dirty pages, writeback included, when the writer first waited, in the runs in which it \
                      did. Flushing: when background writeback was first asked for. Own pages: written back by the writer. A \
                      published gain is that of the whole patch.";

const fn speed_chart(title: &'static str, rows: Pick) -> ChartView {
    let along = Along::Line("size_mib", Quantity::Plain("MiB"), &["change"]);
    let (quantity, figure) = (Quantity::Plain("MiB/s"), ("mib_per_s_mean", 1.0));
    ChartView { title, rows, label: "speed", quantity, figure, within: Within::Rows, along }
}

const VIEW: View = View {
    tables: &[
        TableView::of(
            "Speed of storing, and by how much the patch is faster",
            &["size_mib", "change", "writers", "runs"],
            SPEED,
            "Published: 2.6.31-rc3, ten runs, fastest and slowest dropped; patched there is the July form. s0-august with its \
             device not tested: August's code, if the variable that it tests before assigning it is 0.",
        )
        .only(&[("case", "speeds")]),
        TableView::of("One part of the law changed at a time", &["change", "size_mib", "writers", "runs"], COURSE, LEGEND)
            .only(&[("case", "parts")]),
        TableView::of(
            "600 MiB beside dirty pages for another, slow disk",
            &["others_mib", "change", "runs"],
            COURSE,
            "Here the clip, which the patch drops, takes from the share what others have.",
        )
        .only(&[("case", "others")]),
        TableView::of(
            "Reads of shared counters in one call, by path",
            &["path", "device_reads_per_call"],
            &[
                ("calls", "calls", 0),
                ("global", "global_reads_per_call", 0),
                ("kernel's code", "kernel_code_global_reads", 0),
                ("of these dirty", "dirty_reads_per_call", 0),
                ("kernel's code", "kernel_code_dirty_reads", 0),
                ("of these always 0 here", "always_zero_reads_per_call", 0),
                ("device, kernel's code", "kernel_code_device_reads", 0),
            ],
            "C: let through; W: wrote one chunk; P: waited; f: while the flusher is at work. Always 0 here: anonymous memory, pages \
             written through a copy, pages unstable on a server. Kernel's code: counted by hand; July's, of which there is no \
             copy, as August's. Chunks come from runs with a queue of 4 requests.",
        )
        .only(&[("path", "")]),
        TableView::of(
            "Reading dirty counters that lie on one line, in the groups of each form",
            &["threads_beside"],
            &[("ns", "ns_median", 0), ("from", "ns_lower", 0), ("to", "ns_upper", 0), ("rounds", "rounds", 0)],
            "Median, and within which half of the rounds lie; rounds: in which the threads beside got on.",
        ),
    ],
    charts: &[
        speed_chart("Speed by size before the patch", &[("case", "speeds"), ("variant", "linux-2.6.31")]),
        speed_chart("Speed by size, July's form", &[("case", "speeds"), ("variant", "s0-july")]),
        speed_chart("Speed by size, August's form with a change", &[("case", "speeds"), ("variant", "s0-august")]),
        speed_chart("Speed near the limit", &[("case", "near")]),
        ChartView {
            title: "Reading the dirty counters of one call",
            rows: &[],
            label: "time",
            quantity: Quantity::Time,
            figure: ("ns_median", 1e-9),
            within: Within::Ends("ns_lower", "ns_upper"),
            along: Along::Groups(&["threads_beside"]),
        },
    ],
    text: include_str!("findings.md"),
    facts: &[
        ("price_us", price_us),
        ("saved_600", saved_600),
        ("errors_400", |_| published::standard_errors(400).map(|errors| format!("{errors:.1}"))),
        ("errors_500", |_| published::standard_errors(500).map(|errors| format!("{errors:.1}"))),
        ("errors_600", |_| published::standard_errors(600).map(|errors| format!("{errors:.0}"))),
        ("changes", |rows| changes(rows).map(|(all, _)| all.to_string())),
        ("reaching", |rows| changes(rows).map(|(_, reaching)| reaching.to_string())),
    ],
    labels: LABELS,
};

const BASE_400: Pick = &[("variant", BASE), ("case", "speeds"), ("size_mib", "400")];
const JULY_400: Pick = &[("variant", PATCHED), ("case", "speeds"), ("size_mib", "400")];
const BASE_600: Pick = &[("variant", BASE), ("case", "speeds"), ("size_mib", "600")];
const JULY_600: Pick = &[("variant", PATCHED), ("case", "speeds"), ("size_mib", "600")];

/// Reads of shared counters that July's form saves in a run.
fn saved(rows: &[Row], base: Pick, july: Pick) -> Option<f64> {
    let reads = |pick| figure(rows, pick, "global_reads_per_call");
    Some((reads(base)? - reads(july)?) * figure(rows, base, "calls")?)
}

fn saved_600(rows: &[Row]) -> Option<String> {
    saved(rows, BASE_600, JULY_600).map(|reads| format!("{reads:.0}"))
}

/// What a saved read would have to take, if the published gain at 400 MB were in the reads.
fn price_us(rows: &[Row]) -> Option<String> {
    let gain = rows.iter().find(|row| fits(row, JULY_400))?.published.get("gain_percent")?.as_f64()? / 100.0;
    let us = 400.0 / figure(rows, BASE_400, "mib_per_s_mean")? * 1e6;
    Some(format!("{:.0}", gain * us / saved(rows, BASE_400, JULY_400)?))
}

/// The origins of the figures. A model that was written down from the kernel's code counts what it was written to
/// count.
pub(super) const LABELS: &[Cells] = &[
    Cells::of(Label::PutIn, "the machine's CPUs and queue, the laws", &["runs"]),
    Cells::of(
        Label::PutIn,
        "reads counted by hand from the kernel's code",
        &["kernel_code_global_reads", "kernel_code_dirty_reads", "kernel_code_device_reads"],
    ),
    Cells::of(
        Label::Transcribed,
        "the reads of a call on each path",
        &["global_reads_per_call", "dirty_reads_per_call", "device_reads_per_call", "always_zero_reads_per_call"],
    ),
    Cells::of(
        Label::Chosen,
        "the speed before the patch at 400 MB (by a page's cost), 600 MB (by the memory) and 700 to 900 MB (by the disk's rate)",
        &["mib_per_s_mean"],
    )
    .only(&[("variant", BASE), ("size_mib", "400|600|700|800|900")])
    .beside_published(),
    Cells::of(
        Label::Chosen,
        "the patched column by one change, which was picked because it matches",
        &["mib_per_s_mean", "gain_percent"],
    )
    .only(&[("variant", "s0-august"), ("change", LIMIT_OF_ALL_ONLY)])
    .beside_published(),
];

/// A change reaches the patched column if it is at most this far from it.
const REACHES: f64 = 0.02;

fn speed(row: &Row) -> Option<f64> {
    row.metrics.get("mib_per_s_mean")?.as_f64()
}

/// How many single changes were run at 600 MB, and how many of these reach the patched column.
fn changes(rows: &[Row]) -> Option<(usize, usize)> {
    let changed = rows.iter().filter(|row| fits(row, &[("case", "parts"), ("size_mib", "600"), ("change", "")]));
    let speeds: Vec<f64> = changed.filter_map(speed).collect();
    let [patched, _] = SPEEDS.iter().find(|line| line.0 == 600)?.2;
    let reaching = speeds.iter().filter(|speed| (*speed / patched - 1.0).abs() < REACHES).count();
    (!speeds.is_empty()).then_some((speeds.len(), reaching))
}

/// Figures from the kernels and laws alone have no cell.
pub(super) fn findings(rows: &[Row], paths: &PathsOf) -> Findings {
    let mut findings = VIEW.findings(rows);
    findings.details.push(perf());
    let shown: Vec<_> = paths.iter().flat_map(|(variant, paths)| paths.keys().map(|path| (*variant, path))).collect();
    let shown: Vec<_> = shown.into_iter().filter(|(_, path)| is_counted(path)).collect();
    let same = shown.iter().filter(|(variant, path)| expected(variant, path) == Some(read_on(path))).count();
    let check = Check::all("each path reads as many shared counters as the kernel's code", same, shown.len(), "");
    add_checks(&mut findings, "Reads by path", check.as_slice());
    findings
}

fn perf() -> Table {
    let right = Align::Right;
    let mut table = Table::new(
        "The seed's perf stat, one typical run",
        &[("", Align::Left), ("2.6.31-rc4", right), ("patched", right), ("the conclusion", Align::Left)],
    );
    for (what, base, patched, said) in PERF {
        let number = |value: f64| if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") };
        table.row([Text::from(what), Text::from(number(base)), Text::from(number(patched)), Text::from(said)]);
    }
    table
}
