//! The findings of s3: plots, tables beside the published figures, and conclusions.
//!
//! Owns: their arrangement and wording; fixed paragraphs are in `findings.md`.
//! Does not own: the figures (`cell`), the goals (`goals`).
//! Invariants: a sentence that names a figure takes it from the cells.

use afflux_report::units::{self, memory};
use afflux_report::{Align, Bar, Bars, Cell as TableCell, Quantity, Table};

use super::cell::{Cell, ms};
use super::goals::{find, goals};
use super::measured::Measured;
use super::plan::{OWN, Plan};
use super::published::{self, Delays};
use super::run::MEMORY_BYTES;
use crate::experiment::Findings;
use crate::prose::{filled, paragraph, section};

/// Forms side by side in a table of counters.
const COUNTERS_BESIDE: usize = 4;

const TEXT: &str = include_str!("findings.md");
const BASIS: &str = section(TEXT, "basis");
const FAILURES: &str = section(TEXT, "failures");
const SCALED: &str = section(TEXT, "scaled");
const WHY: &str = section(TEXT, "why");
const KSWAPD: &str = section(TEXT, "kswapd");
const AFFLUX: &str = section(TEXT, "afflux");
const NOT_SHOWN: &str = section(TEXT, "not shown");
const MEASURED: &str = section(TEXT, "measured");

pub(super) fn of_simulated(plan: &Plan, cells: &[Cell]) -> Findings {
    let mut findings = Findings::default();
    findings.figures.extend(bars(cells).into_iter().map(Into::into));
    findings.tables.extend([stalls(cells), delays(cells), kswapd(cells), goal_table(cells)]);
    findings.details.extend([getdelays(cells)]);
    findings.details.extend(counters(cells));
    findings.tables.retain(|table| !table.is_empty());
    findings.details.retain(|table| !table.is_empty());
    findings.answer = answer(cells);
    findings.says.push(paragraph(BASIS));
    if plan.part > 1 {
        findings.says.push(filled(SCALED, &[("part", &plan.part.to_string())]));
    }
    findings.says.extend(says(cells));
    // Its pages and ratios are those of the seed's memory.
    findings.says.extend(cells.iter().all(|cell| cell.load.memory_bytes == MEMORY_BYTES).then(|| paragraph(WHY)));
    findings.says.extend([paragraph(KSWAPD), paragraph(FAILURES), paragraph(AFFLUX), paragraph(NOT_SHOWN)]);
    findings
}

pub(super) fn add_measured(findings: &mut Findings, measured: &Measured) {
    let columns = [
        ("form", Align::Left),
        ("allocstall", Align::Right),
        ("demand_alloc_fail", Align::Right),
        ("nr_alloc_fail", Align::Right),
        ("reclaim avg", Align::Right),
        ("p99", Align::Right),
        ("longest", Align::Right),
        ("total s", Align::Right),
        ("MB/s", Align::Right),
        ("interactive avg", Align::Right),
    ];
    let mut table = Table::new("Measured on this machine", &columns);
    table.row([
        "afflux".to_owned(),
        measured.stalls.to_string(),
        measured.demand_failures.to_string(),
        measured.ahead_failures.to_string(),
        units::latency(measured.waits.ns.checked_div(measured.waits.count).unwrap_or(0)),
        units::latency(measured.waits.p99_ns),
        units::latency(measured.waits.max_ns),
        format!("{:.1}", measured.seconds),
        format!("{:.0}", measured.mb_per_s()),
        format!("{:.1} ms", measured.interactive_ms),
    ]);
    let each = measured.waits.ns.checked_div(measured.waits.count);
    let each = each.map_or_else(String::new, |ns| format!(" of {} on average", units::latency(ns)));
    findings.answer.push_str(&format!(
        " Measured, the real engine on this machine: {} direct reclaims{each} in {:.1} s.",
        units::count(measured.stalls),
        measured.seconds,
    ));
    findings.tables.push(table);
    let values = [
        ("readers", measured.readers.to_string()),
        ("file", memory(measured.file_bytes)),
        ("cache", memory(measured.cache_bytes)),
        ("cpus", measured.cpus.to_string()),
    ];
    let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    findings.says.push(filled(MEASURED, &values));
}

