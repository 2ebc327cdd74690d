//! The findings of s3: the tables and charts of its rows, and the delays of single tasks.
//!
//! Owns: the columns; the rows of `getdelays`.
//! Does not own: the figures (`cell`), the goals (`goals`).
//! Invariants: figures of single tasks are those of the median reader, and of each published task.

use afflux_report::{Fields, Quantity, Row};

use super::cell::Cell;
use super::goals::goals;
use super::published::{self, Delays};
use crate::experiment::Findings;
use crate::labels::{Cells, Label};
use crate::machine::{ms, rounded, row};
use crate::views::{Along, ChartView, TableView, View, Within, add_checks};

const NAMES: &[&str] = &["readers", "file_bytes", "memory_bytes", "cpus", "start", "read_part"];

const fn bars(title: &'static str, label: &'static str, quantity: Quantity, figure: (&'static str, f64)) -> ChartView {
    ChartView { title, rows: &[], label, quantity, figure, within: Within::Rows, along: Along::Groups(&[]) }
}

const VIEW: View = View {
    tables: &[
        TableView::of(
            "What the seed counted",
            NAMES,
            &[
                ("allocstall", "allocstall", 0),
                ("nr_alloc_fail", "nr_alloc_fail", 0),
                ("IPIs", "function_call_ipis", 0),
                ("demand_alloc_fail", "demand_alloc_fail", 0),
            ],
            "Published figures of several runs are their mean.",
        ),
        TableView::of(
            "How long that took",
            NAMES,
            &[
                ("reclaims a reader", "reclaim_count_mean", 1),
                ("in all, ms", "reclaim_total_ms_mean", 0),
                ("avg, ms", "reclaim_delay_ms_avg", 1),
                ("p99, ms", "reclaim_delay_ms_p99", 1),
                ("start, s", "start_s", 0),
                ("total, s", "total_s", 1),
                ("interactive avg, ms", "interactive_wait_ms_avg", 0),
                ("p99, ms", "interactive_wait_ms_p99", 0),
            ],
            "With --full the start is predicted: a shell starts the readers in its turns. Else it is put in.",
        ),
        TableView::of(
            "What kswapd did (hold-out)",
            &[],
            &[
                ("kswapd_steal", "kswapd_steal", 0),
                ("pageoutrun", "pageoutrun", 0),
                ("low_wmark_hit_quickly", "kswapd_low_wmark_hit_quickly", 0),
                ("high_wmark_hit_quickly", "kswapd_high_wmark_hit_quickly", 0),
                ("skip_congestion_wait", "kswapd_skip_congestion_wait", 0),
                ("slabs_scanned", "slabs_scanned", 0),
            ],
            "",
        ),
        TableView::of(
            "A task's delays, as getdelays prints them",
            &["task"],
            &[
                ("CPU count", "cpu_count", 0),
                ("real, ms", "cpu_ms", 0),
                ("delay, ms", "cpu_delay_ms", 0),
                ("IO count", "io_count", 0),
                ("delay, ms", "io_delay_ms", 0),
                ("RECLAIM count", "reclaim_count", 0),
                ("delay, ms", "reclaim_delay_ms", 0),
                ("average, ms", "reclaim_average_ms", 0),
            ],
            "Ours are of a reader's whole life; the published tasks were still reading, or had just ended.",
        )
        .detail(),
    ],
    charts: &[
        bars("Direct reclaims", "allocstall", Quantity::Count, ("allocstall", 1.0)),
        bars("How long one takes", "mean delay of a reclaim", Quantity::Time, ("reclaim_delay_ms_avg", 1e-3)),
        bars("Allocations that failed", "nr_alloc_fail", Quantity::Count, ("nr_alloc_fail", 1.0)),
        bars(
            "How long a small task waits beyond its millisecond of work",
            "mean wait",
            Quantity::Time,
            ("interactive_wait_ms_avg", 1e-3),
        ),
    ],
    text: include_str!("findings.md"),
    facts: &[],
    labels: LABELS,
};

/// The published figures of loads by which nothing was chosen.
const HELD_OUT: &[&str] = &["nr_alloc_fail", "allocstall", "function_call_ipis", "reclaim_delay_ms_avg"];

/// The origins of the figures.
pub(super) const LABELS: &[Cells] = &[
    Cells::of(
        Label::PutIn,
        "the machine, the files, a page's CPU time in all and so the total",
        &["readers", "file_bytes", "memory_bytes", "cpus", "drift_frames", "total_s"],
    ),
    Cells::of(Label::PutIn, "the time in which readers start", &["start_s"]).only(&[("start", "evenly")]),
    Cells::of(Label::HoldOut, "the start", &["start_s"]).only(&[("start", "shell")]).beside_published(),
    Cells::of(Label::HoldOut, "100 readers", HELD_OUT).only(&[("readers", "100")]).beside_published(),
    Cells::of(Label::HoldOut, "one task over many files", HELD_OUT).only(&[("start", "one-task")]).beside_published(),
    Cells::of(Label::HoldOut, "keep-freed-pages", HELD_OUT).only(&[("variant", "keep-freed-pages")]).beside_published(),
    Cells::of(
        Label::HoldOut,
        "kswapd",
        &[
            "kswapd_steal",
            "pageoutrun",
            "kswapd_low_wmark_hit_quickly",
            "kswapd_high_wmark_hit_quickly",
            "kswapd_skip_congestion_wait",
        ],
    )
    .beside_published(),
    Cells::of(Label::Chosen, "the level of stalls (by the memory for pages)", &["allocstall"])
        .only(&[("variant", "base")])
        .beside_published(),
    Cells::of(Label::Chosen, "the level of delays (by the parts of a page's time)", &["reclaim_delay_ms_avg"])
        .only(&[("variant", "base")])
        .beside_published(),
    Cells::of(Label::Chosen, "slabs_scanned (by 28 objects in other caches)", &["slabs_scanned"]).beside_published(),
];

pub(super) fn findings(cells: &[Cell], rows: &[Row]) -> Findings {
    let all: Vec<Row> = rows.iter().cloned().chain(cells.iter().flat_map(getdelays)).collect();
    let mut findings = VIEW.findings(&all);
    add_checks(&mut findings, "Goals", &goals(cells));
    findings
}

fn task_row(variant: &str, task: String, delays: &Delays) -> Row {
    let (count, ns) = delays.reclaim;
    let whole = |ns: u64| rounded(ms(ns), 0);
    let metrics = Fields::new()
        .with("cpu_count", delays.cpu_count)
        .with("cpu_ms", whole(delays.cpu_ns))
        .with("cpu_delay_ms", whole(delays.cpu_delay_ns))
        .with("io_count", delays.io.0)
        .with("io_delay_ms", whole(delays.io.1))
        .with("reclaim_count", count)
        .with("reclaim_delay_ms", whole(ns))
        .with("reclaim_average_ms", whole(ns.checked_div(count).unwrap_or(0)));
    row("s3", variant, Fields::new().with("task", task), metrics, Fields::new())
}

/// The published tasks of a form, and its median reader.
fn getdelays(cell: &Cell) -> Vec<Row> {
    let tasks = published::of(cell.variant, &cell.load).map_or(&[][..], |it| it.tasks);
    let printed = tasks.iter().enumerate();
    let mut rows: Vec<Row> =
        printed.map(|(at, task)| task_row(cell.variant, format!("published, {}", at + 1), task)).collect();
    rows.extend(cell.middle_reader().map(|task| {
        let (part, cpu) = (cell.part, task.cpu);
        let whole = |count: u64| (count as f64 * cell.times()).round() as u64;
        let delays = Delays {
            cpu_count: cpu.dispatches * part,
            cpu_ns: cpu.cpu_ns * part,
            cpu_delay_ns: cpu.wait_ns * part,
            io: (0, 0),
            reclaim: (whole(task.reclaims), whole(task.reclaim_ns)),
        };
        task_row(cell.variant, "here".to_owned(), &delays)
    }));
    rows
}
