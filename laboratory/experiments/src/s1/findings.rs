//! The tables and plots of s1, and its conclusions.
//!
//! Owns: their arrangement and wording; fixed paragraphs are in `findings.md`. Does not own: the runs.
//! Invariants: a sentence about a figure is made from the figure, or says that nothing was run for it.

use afflux_report::{Align, Axis, Bar, Bars, Figure, Plot, Quantity, Row, Series, Shape, Table};
use serde_json::Value;

use super::machines::DISK_CACHE_KIB;
use super::two_writers::{PLOTTED, Ran};
use crate::experiment::Findings;
use crate::prose::{paragraph, section};

const TEXT: &str = include_str!("findings.md");
const THE_GRAPHS: &str = section(TEXT, "the graphs");
const TWELVE_DISKS_PUBLISHED: &str = section(TEXT, "twelve disks, published");
const TWELVE_DISKS_NOT_KNOWN: &str = section(TEXT, "twelve disks, not known");

/// The title of a column, and its metric or parameter.
type Column = (&'static str, &'static str);

const QUEUE: [Column; 2] = [("requests", "nr_requests"), ("KiB each", "request_kib")];
const CACHE: Column = ("disk cache, KiB", "disk_cache_kib");
/// The shares of the writers, and how full the queue was.
const FLOW: [Column; 5] = [
    ("MB/s", "throughput_mb_per_s"),
    ("queue full", "queue_fullness_mean"),
    ("tasks", "submitters"),
    ("pdflush's share", "pdflush_share"),
    ("switches a GB", "file_switches_per_gb"),
];
/// The work of the disks and CPUs.
const WORK: [Column; 4] =
    [("IO/s", "iops"), ("KiB an IO", "io_kib_mean"), ("seeks a GB", "seeks_per_gb"), ("CPU, %", "cpu_percent")];
/// An explanation of the short titles.
const LEGEND: &str = "Requests: as many as a queue holds, of at most so many KiB each. Queue full: in the mean, 1 is where writers \
                      wait. Tasks: that submitted in a second. Pdflush's share: of the bytes. Switches: of file.";

