//! The tables and plots of s1, and what they show.
//!
//! Owns: the arrangement, the sentences. Does not own: the runs.
//! Invariants: a sentence about a figure is made from the figure, or says that nothing was run for it.

use report::{Align, Axis, Figure, Plot, Quantity, Row, Series, Shape, Table};
use serde_json::Value;

use super::two_writers::Ran;
use crate::experiment::Findings;

/// Samples between points of a plot: a second.
pub(super) const PLOTTED: usize = 10;

/// Title of a column, and the metric or parameter in it.
type Column = (&'static str, &'static str);

const QUEUE: [Column; 2] = [("nr_requests", "nr_requests"), ("request KB", "request_kib")];
const FLOW: [Column; 8] = [
    ("MB/s", "throughput_mb_per_s"),
    ("IO/s", "iops"),
    ("KiB/IO", "io_kib_mean"),
    ("file switches/GB", "file_switches_per_gb"),
    ("seeks/GB", "seeks_per_gb"),
    ("fullness", "queue_fullness_mean"),
    ("submitters", "submitters"),
    ("pdflush's share", "pdflush_share"),
];

/// The rows of each case that was run.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) two_writers: Vec<Row>,
    pub(super) pool_alone: Vec<Row>,
    pub(super) two_superblocks: Vec<Row>,
    pub(super) twelve_disks: Vec<Row>,
    pub(super) blocking_rival: Vec<Row>,
}

fn value<'a>(row: &'a Row, name: &str) -> Option<&'a Value> {
    row.params.get(name).or_else(|| row.metrics.get(name))
}

fn number(row: &Row, name: &str) -> f64 {
    value(row, name).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

fn text(row: &Row, name: &str) -> String {
    match value(row, name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn table(caption: &str, rows: &[Row], columns: &[Column], published: Option<&str>) -> Option<Table> {
    if rows.is_empty() {
        return None;
    }
    let mut titles = vec![("variant", Align::Left)];
    titles.extend(columns.iter().map(|(title, _)| (*title, Align::Right)));
    titles.extend(published.map(|_| ("published", Align::Right)));
    let mut table = Table::new(caption, &titles);
    for row in rows {
        let mut cells = vec![row.variant.clone()];
        cells.extend(columns.iter().map(|(_, name)| text(row, name)));
        cells.extend(published.map(|name| row.published.get(name).map_or_else(String::new, Value::to_string)));
        table.row(cells);
    }
    Some(table)
}

fn tables(rows: &Rows) -> Vec<Table> {
    let with = |more: &[Column]| [&QUEUE[..], more, &FLOW[..]].concat();
    let writers = with(&[("CPU ms/MB", "cpu_ms_per_mb")]);
    let busy = |mut columns: Vec<Column>| {
        columns.push(("CPU %", "cpu_percent"));
        columns
    };
    let blocks = [
        &QUEUE[..],
        &[
            ("begun as", "begun_as"),
            ("B's share when A is submitted", "share_of_b"),
            ("B begins, s", "b_starts_s"),
            ("A ends, s", "a_ends_s"),
            ("B ends, s", "b_ends_s"),
        ],
    ]
    .concat();
    let rival =
        [&QUEUE[..], &[("share beside the rival", "share_beside_rival"), ("rival's", "share_of_rival")]].concat();
    let rival = [&rival[..], &FLOW[..7]].concat();
    let all = [
        table("Two writers, five disks in a stripe set", &rows.two_writers, &busy(writers), None),
        table("A and B with 100,000 dirty pages each", &rows.two_superblocks, &blocks, None),
        table("Twelve disks, 16 writers each", &rows.twelve_disks, &busy(with(&[])), Some("throughput_mb_per_s")),
        table("Beside a writer that waits for requests", &rows.blocking_rival, &rival, None),
    ];
    all.into_iter().flatten().collect()
}

fn figures(plotted: &[Ran]) -> Vec<Figure> {
    let axis = |label: &str, quantity| Axis::new(label, quantity);
    let over_time = |title: &str, label: &str, quantity, of: fn(&Ran, usize) -> f64| {
        let mut plot = Plot::new(title, axis("time", Quantity::Time), axis(label, quantity));
        for ran in plotted {
            let points = (PLOTTED..ran.samples.len()).step_by(PLOTTED).map(|at| (ran.samples[at].seconds, of(ran, at)));
            plot = plot.with(Series::new(ran.row.variant.as_str(), Shape::Line, points.collect()));
        }
        Figure::Plot(plot)
    };
    if plotted.is_empty() {
        return Vec::new();
    }
    let mut all = vec![
        over_time("Two writers: throughput", "written", Quantity::DataRate, |ran, at| ran.rate(at).0),
        over_time("Two writers: IO/s", "commands", Quantity::Frequency, |ran, at| ran.rate(at).1),
    ];
    for ran in plotted {
        let points = ran.offsets.iter().map(|it| (it.at_ns as f64 / 1e9, it.offset as f64)).collect();
        let title = format!("Two writers: offset on the stripe set, {}", ran.row.variant);
        let plot = Plot::new(title, axis("time", Quantity::Time), axis("offset", Quantity::Data));
        all.push(Figure::Plot(plot.with(Series::new(ran.row.variant.as_str(), Shape::Dots, points))));
    }
    all
}

fn find<'a>(rows: &'a [Row], variant: &str, params: &[(&str, f64)]) -> Option<&'a Row> {
    let fits = |row: &&Row| row.variant == variant && params.iter().all(|(name, is)| number(row, name) == *is);
    rows.iter().find(fits)
}

/// Both, if both were run.
fn pair<'a>(rows: &'a [Row], names: [&str; 2], params: &[(&str, f64)]) -> Option<[&'a Row; 2]> {
    Some([find(rows, names[0], params)?, find(rows, names[1], params)?])
}

