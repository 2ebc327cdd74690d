//! The findings of s1: the tables and charts of its rows, and the course of two writers.
//!
//! Owns: the columns of each case; the plots over time.
//! Does not own: the runs.
//! Invariants: a column has the same title in all cases.

use afflux_figures::median_and_range;
use afflux_report::{Axis, Drawing, Plot, Quantity, Row, Series, Shape};

use super::twelve_disks::{OWN_2S_TO_RC1, OWN_TO_RC1, SHARE_TEST_31, SHARE_TEST_32};
use super::two_writers::{PLOTTED, Ran};
use crate::experiment::Findings;
use crate::labels::{Cells, Label};
use crate::pick::fits;
use crate::views::{Along, ChartView, Column, Pick, TableView, View, Within};

const NAMES: &[&str] = &[
    "nr_requests",
    "request_kib",
    "disk_cache_kib",
    "memory_mib",
    "disks",
    "cpu_ms_per_mb",
    "begun_as",
    "passes",
    "request_batch",
    "elevator",
    "allocate_at_submission",
    "seed",
];
/// The shares of the writers, and how full the queue was.
const FLOW: &[Column] = &[
    ("MB/s", "throughput_mb_per_s", 1),
    ("queue full", "queue_fullness_mean", 3),
    ("tasks", "submitters", 1),
    ("pdflush's share", "pdflush_share", 3),
    ("switches a GB", "file_switches_per_gb", 0),
    ("stored a sleep, pages", "stored_a_sleep_pages", 0),
    ("its share beside", "share_beside_rival", 3),
    ("the rival's", "share_of_rival", 3),
];
/// The work of the disks and CPUs.
const WORK: &[Column] = &[
    ("IO/s", "iops", 0),
    ("KiB an IO", "io_kib_mean", 1),
    ("seeks a GB", "seeks_per_gb", 0),
    ("CPU, %", "cpu_percent", 1),
    ("reading, MB/s", "read_mb_per_s", 1),
    ("its seeks a GB", "read_seeks_per_gb", 0),
];
const ENDS: &[Column] = &[
    ("B's share", "share_of_b", 3),
    ("B begins, s", "b_starts_s", 3),
    ("A ends, s", "a_ends_s", 3),
    ("B ends, s", "b_ends_s", 3),
];
const TWO_WRITERS: Pick = &[("case", "two-writers")];
const POOL_ALONE: Pick = &[("case", "pool-alone")];
const TWELVE_DISKS: Pick = &[("case", "twelve-disks")];
const LEGEND: &str = "Requests: as many as a queue holds, of at most so many KiB each. Queue full: in the mean, 1 is where writers \
                      wait. Tasks: that submitted in a second. Pdflush's share: of the bytes. Switches: of file.";

const fn flow(caption: &'static str, rows: Pick) -> TableView {
    TableView::of(caption, NAMES, FLOW, LEGEND).only(rows)
}

const fn bars(title: &'static str, rows: Pick) -> ChartView {
    let names = &["nr_requests", "request_kib", "disk_cache_kib", "cpu_ms_per_mb", "memory_mib"];
    let figure = ("throughput_mb_per_s", 1e6);
    let (quantity, along) = (Quantity::DataRate, Along::Groups(names));
    ChartView { title, rows, label: "written", quantity, figure, within: Within::Rows, along }
}