/// The rows of each case that was run.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) two_writers: Vec<Row>,
    pub(super) pool_alone: Vec<Row>,
    pub(super) two_superblocks: Vec<Row>,
    pub(super) sync_of_two: Vec<Row>,
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
        Some(Value::Number(number)) => match number.as_f64() {
            Some(number) if number.abs() >= 100.0 => format!("{number:.0}"),
            _ => number.to_string(),
        },
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn table(caption: &str, rows: &[Row], columns: &[Column], published: Option<&str>) -> Option<Table> {
    if rows.is_empty() {
        return None;
    }
    let mut titles = vec![("kernel", Align::Left)];
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

/// The tables that the answer is made of, and those about the work of disks and CPUs.
fn tables(rows: &Rows) -> (Vec<Table>, Vec<Table>) {
    let with = |more: &[Column], last: &[Column]| [&QUEUE[..], more, last].concat();
    let writers = [CACHE, ("CPU ms a MB", "cpu_ms_per_mb")];
    let reading = [("reading, MB/s", "read_mb_per_s"), ("its seeks a GB", "read_seeks_per_gb")];
    let work = [&WORK[..], &reading].concat();
    let blocks = [
        CACHE,
        ("begun as", "begun_as"),
        ("B's share", "share_of_b"),
        ("B begins", "b_starts_s"),
        ("A ends", "a_ends_s"),
        ("B ends", "b_ends_s"),
    ];
    let rival = [("its share beside", "share_beside_rival"), ("the rival's", "share_of_rival")];
    let memory = [("memory, MiB", "memory_mib")];
    let pieces = [&FLOW[..], &[("writer's piece, pages", "writers_piece_pages")]].concat();
    let published = Some("throughput_mb_per_s");
    let all = [
        noted(table("Two writers, five disks in a stripe set", &rows.two_writers, &with(&writers, &FLOW), None)),
        noted(table("The same disks, nobody over the limit", &rows.pool_alone, &with(&[CACHE], &FLOW), None)),
        table(
            "sync of A and B with 100,000 dirty pages each (seconds after it began)",
            &rows.sync_of_two,
            &with(&[("passes", "passes"), ("A durable", "a_ends_s"), ("both durable", "b_ends_s")], &[]),
            None,
        ),
        noted(table("Twelve disks, 16 writers each", &rows.twelve_disks, &with(&memory, &pieces), published)),
        noted(table("Beside a writer that waits for requests", &rows.blocking_rival, &with(&rival, &FLOW), None)),
    ];
    let details = [
        table(
            "A and B with 100,000 dirty pages each (B's share of the bytes when A is submitted; seconds)",
            &rows.two_superblocks,
            &with(&blocks, &[]),
            None,
        ),
        table(
            "Two writers: disks and CPUs, and reading the files back",
            &rows.two_writers,
            &with(&writers, &work),
            None,
        ),
        table("Twelve disks: disks and CPUs", &rows.twelve_disks, &with(&memory, &WORK), None),
    ];
    (all.into_iter().flatten().collect(), details.into_iter().flatten().collect())
}

/// Adds the explanation of short titles.
fn noted(table: Option<Table>) -> Option<Table> {
    let mut table = table?;
    table.note(LEGEND);
    Some(table)
}

fn figures(rows: &Rows, plotted: &[Ran]) -> Vec<Figure> {
    let axis = |label: &str, quantity| Axis::new(label, quantity);
    let over_time = |title: &str, label: &str, quantity, of: fn(&Ran, usize) -> f64| {
        let mut plot = Plot::new(title, axis("time", Quantity::Time), axis(label, quantity));
        for ran in plotted {
            let points = (PLOTTED..ran.samples.len()).step_by(PLOTTED).map(|at| (ran.samples[at].seconds, of(ran, at)));
            plot = plot.with(Series::new(ran.row.variant.as_str(), Shape::Line, points.collect()));
        }
        Figure::Plot(plot)
    };
    let cases = [
        ("Two writers, five disks", &rows.two_writers),
        ("The same disks, nobody over the limit", &rows.pool_alone),
        ("Twelve disks", &rows.twelve_disks),
    ];
    let mut all: Vec<Figure> = cases.into_iter().filter_map(|(title, rows)| speed_bars(title, rows)).collect();
    if plotted.is_empty() {
        return all;
    }
    all.extend([
        over_time("Two writers: throughput", "written", Quantity::DataRate, |ran, at| ran.rate(at).0),
        over_time("Two writers: IO/s", "commands", Quantity::Frequency, |ran, at| ran.rate(at).1),
    ]);
    for ran in plotted {
        let points = ran.offsets.iter().map(|it| (it.at_ns as f64 / 1e9, it.offset as f64)).collect();
        let title = format!("Two writers: offset on the stripe set, {}", ran.row.variant);
        let plot = Plot::new(title, axis("time", Quantity::Time), axis("offset", Quantity::Data));
        all.push(Figure::Plot(plot.with(Series::new(ran.row.variant.as_str(), Shape::Dots, points))));
    }
    all
}

/// Throughput by setting and kernel, with the shortest queue of the run, where they differ most.
fn speed_bars(title: &str, rows: &[Row]) -> Option<Figure> {
    let shortest = rows.iter().map(|row| number(row, "nr_requests")).reduce(f64::min)?;
    let rows: Vec<&Row> = rows.iter().filter(|row| number(row, "nr_requests") == shortest).collect();
    let mut kernels: Vec<&str> = Vec::new();
    let mut settings: Vec<&Row> = Vec::new();
    for row in &rows {
        if !kernels.contains(&row.variant.as_str()) {
            kernels.push(&row.variant);
        }
        if !settings.iter().any(|other| other.params == row.params) {
            settings.push(row);
        }
    }
    let named = |row: &Row| {
        let told = [
            ("request_kib", "", " KiB"),
            ("disk_cache_kib", "cache ", " KiB"),
            ("cpu_ms_per_mb", "CPU ", " ms a MB"),
            ("memory_mib", "memory ", " MiB"),
        ];
        // A parameter that is equal in all settings does not tell them apart.
        let differs = |name: &str| settings.iter().any(|other| value(other, name) != value(row, name));
        let told = told.into_iter().filter(|(name, ..)| value(row, name).is_some());
        let told = told.filter(|(name, ..)| *name == "request_kib" || differs(name));
        told.map(|(name, before, unit)| format!("{before}{}{unit}", text(row, name))).collect::<Vec<_>>().join(", ")
    };
    let bars = Bars::new(format!("{title}: throughput"), "written", Quantity::DataRate, kernels.clone())
        .note(format!("With {shortest} requests in a queue, of at most so many KiB."));
    let bars = settings.iter().fold(bars, |bars, setting| {
        let bar = |kernel: &&str| {
            let row = rows.iter().find(|row| row.variant == *kernel && row.params == setting.params)?;
            Some(Bar::new(number(row, "throughput_mb_per_s") * 1e6))
        };
        bars.group(named(setting), kernels.iter().map(bar).collect())
    });
    Some(Figure::Bars(bars))
}

fn find<'a>(rows: &'a [Row], variant: &str, params: &[(&str, f64)]) -> Option<&'a Row> {
    let fits = |row: &&Row| row.variant == variant && params.iter().all(|(name, is)| number(row, name) == *is);
    rows.iter().find(fits)
}

