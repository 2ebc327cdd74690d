//! The findings of the experiment: tables, plots and sentences.
//!
//! Owns: their arrangement and wording. Does not own: the figures.
//! Invariants: if the default is behind another policy of the engine, a sentence says where and by how much.

use afflux_engine::eviction::EvictionKind;
use afflux_report::{Align, Axis, Bar, Bars, Cell as TableCell, Plot, Quantity, Series, Shape, Table, units};

use super::default_policy;
use super::device_time::{Case, Cost};
use super::ratios::{Cell, ENGINES, POLICIES, Spread};
use super::traces::TraceRow;
use crate::experiment::Findings;
use crate::prose::{paragraph, section};

const LABELS: &str = section(include_str!("findings.md"), "labels");
const RATIOS: &str = section(include_str!("findings.md"), "ratios");
const DEVICES: &str = section(include_str!("findings.md"), "devices");
const TRACES: &str = section(include_str!("findings.md"), "traces");

/// The most that the default may read for each page or byte of what it is compared with.
pub(super) const GOAL: f64 = 1.03;

/// The policy that the others' time on devices is compared with.
const BASE: EvictionKind = EvictionKind::TwoList;

pub(super) fn findings(cells: &[Cell], cases: &[Case], rows: &[TraceRow]) -> Findings {
    let mut findings = Findings { answer: answer(cells), ..Findings::default() };
    findings.says.push(paragraph(LABELS));
    findings.says.push(paragraph(RATIOS));
    findings.says.extend(promise(cells));
    findings.figures.push(reductions(cells).into());
    findings.figures.extend(over_sizes(cells).map(Into::into));
    findings.tables.push(ratio_table(cells));
    findings.tables.push(spread_table(cells));
    if !cases.is_empty() {
        findings.says.push(paragraph(DEVICES));
        findings.says.push(devices_said(cases));
        findings.figures.push(device_bars(cases).into());
        findings.tables.push(waits_table(cases));
        findings.details.push(device_table(cases));
    }
    if !rows.is_empty() {
        findings.says.push(paragraph(TRACES));
        findings.says.push(traces_said(rows));
        findings.tables.push(trace_table(rows));
    }
    findings
}

/// The misses that the default saves, beside the other policies, and how often it is behind.
fn answer(cells: &[Cell]) -> String {
    let saved = |policy: &str| format!("{policy} {:.1} %", 100.0 * reduction(cells, policy).mean);
    let default = default_policy();
    let others = ["two-list", "s3-fifo", "sieve", "arc", "belady"].into_iter().filter(|policy| *policy != default);
    let others: Vec<String> = others.map(saved).collect();
    let kept = cells.iter().filter(|cell| cell.shortfall().is_none()).count();
    format!(
        "Of the misses of first in, first out (FIFO), {default} saves {:.1} % in the mean ({}); in {kept} of {} rows it is at most \
         a point behind the best other policy of the engine.",
        100.0 * reduction(cells, default).mean,
        others.join(", "),
        cells.len()
    )
}

/// In how many rows of traces the goals hold, and which rows miss them.
fn traces_said(rows: &[TraceRow]) -> String {
    let said = |what: &str, ratio: fn(&TraceRow) -> f64| {
        let name = |row: &&TraceRow| format!("{} at 1/{} ({:.3})", row.trace, row.part, ratio(row));
        let over: Vec<String> = rows.iter().filter(|row| ratio(row) > GOAL).map(|row| name(&row)).collect();
        let list = if over.is_empty() { String::new() } else { format!("; more in {}", over.join(", ")) };
        format!("{what} in {} of {} rows{list}.", rows.len() - over.len(), rows.len())
    };
    format!(
        "{} {}",
        said("The default reads at most 3 % more pages than the best policy", TraceRow::to_best),
        said("With readahead it reads at most 3 % more bytes than without", TraceRow::readahead_ratio),
    )
}