const VIEW: View = View {
    tables: &[
        flow("Two writers, five disks in a stripe set", TWO_WRITERS),
        flow("The same disks, nobody over the limit", POOL_ALONE),
        TableView::of(
            "sync of A and B with 100,000 dirty pages each",
            NAMES,
            ENDS,
            "Seconds after it began. One pass waits for each disk in turn, two begin both first.",
        )
        .only(&[("case", "sync-of-two")]),
        flow("Twelve disks, 16 writers each", TWELVE_DISKS),
        TableView::of(
            "Twelve disks: rates compared",
            NAMES,
            &[("change, %", "change_percent", 1)],
            "The memory and the disks of the published machine are not known, so only changes can be compared.",
        ),
        flow("Beside a writer that waits for requests", &[("case", "blocking-rival")]),
        TableView::of(
            "A and B with 100,000 dirty pages each",
            NAMES,
            ENDS,
            "B's share: of the bytes when A is submitted.",
        )
        .only(&[("case", "two-superblocks")])
        .detail(),
        TableView::of("Two writers: disks and CPUs, and reading the files back", NAMES, WORK, "")
            .only(TWO_WRITERS)
            .detail(),
        TableView::of("Twelve disks: disks and CPUs", NAMES, WORK, "").only(TWELVE_DISKS).detail(),
    ],
    charts: &[
        bars("Two writers, five disks: throughput", TWO_WRITERS),
        bars("The same disks, nobody over the limit: throughput", POOL_ALONE),
        bars("Twelve disks: throughput", TWELVE_DISKS),
    ],
    text: include_str!("findings.md"),
    facts: &[
        ("loss_31", |rows| between(rows, &[("variant", SHARE_TEST_31)])),
        ("loss_32", |rows| between(rows, &[("variant", SHARE_TEST_32)])),
        ("own", |rows| between(rows, &[("variant", OWN_TO_RC1)])),
        ("own_2s", |rows| between(rows, &[("variant", OWN_2S_TO_RC1)])),
    ],
    labels: LABELS,
};

/// The least and the most of a change.
fn between(rows: &[Row], pick: Pick) -> Option<String> {
    let found = rows.iter().filter(|row| fits(row, pick)).filter_map(|row| row.metrics.get("change_percent")?.as_f64());
    let [_, least, most] = median_and_range(found)?;
    Some(if least < most { format!("{least:+.1} to {most:+.1} %") } else { format!("{least:+.1} %") })
}

/// The origins of the figures.
pub(super) const LABELS: &[Cells] = &[
    Cells::of(
        Label::PutIn,
        "machines, queues, request sizes, disks, places of files, CPU time",
        &["nr_requests", "request_kib", "disk_cache_kib", "disk_mb_per_s", "memory_mib", "cpu_ms_per_mb", "file_bytes"],
    ),
    Cells::of(Label::HoldOut, "the cost of the test on the share to flushers", &["change_percent"])
        .only(&[("variant", SHARE_TEST_32)])
        .beside_published(),
];

pub(super) fn findings(rows: &[Row], plotted: &[Ran]) -> Findings {
    let mut findings = VIEW.findings(rows);
    if !plotted.is_empty() {
        let rate = |title, label, quantity, of| Drawing::Plot(over_time(plotted, title, label, quantity, of));
        findings.figures.push(rate("Two writers: throughput", "written", Quantity::DataRate, |rate| rate.0));
        findings.figures.push(rate("Two writers: IO/s", "commands", Quantity::Frequency, |rate| rate.1));
        findings.figures.extend(plotted.iter().map(|ran| Drawing::Plot(offsets(ran))));
    }
    findings
}

fn over_time(ran: &[Ran], title: &str, label: &str, quantity: Quantity, of: fn((f64, f64)) -> f64) -> Plot {
    let plot = Plot::new(title, Axis::new("time", Quantity::Time), Axis::new(label, quantity));
    ran.iter().fold(plot, |plot, ran| {
        let at = (PLOTTED..ran.samples.len()).step_by(PLOTTED);
        let points = at.map(|at| (ran.samples[at].seconds, of(ran.rate(at)))).collect();
        plot.with(Series::new(ran.row.variant.as_str(), Shape::Line, points))
    })
}

fn offsets(ran: &Ran) -> Plot {
    let points = ran.offsets.iter().map(|it| (it.at_ns as f64 / 1e9, it.offset as f64)).collect();
    let title = format!("Two writers: offset on the stripe set, {}", ran.row.variant);
    let plot = Plot::new(title, Axis::new("time", Quantity::Time), Axis::new("offset", Quantity::Data));
    plot.with(Series::new(ran.row.variant.as_str(), Shape::Dots, points))
}
