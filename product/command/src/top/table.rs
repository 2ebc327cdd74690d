//! Rows as lines of text that fit.
//!
//! Owns: columns, their choice by width, cutting and filling.
//! Does not own: the values (`rows`), the position of lines on a screen (`screen`).
//! Invariants: a line is never wider than requested, however long names are. The first column is always there, and the
//! most important of the others are dropped last. A name is cut only if the line has no space for it.

use afflux_report::terminal::sparkline;
use ratatui::text::Span;
use unicode_truncate::{Alignment, UnicodeTruncateStr};

use super::rows::{Attention, ClientRow, DeviceRow, FileRow, Rows, WaitRow};
use afflux_engine::DeviceStatus;
use afflux_report::output::shown;
use afflux_report::units;

const GAP: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fill {
    /// A name: cut at its end.
    Name,
    /// A path: cut at its beginning.
    Path,
    /// A figure, to the right.
    Figure,
    /// A curve, as long as there is space.
    Curve,
}

/// A column of the rows `R`.
struct Column<R> {
    title: &'static str,
    fill: Fill,
    width: usize,
    /// Width if there is space.
    width_max: usize,
    /// Columns with a smaller number are dropped later.
    rank: u8,
    cell: fn(&R) -> Cell,
}

const fn name<R>(title: &'static str, width: usize, width_max: usize, rank: u8, cell: fn(&R) -> Cell) -> Column<R> {
    Column { title, fill: Fill::Name, width, width_max, rank, cell }
}

const fn path<R>(title: &'static str, width: usize, rank: u8, cell: fn(&R) -> Cell) -> Column<R> {
    Column { title, fill: Fill::Path, width, width_max: 60, rank, cell }
}

const fn figure<R>(title: &'static str, width: usize, rank: u8, cell: fn(&R) -> Cell) -> Column<R> {
    Column { title, fill: Fill::Figure, width, width_max: width, rank, cell }
}

const fn curve<R>(title: &'static str, width: usize, rank: u8, cell: fn(&R) -> Cell) -> Column<R> {
    Column { title, fill: Fill::Curve, width, width_max: 120, rank, cell }
}

const DEVICES: [Column<DeviceRow>; 11] = [
    name("device", 8, 16, 0, |row| text(&row.status.name)),
    figure("owes", 8, 1, owes),
    figure("budget", 8, 4, |row| time(row.budget_ns)),
    figure("writes", 9, 2, |row| rate(row.written_bytes_per_s)),
    figure("reads", 9, 5, |row| rate(row.read_bytes_per_s)),
    figure("queue", 5, 3, |row| count(row.status.in_flight.into())),
    figure("writers wait", 12, 8, |row| count(row.status.writers_waiting.into())),
    figure("dirty", 8, 6, |row| Cell::Text(units::memory(row.status.dirty_bytes))),
    curve("owed of budget", 15, 7, |row| Cell::Curve(row.owed_per_mille.clone())),
    curve("writes of its best", 18, 9, |row| Cell::Curve(written(row))),
    // Only if a device has a state; then it is more important than all but the first columns.
    name("state", 28, 48, 3, |row| Cell::Text(state(row))),
];

const CLIENTS: [Column<ClientRow>; 8] = [
    name("client", 10, 40, 0, |row| text(&row.name)),
    figure("sent us", 9, 1, |row| rate(row.received_bytes_per_s)),
    figure("got", 9, 4, |row| rate(row.sent_bytes_per_s)),
    figure("paused", 8, 2, |row| waited(row.waited.throttle)),
    figure("synced", 8, 3, |row| waited(row.waited.sync)),
    figure("read", 8, 5, |row| waited(row.waited.read)),
    figure("for memory", 10, 7, |row| waited(row.waited.reclaim)),
    figure("wait now", 8, 6, |row| count(row.waiting)),
];

const FILES: [Column<FileRow>; 7] = [
    path("file", 10, 0, |row| text(&row.name)),
    figure("written", 9, 1, |row| rate(row.written_bytes_per_s)),
    figure("read", 9, 4, |row| rate(row.read_bytes_per_s)),
    figure("paused", 8, 2, |row| waited(row.paused_ns_per_s)),
    figure("synced", 8, 3, |row| waited(row.synced_ns_per_s)),
    figure("wait now", 8, 6, |row| count(row.waiting)),
    name("device", 6, 12, 5, |row| text(&row.device)),
];

const WAITS: [Column<WaitRow>; 7] = [
    figure("longest", 8, 0, |row| Cell::Text(units::latency(row.longest_ns))),
    name("waited for", 10, 32, 1, |row| text(&row.waits_for)),
    figure("times", 5, 3, |row| count(row.times)),
    figure("ended", 9, 4, |row| row.ended_ns_ago.map_or_else(|| text("waits"), ago)),
    name("device", 6, 12, 5, |row| text(&row.device)),
    name("client", 10, 24, 6, |row| text(row.client.as_deref().unwrap_or("-"))),
    path("file", 8, 2, |row| text(row.file.as_deref().unwrap_or("-"))),
];

enum Cell {
    Text(String),
    /// In thousandths, one value a second.
    Curve(Vec<u64>),
}