fn bars(cells: &[Cell]) -> Vec<Bars> {
    type Figure = fn(&Cell) -> f64;
    type Printed = fn(&published::Published) -> Option<f64>;
    let plots: [(&str, &str, Quantity, &str, Figure, Printed); 4] = [
        (
            "Direct reclaims",
            "allocstall",
            Quantity::Count,
            "Each patched form makes fewer and longer ones.",
            |cell| cell.count("allocstall"),
            |published| published.stalls(),
        ),
        (
            "How long one takes",
            "mean delay of a direct reclaim",
            Quantity::Time,
            "Waits for a CPU included: the published figures are of one or two tasks each.",
            |cell| cell.reclaim().mean_ms / 1e3,
            |published| published.delay_ms().map(|ms| ms / 1e3),
        ),
        (
            "Allocations that failed",
            "nr_alloc_fail",
            Quantity::Count,
            "Nothing is lost: first requests for the slabs of readers that start, and pages read ahead.",
            |cell| cell.count("nr_alloc_fail"),
            |published| published.failures(),
        ),
        (
            "How long a small task waits",
            "beyond its millisecond of work",
            Quantity::Time,
            "It wakes ten times a second and needs one page. Most of it is the turn of the run queue, whatever reclaim does.",
            |cell| cell.interactive().mean_ms / 1e3,
            |_| None,
        ),
    ];
    let make = |(title, label, quantity, note, ours, printed): (&str, &str, Quantity, &str, Figure, Printed)| {
        let has_published =
            cells.iter().any(|cell| published::of(cell.variant, &cell.load).and_then(printed).is_some());
        let series: Vec<&str> = if has_published { vec!["published", "simulated"] } else { vec!["simulated"] };
        let bars = Bars::new(title, label, quantity, series).note(note);
        cells.iter().fold(bars, |bars, cell| {
            let published = published::of(cell.variant, &cell.load).and_then(printed).map(Bar::new);
            let mut group = if has_published { vec![published] } else { Vec::new() };
            group.push(Some(Bar::new(ours(cell))));
            bars.group(cell.variant, group)
        })
    };
    plots.map(make).into()
}

/// Our figure, and its distance from the published one.
fn with_published(ours: f64, published: Option<f64>) -> String {
    let ours_text = units::count(ours.round() as u64);
    match published {
        Some(published) if published > 0.0 => format!("{ours_text} ({:+.0} %)", (ours / published - 1.0) * 100.0),
        _ => ours_text,
    }
}

fn printed(runs: &[u64]) -> String {
    runs.iter().map(|count| units::count(*count)).collect::<Vec<_>>().join(" / ")
}

fn stalls(cells: &[Cell]) -> Table {
    let columns = [
        ("form", Align::Left),
        ("allocstall", Align::Right),
        ("published", Align::Right),
        ("nr_alloc_fail", Align::Right),
        ("published", Align::Right),
        ("IPIs", Align::Right),
        ("published", Align::Right),
        ("demand_alloc_fail", Align::Right),
    ];
    let mut table = Table::new("What the seed counted", &columns);
    for cell in cells {
        let published = published::of(cell.variant, &cell.load);
        table.row([
            cell.variant.to_owned(),
            with_published(cell.count("allocstall"), published.and_then(|it| it.stalls())),
            published.map_or(String::new(), |it| printed(it.allocstall)),
            with_published(cell.count("nr_alloc_fail"), published.and_then(|it| it.failures())),
            published.map_or(String::new(), |it| printed(it.nr_alloc_fail)),
            units::count(cell.ipis() as u64),
            published.and_then(|it| it.function_call_ipis).map_or(String::new(), units::count),
            units::count(cell.count("demand_alloc_fail") as u64),
        ]);
    }
    table
}