fn of_two_writers(rows: &[Row], says: &mut Vec<String>) {
    for (nr_requests, plain) in [(2048.0, "linux-2.6.31-plain-100ms"), (128.0, "linux-2.6.31-plain-100ms")] {
        for request_kib in [64.0, 24.0] {
            let params = [("nr_requests", nr_requests), ("request_kib", request_kib), ("cpu_ms_per_mb", 1.0)];
            let Some([polled, blocked]) = pair(rows, [plain, "linux-2.6.32"], &params) else { continue };
            let Some(woken) = find(rows, "linux-2.6.31", &params) else { continue };
            let of = |row, name| number(row, name);
            says.push(format!(
                "two-writers, {nr_requests} requests of {request_kib} KB: pdflush woken on clear {:.0} MB/s (queue {:.2} \
                 full), polling every 100 ms {:.0} ({:.2}), flushers {:.0} ({:.2}).",
                of(woken, "throughput_mb_per_s"),
                of(woken, "queue_fullness_mean"),
                of(polled, "throughput_mb_per_s"),
                of(polled, "queue_fullness_mean"),
                of(blocked, "throughput_mb_per_s"),
                of(blocked, "queue_fullness_mean"),
            ));
        }
    }
    if !rows.is_empty() {
        says.push(
            "two-writers shows what polling costs: some of the queue's fullness. Where pdflush's sleep outlasts a short \
             queue the disks do not starve either; the first model, in which one thread alone submits, has a loss there \
             that the engine does not have. That writers over their share write meanwhile would explain it, and was not \
             isolated by a run. Nothing here shows S1's graphs: how fast the old code was is not stated, and request sizes are an \
             input, not a result."
                .to_owned(),
        );
    }
}

fn of_twelve_disks(rows: &[Row], says: &mut Vec<String>) {
    let params = [("nr_requests", 128.0)];
    let Some([rc1, rc2]) = pair(rows, ["linux-2.6.31-rc1", "linux-2.6.31"], &params) else { return };
    let speed = |row| number(row, "throughput_mb_per_s");
    says.push(format!(
        "twelve-disks: {:.0} MB/s with 2.6.31-rc1 and {:.0} with the test on the share, a loss of {:.1} %; published 460 \
         and about 400, 13 %. In rc1 {:.1} % of the bytes are submitted by pdflush, with the test {:.1} %.",
        speed(rc1),
        speed(rc2),
        (1.0 - speed(rc2) / speed(rc1)) * 100.0,
        number(rc1, "pdflush_share") * 100.0,
        number(rc2, "pdflush_share") * 100.0,
    ));
    if let Some(flushers) = find(rows, "linux-2.6.32", &params) {
        says.push(format!(
            "Flushers by device reach {:.0} MB/s with {:.0} changes of file per GB submitted, against {:.0} in rc1 and \
             {:.0} in 2.6.31.",
            speed(flushers),
            number(flushers, "file_switches_per_gb"),
            number(rc1, "file_switches_per_gb"),
            number(rc2, "file_switches_per_gb"),
        ));
    }
    says.push(
        "Disk rate (60 MB/s), request size (64 KB) and where files lie are assumed: the post does not say them, and the \
         figures in MB/s follow from them. The first model, in which pdflush alone wrote after rc2, had 437 against 401. \
         In the engine writers still write most of the bytes at 64 KB, and with larger requests (--request 256KiB) \
         pdflush does; that what 128 requests hold is little beside a disk's share would explain it, and was not \
         isolated by a run. The whole published loss is not reproduced."
            .to_owned(),
    );
}

fn of_the_others(rows: &Rows, says: &mut Vec<String>) {
    let shares = rows.two_superblocks.iter().filter(|row| row.variant == "linux-2.6.31");
    let shares: Vec<f64> = shares.map(|row| number(row, "share_of_b")).collect();
    if let (Some(low), Some(high)) = (shares.iter().copied().reduce(f64::min), shares.iter().copied().reduce(f64::max))
    {
        says.push(format!(
            "two-superblocks: when the last of A has been submitted, B has had {low:.3} to {high:.3} of all, by how many \
             bytes a queue holds. Where A's 390 MiB fit into its queue it is exhausted first; where they do not, the walk \
             comes to B as soon as A is congested. Both sides of S1's argument are right, for different queues."
        ));
    }
    for row in &rows.blocking_rival {
        says.push(format!(
            "blocking-rival, {} requests: {} gets {:.1} % of the disk beside a writer that always waits.",
            text(row, "nr_requests"),
            row.variant,
            number(row, "share_beside_rival") * 100.0,
        ));
    }
}

/// All of it.
pub(super) fn findings(rows: &Rows, plotted: &[Ran]) -> Findings {
    let mut says = Vec::new();
    of_two_writers(&rows.two_writers, &mut says);
    of_twelve_disks(&rows.twelve_disks, &mut says);
    of_the_others(rows, &mut says);
    Findings { tables: tables(rows), figures: figures(plotted), says }
}