fn trace_table(rows: &[TraceRow]) -> Table {
    let mut columns = vec![("trace", Align::Left), ("cache", Align::Left)];
    columns.extend(POLICIES.iter().map(|policy| (*policy, Align::Right)));
    columns.push(("to best", Align::Right));
    let on_disk: Vec<String> =
        ENGINES.iter().flat_map(|kind| ["MiB", "ahead"].map(|what| format!("{} {what}", kind.name()))).collect();
    columns.extend(on_disk.iter().map(|title| (title.as_str(), Align::Right)));
    let mut table =
        Table::new("Pages that each policy reads of a trace, and MiB that a disk reads", &columns).named_by(2);
    for row in rows {
        let name = if row.held_out { format!("{}, held out", row.trace) } else { row.trace.to_owned() };
        let mut cells = vec![TableCell::from(name), format!("1/{}", row.part).into()];
        cells.extend(row.misses.iter().map(|misses| misses.to_string().into()));
        let ratio = format!("{:.3}", row.to_best());
        cells.push(if row.to_best() > GOAL { TableCell::flagged(ratio) } else { ratio.into() });
        for [without, with] in &row.disk_bytes {
            let ratio = format!("{:.3}", *with as f64 / (*without).max(1) as f64);
            cells.extend([format!("{:.1}", *without as f64 / f64::from(1 << 20)).into(), ratio.into()]);
        }
        table.row(cells);
    }
    table.note(
        "To best: pages that the default reads, for each that the best of the others but belady and dueling reads.",
    );
    table.note("MiB: read by a disk without readahead. Ahead: with readahead, for each byte without.");
    table
}

/// Hits in percent, one table cell for all cache sizes of a generator.
fn ratio_table(cells: &[Cell]) -> Table {
    let mut columns = vec![("touches", Align::Left)];
    columns.extend(POLICIES.iter().map(|policy| (*policy, Align::Right)));
    let mut table = Table::new("Hits in percent", &columns);
    for rows in by_generator(cells) {
        let of = |policy: &&str| {
            let ratios: Vec<String> =
                rows.iter().map(|cell| format!("{:.1}", 100.0 * cell.hit_ratio(policy))).collect();
            let text = ratios.join(" / ");
            let behind = *policy == default_policy() && rows.iter().any(|cell| cell.shortfall().is_some());
            if behind { TableCell::flagged(text) } else { text.into() }
        };
        table.row([TableCell::from(rows[0].generator)].into_iter().chain(POLICIES.iter().map(of)));
    }
    let parts: Vec<String> = by_generator(cells)
        .first()
        .into_iter()
        .flat_map(|rows| rows.iter())
        .map(|cell| format!("1/{}", cell.part))
        .collect();
    table.note(format!("Caches of {} of the pages.", parts.join(", ")));
    table.note("*: more than a point behind the best of two-list, s3-fifo and sieve.");
    table
}

fn by_generator(cells: &[Cell]) -> Vec<&[Cell]> {
    cells.chunk_by(|one, other| one.generator == other.generator).collect()
}

fn spread_table(cells: &[Cell]) -> Table {
    let columns = [
        ("policy", Align::Left),
        ("P10", Align::Right),
        ("mean", Align::Right),
        ("P90", Align::Right),
        ("worst", Align::Right),
        ("LRU to Belady", Align::Right),
        ("looked at a miss", Align::Right),
    ];
    let mut table = Table::new("Misses saved against FIFO, in percent, over all rows", &columns);
    for (at, policy) in POLICIES.iter().enumerate().filter(|(_, policy)| **policy != "fifo") {
        let spread = reduction(cells, policy);
        let gaps: Vec<f64> = cells.iter().filter_map(|cell| cell.gap_closed(policy)).collect();
        let looks: Vec<f64> = cells.iter().filter_map(|cell| cell.looks[at]).collect();
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        let mean = |figures: &[f64]| figures.iter().sum::<f64>() / figures.len().max(1) as f64;
        table.row([
            (*policy).to_owned(),
            percent(spread.p10),
            percent(spread.mean),
            percent(spread.p90),
            percent(spread.worst),
            format!("{:.2}", mean(&gaps)),
            if looks.is_empty() { String::new() } else { format!("{:.1}", mean(&looks)) },
        ]);
    }
    table.note("Below 0: of the policy's own misses, those that FIFO saves.");
    table.note("LRU to Belady: the part closed of the gap between them, mean of the rows where there is one.");
    table
}