fn delays(cells: &[Cell]) -> Table {
    let columns = [
        ("form", Align::Left),
        ("reclaims a reader", Align::Right),
        ("in all, ms", Align::Right),
        ("avg, ms", Align::Right),
        ("published", Align::Right),
        ("p99, ms", Align::Right),
        ("start, s", Align::Right),
        ("published", Align::Right),
        ("total, s", Align::Right),
        ("published", Align::Right),
        ("interactive avg, ms", Align::Right),
        ("p99, ms", Align::Right),
    ];
    let mut table = Table::new("How long that took", &columns);
    for cell in cells {
        let published = published::of(cell.variant, &cell.load);
        let (reclaim, interactive) = (cell.reclaim(), cell.interactive());
        table.row([
            cell.variant.to_owned(),
            format!("{:.1}", cell.reclaims_a_reader()),
            format!("{:.0}", cell.reclaim_ms_a_reader()),
            format!("{:.1}", reclaim.mean_ms),
            published.and_then(|it| it.delay_ms()).map_or(String::new(), |ms| format!("{ms:.0}")),
            format!("{:.1}", reclaim.p99_ms),
            format!("{:.0}", cell.start_s()),
            published.and_then(|it| it.start_s).map_or(String::new(), |seconds| seconds.to_string()),
            format!("{:.1}", cell.total_s()),
            published.and_then(|it| it.total_s).map_or(String::new(), |seconds| seconds.to_string()),
            format!("{:.0}", interactive.mean_ms),
            format!("{:.0}", interactive.p99_ms),
        ]);
    }
    table.note("With --full the start is predicted: a shell starts the readers in its turns. Else it is put in.");
    table
}

/// kswapd's columns: hold-outs, since nothing was chosen by them.
fn kswapd(cells: &[Cell]) -> Table {
    let names = ["kswapd_steal", "pageoutrun", "kswapd_low_wmark_hit_quickly", "kswapd_high_wmark_hit_quickly"];
    let mut columns = vec![("form", Align::Left)];
    for name in names {
        columns.extend([(name, Align::Right), ("published", Align::Right)]);
    }
    let mut table = Table::new("What kswapd did (hold-out)", &columns);
    for cell in cells.iter().filter(|cell| !cell.is_on_engine()) {
        let published = published::of(cell.variant, &cell.load);
        let mut row = vec![cell.variant.to_owned()];
        for name in names {
            let count = published.and_then(|it| it.counter(name));
            row.push(with_published(cell.count(name), count.map(|count| count as f64)));
            row.push(count.map_or(String::new(), units::count));
        }
        table.row(row);
    }
    table
}

/// Rows as `getdelays` prints them: for the median reader, and for the published tasks.
fn getdelays(cells: &[Cell]) -> Table {
    let columns = [
        ("form", Align::Left),
        ("CPU count", Align::Right),
        ("real, ms", Align::Right),
        ("delay, ms", Align::Right),
        ("IO count", Align::Right),
        ("delay, ms", Align::Right),
        ("SWAP count", Align::Right),
        ("RECLAIM count", Align::Right),
        ("delay, ms", Align::Right),
        ("average, ms", Align::Right),
    ];
    let mut table = Table::new("A task's delays, as getdelays prints them", &columns);
    let mut add = |name: String, delays: Delays| {
        let (count, ns) = delays.reclaim;
        table.row([
            name,
            delays.cpu_count.to_string(),
            format!("{:.0}", ms(delays.cpu_ns)),
            format!("{:.0}", ms(delays.cpu_delay_ns)),
            delays.io.0.to_string(),
            format!("{:.0}", ms(delays.io.1)),
            "0".to_owned(),
            count.to_string(),
            format!("{:.0}", ms(ns)),
            format!("{:.0}", ms(ns.checked_div(count).unwrap_or(0))),
        ]);
    };
    for cell in cells {
        let tasks = published::of(cell.variant, &cell.load).map_or(&[][..], |it| it.tasks);
        tasks.iter().for_each(|task| add(format!("{}, published", cell.variant), *task));
        if let Some(task) = cell.middle_reader() {
            let part = cell.part;
            let (usage, reclaim) = (task.cpu, (task.reclaims * part, task.reclaim_ns * part));
            let cpu_count = usage.dispatches * part;
            let delays = Delays {
                cpu_count,
                cpu_ns: usage.cpu_ns * part,
                cpu_delay_ns: usage.wait_ns * part,
                io: (0, 0),
                reclaim,
            };
            add(cell.variant.to_owned(), delays);
        }
    }
    table.note("Ours are of a reader's whole life; the published tasks were still reading, or had just ended.");
    table
}

/// A few forms in each table, so that a reader can compare them.
fn counters(cells: &[Cell]) -> Vec<Table> {
    let kernels: Vec<&Cell> = cells.iter().filter(|cell| cell.counted("pageoutrun").is_some()).collect();
    kernels.chunks(COUNTERS_BESIDE).map(counters_of).collect()
}