impl Cell {
    /// The width of its text; a curve fits any width.
    fn wide(&self) -> usize {
        match self {
            Self::Text(text) => wide(text),
            Self::Curve(_) => 0,
        }
    }
}

/// A title, and a line for each row with the row's load.
#[derive(Debug, Default)]
pub(super) struct RowTable {
    pub(super) title: String,
    pub(super) lines: Vec<(String, Attention)>,
}

impl RowTable {
    /// Retains the title and as many lines as fit; a last line counts the missing ones.
    pub(super) fn within(mut self, rows: usize) -> Self {
        if self.lines.len() > rows {
            let left = self.lines.len() - rows.saturating_sub(1);
            self.lines.truncate(rows.saturating_sub(1));
            if rows > 1 {
                self.lines.push((format!("+{left} more"), Attention::Calm));
            }
        }
        self
    }
}

/// All tables as plain lines, at most `width` columns wide and with `rows_max` rows each. One without rows is omitted.
pub(super) fn plain(rows: &Rows, width: usize, rows_max: usize) -> String {
    let mut text = format!("{}\n", summary(rows, width));
    for table in all(rows, width).into_iter().filter(|table| !table.lines.is_empty()) {
        let RowTable { title, lines } = table.within(rows_max);
        text.push_str(&format!("\n{title}\n"));
        lines.iter().for_each(|(line, _)| text.push_str(&format!("{line}\n")));
    }
    text.push('\n');
    text
}

/// The tables, the most important one first.
pub(super) fn all(rows: &Rows, width: usize) -> [RowTable; 4] {
    [
        devices(rows, width),
        table(&CLIENTS, &rows.clients, ClientRow::load, width),
        table(&FILES, &rows.files, FileRow::load, width),
        table(&WAITS, &rows.waits, WaitRow::load, width),
    ]
}

fn devices(rows: &Rows, width: usize) -> RowTable {
    let has_state = rows.devices.iter().any(|row| !state(row).is_empty());
    let columns = if has_state { &DEVICES[..] } else { &DEVICES[..DEVICES.len() - 1] };
    table(columns, &rows.devices, DeviceRow::load, width)
}

/// The figures of the whole server, on one line.
pub(super) fn summary(rows: &Rows, width: usize) -> String {
    let cache = &rows.cache;
    let hit = units::percent(cache.hit_pages, cache.hit_pages + cache.miss_pages);
    let (used, all) = (units::memory(cache.used_bytes), units::memory(cache.cache_bytes));
    let held = match (rows.open_files, rows.locked_ranges, rows.delegations) {
        (0, 0, 0) => String::new(),
        (open, locked, 0) => format!("open {}, locked {}", units::count(open), units::count(locked)),
        (open, locked, delegated) => {
            let counts = [open, locked, delegated].map(units::count);
            format!("open {}, locked {}, delegated {}", counts[0], counts[1], counts[2])
        }
    };
    let parts = [
        shown(&rows.listen),
        format!("{} calls/s", units::count(rows.calls_per_s)),
        format!("dirty {}", units::memory(cache.dirty_bytes)),
        format!("cache {used} of {all}"),
        format!("hit {hit}"),
        format!("connections {}", units::count(rows.connections)),
        held,
        format!("up {}", units::latency(rows.uptime_ns)),
        format!("policy {}", shown(&rows.policy)),
    ];
    let mut line = String::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let gap = if line.is_empty() { "" } else { "   " };
        if wide(&line) + gap.len() + wide(&part) <= width {
            line = format!("{line}{gap}{part}");
        }
    }
    line
}

/// A rate per second; an empty cell for zero.
fn rate(bytes: u64) -> Cell {
    let second = std::time::Duration::from_secs(1);
    Cell::Text(if bytes == 0 { "-".to_owned() } else { units::rate(bytes, second) })
}

/// Time waited in each second.
fn waited(ns: u64) -> Cell {
    Cell::Text(if ns == 0 { "-".to_owned() } else { units::latency(ns) })
}

fn count(number: u64) -> Cell {
    Cell::Text(if number == 0 { "-".to_owned() } else { units::count(number) })
}

fn time(ns: Option<u64>) -> Cell {
    Cell::Text(ns.map_or_else(|| "-".to_owned(), units::latency))
}