fn reduction(cells: &[Cell], policy: &str) -> Spread {
    Spread::of(cells.iter().map(|cell| cell.miss_reduction(policy)))
}

fn reductions(cells: &[Cell]) -> Bars {
    let mut bars = Bars::new("Misses saved against FIFO", "Misses saved", Quantity::Share, ["mean of all rows"])
        .note("From the tenth percentile to the ninetieth.");
    for policy in POLICIES.iter().filter(|policy| **policy != "fifo") {
        let Spread { p10, mean, p90, .. } = reduction(cells, policy);
        bars = bars.group(*policy, vec![Some(Bar::new(mean.max(0.0)).within(p10.max(0.0), p90.max(0.0)))]);
    }
    bars
}

/// Hits over the cache's size, for generators with cliffs and plateaus.
fn over_sizes(cells: &[Cell]) -> impl Iterator<Item = Plot> {
    by_generator(cells).into_iter().filter(|rows| rows[0].generator.starts_with("recency") && rows.len() > 1).map(
        |rows| {
            let x = Axis::new("Cache, part of the pages", Quantity::Share).log();
            let mut plot = Plot::new(format!("Hits: {}", rows[0].generator), x, Axis::new("Hits", Quantity::Share));
            for policy in ["lru", "arc", "two-list", default_policy(), "belady"] {
                let mut points: Vec<(f64, f64)> =
                    rows.iter().map(|cell| (1.0 / cell.part as f64, cell.hit_ratio(policy))).collect();
                points.sort_by(|one, other| one.0.total_cmp(&other.0));
                plot = plot.with(Series::new(policy, Shape::Line, points));
            }
            plot
        },
    )
}

/// The cells in which the default is behind by more than it promises.
fn promise(cells: &[Cell]) -> Vec<String> {
    let mut behind: Vec<String> = Vec::new();
    for cell in cells {
        if let Some(shortfall) = cell.shortfall() {
            behind.push(format!("{} at 1/{} by {:.1}", cell.generator, cell.part, 100.0 * shortfall));
        }
    }
    let default = default_policy();
    let count = cells.len() - behind.len();
    let mut says = vec![format!(
        "In {count} of {} rows {default} has at least as many hits as the best of two-list, s3-fifo and sieve, less one point.",
        cells.len()
    )];
    if !behind.is_empty() {
        says.push(format!("It is further behind, in points: {}.", behind.join("; ")));
    }
    let scans: Vec<&Cell> = cells.iter().filter(|cell| cell.scans).collect();
    let above = scans.iter().filter(|cell| cell.hit_ratio(default) > cell.hit_ratio("two-list")).count();
    if !scans.is_empty() {
        says.push(format!("Where most pages are used once it is above two-list in {above} of {} rows.", scans.len()));
    }
    says
}

/// Groups of cases with the same touches, device and cache, each in the order of [`ENGINES`].
fn by_load(cases: &[Case]) -> impl Iterator<Item = &[Case]> {
    cases.chunks(ENGINES.len())
}

fn of(load: &[Case], kind: EvictionKind) -> Cost {
    load.iter().find(|case| case.kind == kind).map(|case| case.cost).unwrap_or_default()
}

fn change(load: &[Case], kind: EvictionKind, figure: fn(&Cost) -> f64) -> f64 {
    let (own, base) = (figure(&of(load, kind)), figure(&of(load, BASE)));
    if base > 0.0 { own / base - 1.0 } else { 0.0 }
}