fn counters_of(kernels: &[&Cell]) -> Table {
    let mut columns = vec![("form", Align::Left)];
    for cell in kernels {
        columns.push((cell.variant, Align::Right));
        columns.push(("published", Align::Right));
    }
    let names: Vec<&str> = kernels.iter().map(|cell| cell.variant).collect();
    let mut table = Table::new(format!("Counters by the kernel's names: {}", names.join(", ")), &columns);
    let counts = kernels.first().map_or(&[][..], |first| &first.outcome.counts);
    for (name, _) in counts {
        let mut row = vec![TableCell::from((*name).to_owned())];
        for cell in kernels {
            row.push(units::count(cell.count(name) as u64).into());
            let published = published::of(cell.variant, &cell.load);
            let found = published.and_then(|it| it.counter(name));
            row.push(found.map_or(String::new(), units::count).into());
        }
        table.row(row);
    }
    table
}

fn goal_table(cells: &[Cell]) -> Table {
    let mut table = Table::new("Goals", &[("goal", Align::Left), ("found", Align::Left), ("met?", Align::Left)]);
    for goal in goals(cells) {
        table.row([goal.what, goal.found, if goal.met { "met" } else { "not met" }.to_owned()]);
    }
    table
}

/// The cost of the patched form's gain, and the form with the gain and without the cost.
fn answer(cells: &[Cell]) -> String {
    let mut parts = Vec::new();
    if let (Some(base), Some(high)) = (find(cells, "base"), find(cells, "wmark-high")) {
        parts.push(match base.count("allocstall") {
            0.0 => "Nobody had to reclaim directly: there was memory for all.".to_owned(),
            stalls => format!(
                "With the high mark as the target there are {:.0} times fewer direct reclaims than with 32 pages ({} against \
                 {}), and each takes {:.0} times as long ({:.0} against {:.1} ms).",
                stalls / high.count("allocstall").max(1.0),
                units::count(high.count("allocstall") as u64),
                units::count(stalls as u64),
                high.reclaim().mean_ms / base.reclaim().mean_ms.max(1e-9),
                high.reclaim().mean_ms,
                base.reclaim().mean_ms,
            ),
        });
    }
    if let Some(own) = find(cells, OWN) {
        parts.push(format!(
            "With this project's reclaim there are {}, and all readers have ended after {:.0} s{}.",
            match own.count("allocstall") as u64 {
                0 => "none".to_owned(),
                count => format!("{} of {:.2} ms", units::count(count), own.reclaim().mean_ms),
            },
            own.total_s(),
            find(cells, "base").map_or(String::new(), |base| format!(" (base: {:.0} s)", base.total_s())),
        ));
    }
    if parts.is_empty() {
        parts.extend(cells.first().map(|cell| {
            format!("{}: {} direct reclaims.", cell.variant, units::count(cell.count("allocstall") as u64))
        }));
    }
    parts.join(" ")
}

fn says(cells: &[Cell]) -> Vec<String> {
    let mut says = Vec::new();
    if let (Some(hundred), Some(ten)) = (find(cells, "time-limit-100ms"), find(cells, "time-limit-10ms")) {
        says.push(format!(
            "A limit of 100 ms leaves a mean delay of {:.0} ms, one of 10 ms {:.0}: what is waited for is a CPU.",
            hundred.reclaim().mean_ms,
            ten.reclaim().mean_ms
        ));
    }
    let waits: Vec<f64> = cells.iter().map(|cell| cell.interactive().mean_ms).collect();
    let (least, most) = waits.iter().fold((f64::MAX, 0.0_f64), |(least, most), ms| (least.min(*ms), most.max(*ms)));
    if cells.len() > 1 {
        says.push(format!(
            "The author found that 'the reduced reclaim latency hardly improves the overall responsiveness': a task that \
             needs a millisecond and a page ten times a second waits {least:.0} to {most:.0} ms beyond that, whatever the form."
        ));
    }
    if cells.iter().all(|cell| published::of(cell.variant, &cell.load).is_none())
        && cells.iter().any(|cell| published::PUBLISHED.iter().any(|it| it.variant == cell.variant))
    {
        says.push("This is not the load that the seed measured, so its figures do not stand beside these.".to_owned());
    }
    says
}