/// Both rows, if both were run.
fn pair<'a>(rows: &'a [Row], names: [&str; 2], params: &[(&str, f64)]) -> Option<[&'a Row; 2]> {
    Some([find(rows, names[0], params)?, find(rows, names[1], params)?])
}

/// Throughput of the variants `names`, with these parameters.
fn speeds<const N: usize>(rows: &[Row], names: [&str; N], params: &[(&str, f64)]) -> Option<[f64; N]> {
    let mut speeds = [0.0; N];
    for (speed, name) in speeds.iter_mut().zip(names) {
        *speed = number(find(rows, name, params)?, "throughput_mb_per_s");
    }
    Some(speeds)
}

const WOKEN: &str = "linux-2.6.31";
const PLAIN: &str = "linux-2.6.31-plain-100ms";
const FLUSHERS: &str = "linux-2.6.32";
const UNTESTED: &str = "linux-2.6.32-no-share-test";
const AFFLUX: &str = "afflux";

fn of_two_writers(rows: &[Row], says: &mut Vec<String>) {
    for nr_requests in [2048.0, 128.0] {
        for request_kib in [64.0, 24.0] {
            let cache = DISK_CACHE_KIB as f64;
            let params = [
                ("nr_requests", nr_requests),
                ("request_kib", request_kib),
                ("cpu_ms_per_mb", 1.0),
                ("disk_cache_kib", cache),
            ];
            let Some([polled, blocked]) = pair(rows, [PLAIN, FLUSHERS], &params) else { continue };
            let Some(woken) = find(rows, WOKEN, &params) else { continue };
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
        says.push(paragraph(THE_GRAPHS));
    }
}

/// Takes apart the causes that keep the disks busy while pdflush sleeps.
fn of_sleeping(rows: &Rows, says: &mut Vec<String>) {
    let params = |cache_kib| [("nr_requests", 128.0), ("request_kib", 24.0), ("disk_cache_kib", cache_kib)];
    let cached = DISK_CACHE_KIB as f64;
    let alone = |cache_kib| speeds(&rows.pool_alone, [PLAIN, WOKEN, FLUSHERS], &params(cache_kib));
    if let (Some(with), Some(without)) = (alone(cached), alone(0.0)) {
        says.push(format!(
            "pool-alone, 128 requests of 24 KB, which last 7 ms: asleep for 100 ms each time pdflush reaches {:.0} MB/s, \
             woken on clear {:.0}, flushers {:.0}. Five write caches of 8 MiB last as long as a sleep; without them it is \
             {:.0}, {:.0} and {:.0}.",
            with[0], with[1], with[2], without[0], without[1], without[2],
        ));
    }
    let Some([plain, blocked]) = pair(&rows.two_writers, [PLAIN, FLUSHERS], &params(0.0)) else { return };
    says.push(format!(
        "two-writers, 128 requests of 24 KB and disks without a cache: {:.0} MB/s with plain sleeps and {:.0} with flushers. Writers over \
         their share write meanwhile and wait for requests: pdflush submits {:.0} % of the bytes, they the rest. So a \
         plain poll starves disks where the sleep outlasts queue and caches and nobody else writes.",
        number(plain, "throughput_mb_per_s"),
        number(blocked, "throughput_mb_per_s"),
        number(plain, "pdflush_share") * 100.0,
    ));
}

/// The cost of the layout for a reader.
fn of_reading(rows: &[Row], says: &mut Vec<String>) {
    let read = rows.iter().map(|row| number(row, "read_mb_per_s")).filter(|rate| rate.is_finite());
    let Some((low, high)) = read.map(|rate| (rate, rate)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return };
    let at_submission = rows.iter().any(|row| row.params.get("allocate_at_submission") == Some(&Value::Bool(true)));
    let laid_out = if at_submission { "in the order of submission" } else { "in chunks of 8 MiB" };
    says.push(format!(
        "two-writers, files laid out {laid_out}: read back one after the other at {low:.0} to {high:.0} MB/s."
    ));
}

/// Whether runs with several sizes of memory were compared, and the smallest memory had the largest loss.
fn shrinks_with_memory(costs: &[(f64, f64)]) -> bool {
    let most_with = |memory: f64| costs.iter().filter(|it| it.0 == memory).map(|it| it.1).fold(f64::MIN, f64::max);
    let least_memory = costs.iter().map(|it| it.0).fold(f64::INFINITY, f64::min);
    let mut others = costs.iter().filter(|it| it.0 > least_memory).peekable();
    others.peek().is_some() && others.all(|it| it.1 < most_with(least_memory))
}

fn of_twelve_disks(rows: &[Row], says: &mut Vec<String>) {
    let mut seen = Vec::new();
    // For each run in which all three were compared, its memory and the cost of the test on the share.
    let mut costs: Vec<(f64, f64)> = Vec::new();
    for row in rows {
        let params = ["nr_requests", "request_kib", "memory_mib"].map(|name| (name, number(row, name)));
        if seen.contains(&params) {
            continue;
        }
        seen.push(params);
        let names = ["linux-2.6.31-rc1", WOKEN, FLUSHERS];
        let (Some([rc1, rc2, flushers]), Some([first, second])) =
            (speeds(rows, names, &params), pair(rows, [WOKEN, FLUSHERS], &params))
        else {
            continue;
        };
        let [(_, requests), (_, kib), (_, mib)] = params;
        costs.push((mib, 1.0 - rc2 / rc1));
        says.push(format!(
            "twelve-disks, {requests} requests of {kib} KB, {mib} MiB of memory (a queue holds {:.0} MiB, a disk's part of \
             the dirty limit is about {:.0}): {rc1:.0} MB/s with 2.6.31-rc1, {rc2:.0} with the test on the share \
             ({:+.1} %), {flushers:.0} with flushers ({:+.1} %); {:.0} and {:.0} changes of file per GB in the latter two.",
            requests * kib / 1024.0,
            mib * 0.2 / 12.0,
            (rc2 / rc1 - 1.0) * 100.0,
            (flushers / rc1 - 1.0) * 100.0,
            number(first, "file_switches_per_gb"),
            number(second, "file_switches_per_gb"),
        ));
        says.extend(of_share_test(rows, &params));
    }
    if !seen.is_empty() {
        says.push(paragraph(TWELVE_DISKS_PUBLISHED));
        says.extend(shrinks_with_memory(&costs).then(|| {
            "The regression is largest with the least memory, where a queue takes up most of a disk's part of the limit: \
             then what can be written is less than the share at any time, writers wait instead of writing, and what is \
             there to write is little by little."
                .to_owned()
        }));
        says.push(paragraph(TWELVE_DISKS_NOT_KNOWN));
    }
}

/// The test on the share in a tree with flushers, and the pieces that writers write: both are hold-outs.
fn of_share_test(rows: &[Row], params: &[(&str, f64)]) -> Option<String> {
    let [with, without] = speeds(rows, [FLUSHERS, UNTESTED], params)?;
    let piece = |name| Some(number(find(rows, name, params)?, "writers_piece_pages")).filter(|pages| pages.is_finite());
    let of = |name| piece(name).map_or("none".to_owned(), |pages| format!("{pages:.0} pages"));
    Some(format!(
        "Hold-outs: flushers with the test on the share write {with:.0} MB/s, without it {without:.0} ({:+.1} % by the test). \
         A writer's own piece in the mean: {} with 2.6.31-rc1, {} with 2.6.31, {} with flushers.",
        (with / without - 1.0) * 100.0,
        of("linux-2.6.31-rc1"),
        of(WOKEN),
        of(FLUSHERS),
    ))
}

/// The engine with its own policy, beside the best of the kernels.
fn of_own(rows: &Rows, says: &mut Vec<String>) {
    for (case, rows) in
        [("two-writers", &rows.two_writers), ("pool-alone", &rows.pool_alone), ("twelve-disks", &rows.twelve_disks)]
    {
        let ratios: Vec<f64> =
            rows.iter().filter(|row| row.variant == AFFLUX).filter_map(|own| beside_best(own, rows)).collect();
        let (Some(least), Some(most)) =
            (ratios.iter().copied().reduce(f64::min), ratios.iter().copied().reduce(f64::max))
        else {
            continue;
        };
        says.push(format!(
            "{case}: under the flush budget, a second of each disk's time, the engine writes {:.0} to {:.0} % of what the \
             best kernel of each setting does.",
            least * 100.0,
            most * 100.0,
        ));
    }
}

/// The throughput of a row over the best other variant with the same parameters.
fn beside_best(own: &Row, rows: &[Row]) -> Option<f64> {
    let others = rows.iter().filter(|row| row.variant != own.variant && row.params == own.params);
    let best = others.map(|row| number(row, "throughput_mb_per_s")).reduce(f64::max)?;
    Some(number(own, "throughput_mb_per_s") / best)
}

/// The effect of sync's first pass.
fn of_syncs(rows: &[Row], says: &mut Vec<String>) {
    for variant in [WOKEN, FLUSHERS, AFFLUX] {
        let of = |passes| find(rows, variant, &[("passes", passes)]).map(|row| number(row, "b_ends_s"));
        let (Some(one), Some(two)) = (of(1.0), of(2.0)) else { continue };
        says.push(format!(
            "sync-of-two, {variant}: both disks are durable after {one:.2} s where each is waited for in turn, after \
             {two:.2} s where both are begun first."
        ));
    }
}

fn of_the_others(rows: &Rows, says: &mut Vec<String>) {
    of_syncs(&rows.sync_of_two, says);
    let shares = rows.two_superblocks.iter().filter(|row| row.variant == "linux-2.6.31");
    let shares: Vec<f64> = shares.map(|row| number(row, "share_of_b")).collect();
    if let (Some(low), Some(high)) = (shares.iter().copied().reduce(f64::min), shares.iter().copied().reduce(f64::max))
    {
        says.push(format!(
            "two-superblocks: when the last of A has been submitted, B has had {low:.3} to {high:.3} of all, by how many \
             bytes a queue holds. {}",
            match (low < 0.1, high < 0.1) {
                (true, false) => {
                    "Where A's 390 MiB fit into its queue it is exhausted first; where they do not, the walk comes to B \
                     as soon as A is congested. Both sides of S1's argument are right, for different queues."
                }
                (true, true) => "Every queue here holds A's 390 MiB: A is exhausted first.",
                (false, _) => "No queue here holds A's 390 MiB: the walk comes to B as soon as A is congested.",
            }
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

/// All findings of the experiment.
pub(super) fn findings(rows: &Rows, plotted: &[Ran]) -> Findings {
    let mut says = Vec::new();
    of_two_writers(&rows.two_writers, &mut says);
    of_sleeping(rows, &mut says);
    of_reading(&rows.two_writers, &mut says);
    of_twelve_disks(&rows.twelve_disks, &mut says);
    of_the_others(rows, &mut says);
    of_own(rows, &mut says);
    let (tables, details) = tables(rows);
    Findings { answer: answer(rows), tables, details, figures: figures(rows, plotted), says }
}

/// Flushers beside both kinds of pdflush, in the setting that tells them apart most.
fn answer(rows: &Rows) -> String {
    let mut most: Option<(f64, String)> = None;
    for (case, rows) in [("two writers", &rows.two_writers), ("nobody made to wait", &rows.pool_alone)] {
        for row in rows.iter().filter(|row| row.variant == FLUSHERS) {
            let beside = |variant: &str| {
                let same = rows.iter().find(|other| other.variant == variant && other.params == row.params);
                same.map(|row| number(row, "throughput_mb_per_s"))
            };
            let (Some(polled), Some(woken)) = (beside(PLAIN), beside(WOKEN)) else { continue };
            let (own, engine) = (number(row, "throughput_mb_per_s"), beside(AFFLUX));
            let engine = engine.map_or_else(String::new, |engine| format!(", and this project's engine {engine:.0}"));
            let cache = match number(row, "disk_cache_kib") {
                0.0 => "no cache in the disks".to_owned(),
                kib => format!("caches of {:.0} MiB in the disks", kib / 1024.0),
            };
            let said = format!(
                "Flushers write {own:.0} MB/s to five disks where pdflush that polls writes {polled:.0} and pdflush that is \
                 woken {woken:.0}{engine}: the most that they differ here, with {case}, {} requests of {} KiB and {cache}.",
                text(row, "nr_requests"),
                text(row, "request_kib"),
            );
            let apart = own / polled;
            if most.as_ref().is_none_or(|(other, _)| apart > *other) {
                most = Some((apart, said));
            }
        }
    }
    let queue = |row: &Row| number(row, "nr_requests");
    let shortest = rows.blocking_rival.iter().map(queue).fold(f64::INFINITY, f64::min);
    let blocks = rows
        .blocking_rival
        .iter()
        .filter(|row| queue(row) == shortest)
        .map(|row| (row.variant.as_str(), number(row, "share_beside_rival")));
    let blocks: Vec<String> = blocks.map(|(name, share)| format!("{name} {:.1} %", share * 100.0)).collect();
    let rival = match blocks.is_empty() {
        true => String::new(),
        false => format!(" Beside a writer that waits for requests, of the disk: {}.", blocks.join(", ")),
    };
    let twelve = speeds_of_twelve(&rows.twelve_disks).unwrap_or_default();
    let answer = most.map(|(_, said)| said).unwrap_or_default() + &twelve + &rival;
    if answer.is_empty() { "Other cases were run: see the tables.".to_owned() } else { answer.trim().to_owned() }
}

/// The regression after which the thread is named.
fn speeds_of_twelve(rows: &[Row]) -> Option<String> {
    let first = rows.first()?;
    let params = ["nr_requests", "request_kib", "memory_mib"].map(|name| (name, number(first, name)));
    let [rc1, rc2, flushers] = speeds(rows, ["linux-2.6.31-rc1", WOKEN, FLUSHERS], &params)?;
    Some(format!(
        " Twelve disks: {rc1:.0} MB/s with 2.6.31-rc1, {rc2:.0} with 2.6.31 ({:+.1} %), {flushers:.0} with flushers ({:+.1} %).",
        (rc2 / rc1 - 1.0) * 100.0,
        (flushers / rc1 - 1.0) * 100.0,
    ))
}

#[cfg(test)]
mod tests;