fn mean_change(cases: &[Case], kind: EvictionKind, figure: fn(&Cost) -> f64) -> Spread {
    Spread::of(by_load(cases).map(|load| -change(load, kind, figure)))
}

fn devices_said(cases: &[Case]) -> String {
    let default = EvictionKind::default();
    let (device, client) =
        (mean_change(cases, default, |cost| cost.device_us), mean_change(cases, default, |cost| cost.client_us));
    format!(
        "Against two-list, {} saves {:.1} % of the device's time for a request in the mean of {} loads (worst: {:.1} %), \
         and {:.1} % of the clients' (worst: {:.1} %).",
        default.name(),
        100.0 * device.mean,
        by_load(cases).count(),
        100.0 * device.worst,
        100.0 * client.mean,
        100.0 * client.worst,
    )
}

fn device_table(cases: &[Case]) -> Table {
    let mut columns = vec![("device", Align::Left), ("touches", Align::Left), ("cache", Align::Right)];
    columns.extend(ENGINES.iter().map(|kind| (kind.name(), Align::Right)));
    let mut table =
        Table::new("Device time of a request, in µs, and its change against two-list", &columns).named_by(3);
    for load in by_load(cases) {
        let cells = ENGINES.map(|kind| {
            let text = format!("{:.1}", of(load, kind).device_us);
            if kind == BASE {
                text
            } else {
                format!("{text}  {}", units::change(100.0 * change(load, kind, |cost| cost.device_us)))
            }
        });
        let [first, ..] = load else { continue };
        let name = [first.device.clone(), first.generator.to_owned(), format!("1/{}", first.part)];
        table.row(name.into_iter().chain(cells));
    }
    table.note(
        "Time in which the device had a request: misses, readahead, and everything that was dirtied written back.",
    );
    table
}

fn waits_table(cases: &[Case]) -> Table {
    let columns = [
        ("policy", Align::Left),
        ("device time", Align::Right),
        ("clients' time", Align::Right),
        ("held back, µs", Align::Right),
        ("written per dirtied", Align::Right),
        ("hits", Align::Right),
    ];
    let mut table = Table::new("All loads on devices together", &columns);
    for kind in ENGINES {
        let costs: Vec<Cost> = by_load(cases).map(|load| of(load, kind)).collect();
        let mean = |figure: fn(&Cost) -> f64, kept: fn(&Cost) -> bool| {
            let figures: Vec<f64> = costs.iter().filter(|cost| kept(cost)).map(figure).collect();
            figures.iter().sum::<f64>() / figures.len().max(1) as f64
        };
        let saved = |figure| units::change(-100.0 * mean_change(cases, kind, figure).mean);
        table.row([
            kind.name().to_owned(),
            saved(|cost| cost.device_us),
            saved(|cost| cost.client_us),
            format!("{:.2}", mean(|cost| cost.held_back_us, |_| true)),
            format!("{:.3}", mean(|cost| cost.rewritten, |cost| cost.rewritten > 0.0)),
            format!("{:.1} %", 100.0 * mean(|cost| cost.hit_ratio, |_| true)),
        ]);
    }
    table
        .note("Times: mean of the changes against two-list. Held back: writers by the flush budget, for each request.");
    table
}

fn device_bars(cases: &[Case]) -> Bars {
    let others = ENGINES.iter().filter(|kind| **kind != BASE);
    let names: Vec<&str> = others.clone().map(|kind| kind.name()).collect();
    let mut bars =
        Bars::new("Device time of a request, against two-list", "Of two-list's device time", Quantity::Share, names)
            .note("Mean of all generators and caches; less is better.");
    for cases in cases.chunk_by(|one, other| one.device == other.device) {
        let bar = |kind: &EvictionKind| {
            let mean = mean_change(cases, *kind, |cost| cost.device_us).mean;
            Some(Bar::new(1.0 - mean))
        };
        bars = bars.group(cases[0].device.as_str(), others.clone().map(bar).collect());
    }
    bars
}

#[cfg(test)]
mod tests;