/// The time that the device owes, or why it is not the point.
fn owes(row: &DeviceRow) -> Cell {
    match (row.status.away_ns, row.status.stalled_ns.or(row.status.names_stalled_ns)) {
        (Some(_), _) => text("away"),
        (None, Some(_)) => text("hangs"),
        (None, None) => time(row.owed_ns),
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(shown(text))
}

/// To a tenth of a second.
fn ago(ns: u64) -> Cell {
    Cell::Text(format!("-{}.{} s", ns / 1_000_000_000, ns / 100_000_000 % 10))
}

/// Bytes written in each second, as a fraction of the measured speed, or of the best second if that is higher.
fn written(row: &DeviceRow) -> Vec<u64> {
    let best = row.written.iter().copied().chain(row.status.write_bandwidth_bytes_per_s).max().unwrap_or(0);
    let share = |bytes: &u64| (u128::from(*bytes) * 1_000).checked_div(u128::from(best)).unwrap_or(0) as u64;
    row.written.iter().map(share).collect()
}

fn state(row: &DeviceRow) -> String {
    let mut parts = Vec::new();
    let DeviceStatus { stalled_ns, names_stalled_ns, away_ns, refuses, files_failed, .. } = row.status;
    if let Some(ns) = stalled_ns.filter(|_| away_ns.is_none()) {
        let refuses = if refuses { ", writers are refused" } else { "" };
        parts.push(format!("nothing done for {}{refuses}", units::latency(ns)));
    }
    if let Some(ns) = names_stalled_ns {
        parts.push(format!("names wait for {}", units::latency(ns)));
    }
    if let Some(ns) = away_ns {
        parts.push(format!("away for {}, writers wait", units::latency(ns)));
    }
    if let Some(requests) = row.store_requests_per_s {
        parts.push(format!("{} requests/s", units::count(requests)));
    }
    if let Some(percent) = row.disk_cache_percent {
        parts.push(format!("disk cache {percent} %"));
    }
    if files_failed > 0 {
        parts.push(format!("{} could not be written", units::plural(files_failed.into(), "file")));
    }
    parts.join("; ")
}

fn table<R>(columns: &[Column<R>], rows: &[R], load: fn(&R) -> Attention, width: usize) -> RowTable {
    let cells = |row| columns.iter().map(|column| (column.cell)(row)).collect::<Vec<_>>();
    let rows: Vec<_> = rows.iter().map(|row| (cells(row), load(row))).collect();
    let widest = |at: usize| rows.iter().filter_map(|(cells, _)| cells.get(at)).map(Cell::wide).max().unwrap_or(0);
    let contents: Vec<usize> = (0..columns.len()).map(widest).collect();
    let column_widths = column_widths(columns, &contents, width);
    let title = columns.iter().map(|column| text(column.title)).collect();
    RowTable {
        title: line(columns, &column_widths, title),
        lines: rows.into_iter().map(|(row, load)| (line(columns, &column_widths, row), load)).collect(),
    }
}

/// The width of each column; none for one that is omitted. `contents` are the widths of the columns' widest cells.
fn column_widths<R>(columns: &[Column<R>], contents: &[usize], width: usize) -> Vec<Option<usize>> {
    let mut column_widths = vec![None; columns.len()];
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.sort_by_key(|at| columns[*at].rank);
    let mut left = width;
    for at in by_rank {
        let first = left == width;
        let wanted = columns[at].width + if first { 0 } else { GAP };
        if wanted > left && !first {
            // A less important column may be narrower, but does not replace it: columns come and go in one order.
            break;
        }
        column_widths[at] = Some(columns[at].width.min(width));
        left = left.saturating_sub(wanted);
    }
    let mut grow = |fill: Fill, wanted: &dyn Fn(usize, &Column<R>) -> usize| {
        for at in (0..columns.len()).filter(|at| columns[*at].fill == fill) {
            if let Some(place) = &mut column_widths[at] {
                let more = left.min(wanted(at, &columns[at]).saturating_sub(*place));
                *place += more;
                left -= more;
            }
        }
    };
    // Paths first, since two paths often have the same beginning. The usual widths are there without need, so that
    // columns rarely move; beyond them a column is as wide as its widest cell.
    for fill in [Fill::Path, Fill::Name] {
        grow(fill, &|_, column| column.width_max);
    }
    for fill in [Fill::Path, Fill::Name] {
        grow(fill, &|at, _| contents[at]);
    }
    grow(Fill::Curve, &|_, column| column.width_max);
    column_widths
}

fn line<R>(columns: &[Column<R>], column_widths: &[Option<usize>], cells: Vec<Cell>) -> String {
    let mut line = String::new();
    for ((column, place), cell) in columns.iter().zip(column_widths).zip(cells) {
        let Some(width) = *place else { continue };
        if !line.is_empty() {
            line.push_str(&" ".repeat(GAP));
        }
        line.push_str(&match cell {
            Cell::Text(text) => fit(&text, width, column.fill),
            Cell::Curve(values) => {
                let values: Vec<f64> = values.iter().rev().take(width).rev().map(|value| *value as f64).collect();
                fit(&sparkline(&values, 1_000.0, width), width, Fill::Figure)
            }
        });
    }
    line.trim_end().to_owned()
}

/// The text's width in columns of a terminal.
fn wide(text: &str) -> usize {
    Span::raw(text).width()
}

/// The text in exactly `width` columns.
fn fit(text: &str, width: usize, fill: Fill) -> String {
    let fitting = match (width.checked_sub(1), fill) {
        _ if wide(text) <= width => text.to_owned(),
        (None, _) => String::new(),
        (Some(room), Fill::Path) => format!("…{}", text.unicode_truncate_start(room).0),
        (Some(room), _) => format!("{}…", text.unicode_truncate(room).0),
    };
    let side = if fill == Fill::Figure { Alignment::Right } else { Alignment::Left };
    fitting.unicode_pad(width, side, false).into_owned()
}
