//! The findings of s2: the tables and charts of its rows, the check of counts, a description of this machine.
//!
//! Owns: the columns. Does not own: the figures.
//! Invariants: if the intervals overlap, there is no gain.

use afflux_report::{Quantity, Row};

use crate::experiment::Findings;
use crate::labels::{Cells, Label};
use crate::pick::figure;
use crate::views::{Along, ChartView, Check, Pick, TableView, View, Within, add_checks};

const LOOP: &[&str] = &["loop", "buffer_bytes", "threads"];

const fn bars(title: &'static str, rows: Pick) -> ChartView {
    let (within, along) = (Within::HalfWidth("cpu_ns_99_half_width"), Along::Groups(&["loop", "buffer_bytes"]));
    let quantity = Quantity::Time;
    ChartView { title, rows, label: "CPU time of an operation", quantity, figure: ("cpu_ns", 1e-9), within, along }
}

const VIEW: View = View {
    tables: &[
        TableView::of(
            "CPU time of an operation",
            LOOP,
            &[
                ("ns", "cpu_ns", 1),
                ("99 % interval, ±", "cpu_ns_99_half_width", 1),
                ("within 1 %", "within_1_percent", 0),
                ("gain over SingleList, %", "gain_percent", 1),
                ("instructions", "instructions", 1),
            ],
            "A gain is of throughput; there is none if the intervals overlap. afflux hands out single frames, so it has no \
             figure where a loop asks for larger blocks.",
        )
        .only(&[("loop", "")]),
        TableView::of(
            "Gain by the whole series, %: here, and published in 2009 for the benchmark that the loop is like (hold-out)",
            LOOP,
            &[
                ("here", "gain_percent", 1),
                ("x86", "gain_percent_x86", 2),
                ("x86-64", "gain_percent_x86_64", 2),
                ("ppc64", "gain_percent_ppc64", 2),
                ("udp, x86", "udp_gain_percent_x86", 2),
                ("udp, x86-64", "udp_gain_percent_x86_64", 2),
                ("udp, ppc64", "udp_gain_percent_ppc64", 2),
                ("tcp, x86", "tcp_gain_percent_x86", 2),
                ("tcp, x86-64", "tcp_gain_percent_x86_64", 2),
                ("tcp, ppc64", "tcp_gain_percent_ppc64", 2),
            ],
            "none: no significant difference or noise in the author's words. sysbench needs a data base and is not repeated: \
             none, none, +5 to +7 % published.",
        )
        .only(&[("variant", "ZoneTunables"), ("loop", "")]),
        TableView::of(
            "Gain by two patches, %: here, and published for the shorter series (hold-out)",
            LOOP,
            &[("here", "gain_percent", 1), ("tcp, x86-64", "tcp_gain_percent_x86_64", 2)],
            "",
        )
        .only(&[("variant", "BatchedDrain"), ("loop", "netperf")]),
        TableView::of(
            "Cache lines that pass between two CPUs, for 1,000 buffers of a page, in a model of their caches",
            &["freed_by", "tunables"],
            &[("lines of pages", "page_lines_per_1000", 1), ("of the zone", "zone_lines_per_1000", 1)],
            "One CPU takes bursts of 32, and the same or the other CPU frees them. Tunables: where high and batch lie.",
        ),
        TableView::of(
            "Drains while frames are freed in a row",
            &["freed"],
            &[("drains", "drains_in_a_row", 0)],
            "Each takes the zone's lock. Since 5.13 each is twice the one before; EmptyFirstDrain is 6.1.",
        ),
        TableView::of(
            "Drains of per-CPU lists: list heads examined",
            &["contents", "drain"],
            &[
                ("lists examined", "lists_examined", 0),
                ("by the kernels' sources", "kernel_source_lists_examined", 0),
                ("inner looks", "inner_checks", 0),
                ("by the kernels' sources", "kernel_source_inner_checks", 0),
                ("order", "order", 0),
            ],
            "Contents: how many pages of the list are unmovable, reclaimable and movable; in the order each letter is a page. \
             EmptyFirstDrain has the three lists of single pages; 6.1 has those of larger blocks behind them. Not in \
             the list: afflux. It has one magazine, and gives a batch of it.",
        )
        .detail(),
    ],
    charts: &[
        bars("CPU time of an operation, one thread", &[("threads", "1")]),
        bars("CPU time of an operation, two threads", &[("threads", "2")]),
    ],
    text: include_str!("findings.md"),
    facts: &[
        ("page_lines", |rows| a_page(rows, BESIDE_LISTS, "page_lines_per_1000")),
        ("zone_lines", |rows| a_page(rows, BESIDE_LISTS, "zone_lines_per_1000")),
        ("zone_lines_marks", |rows| a_page(rows, WITH_MARKS, "zone_lines_per_1000")),
    ],
    labels: LABELS,
};

const BESIDE_LISTS: Pick = &[("variant", "BatchedDrain"), ("freed_by", "the other CPU")];
const WITH_MARKS: Pick =
    &[("variant", "ZoneTunables"), ("freed_by", "the other CPU"), ("tunables", "with the watermarks")];

/// Lines that pass for a page.
fn a_page(rows: &[Row], pick: Pick, name: &str) -> Option<String> {
    figure(rows, pick, name).map(|lines| format!("{:.2}", lines / 1000.0))
}

/// The origins of the figures.
pub(super) const LABELS: &[Cells] = &[
    Cells::of(
        Label::PutIn,
        "counts by hand from the kernels' sources",
        &["kernel_source_lists_examined", "kernel_source_inner_checks"],
    ),
    Cells::of(Label::PutIn, "the loops, from each benchmark's requests to an allocator", &["loop"]),
    Cells::of(Label::Transcribed, "the looks at lists in a drain", &["lists_examined", "inner_checks", "order"]),
    Cells::of(Label::HoldOut, "the gains of the series", &["gain_percent"])
        .only(&[("variant", "ZoneTunables|BatchedDrain")]),
];

/// The machine and how busy it is.
pub(super) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("a processor without a name", |(_, name)| name.trim());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("unknown");
    format!("Machine: {model}, {count} CPUs, Linux {}; load average at the start {load}.", kernel.trim())
}

pub(super) fn findings(rows: &[Row], machine: String, counted: &str) -> Findings {
    let mut findings = VIEW.findings(rows);
    let known = rows.iter().filter_map(|row| {
        let by_sources = row.metrics.get("kernel_source_lists_examined").filter(|count| !count.is_null())?;
        Some(row.metrics.get("lists_examined") == Some(by_sources))
    });
    let known: Vec<bool> = known.collect();
    let same = known.iter().filter(|same| **same).count();
    let check = Check::all("each count of list heads is that of the kernels' sources", same, known.len(), "");
    add_checks(&mut findings, "Counts", check.as_slice());
    findings.says.extend([machine, counted.to_owned()]);
    findings
}
