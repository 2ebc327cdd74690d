//! Rows as lines of text that fit.
//!
//! Owns: columns, their choice by width, cutting and filling.
//! Does not own: the values (`rows`), the place of lines (`screen`, `lines`).
//! Invariants: a line is never wider than requested, however long names are. The first column is always there, and the
//! most important of the others are dropped last. A name is cut only if the line has no room for it.

use afflux_report::terminal::sparkline;
use ratatui::text::Span;

use super::rows::{ClientRow, DeviceRow, FileRow, Load, Rows, WaitRow};
use afflux_report::output::shown;
use afflux_report::units;

/// Between two columns.
const GAP: usize = 2;

/// How a column is filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fill {
    /// A name: cut at its end.
    Name,
    /// A path: cut at its beginning.
    Path,
    /// A figure, to the right.
    Figure,
    /// A curve, as long as there is room.
    Curve,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    title: &'static str,
    fill: Fill,
    width: usize,
    /// Width if there is room.
    width_max: usize,
    /// Columns with a smaller number are dropped later.
    rank: u8,
}

const fn name(title: &'static str, width: usize, width_max: usize, rank: u8) -> Column {
    Column { title, fill: Fill::Name, width, width_max, rank }
}

const fn path(title: &'static str, width: usize, rank: u8) -> Column {
    Column { title, fill: Fill::Path, width, width_max: 60, rank }
}

const fn figure(title: &'static str, width: usize, rank: u8) -> Column {
    Column { title, fill: Fill::Figure, width, width_max: width, rank }
}

const fn curve(title: &'static str, width: usize, rank: u8) -> Column {
    Column { title, fill: Fill::Curve, width, width_max: 120, rank }
}

const DEVICES: [Column; 11] = [
    name("device", 8, 16, 0),
    figure("owes", 8, 1),
    figure("budget", 8, 4),
    figure("writes", 9, 2),
    figure("reads", 9, 5),
    figure("queue", 5, 3),
    figure("writers wait", 12, 8),
    figure("dirty", 8, 6),
    curve("owed of budget", 15, 7),
    curve("writes of its best", 18, 9),
    STATE,
];

/// Only for devices of which one has a state; then it is more important than all but the first columns.
const STATE: Column = name("state", 26, 48, 3);

const CLIENTS: [Column; 8] = [
    name("client", 10, 40, 0),
    figure("sent us", 9, 1),
    figure("got", 9, 4),
    figure("paused", 8, 2),
    figure("synced", 8, 3),
    figure("read", 8, 5),
    figure("for memory", 10, 7),
    figure("wait now", 8, 6),
];

const FILES: [Column; 7] = [
    path("file", 10, 0),
    figure("written", 9, 1),
    figure("read", 9, 4),
    figure("paused", 8, 2),
    figure("synced", 8, 3),
    figure("wait now", 8, 6),
    name("device", 6, 12, 5),
];

const WAITS: [Column; 7] = [
    figure("longest", 8, 0),
    name("waited for", 10, 32, 1),
    figure("times", 5, 3),
    figure("ended", 9, 4),
    name("device", 6, 12, 5),
    name("client", 10, 24, 6),
    path("file", 8, 2),
];

/// The contents of a cell.
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

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A title, and a line for each row with the row's load.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) title: String,
    pub(super) lines: Vec<(String, Load)>,
}

impl Table {
    /// Keeps the title and as many lines as fit; a last line counts the missing ones.
    pub(super) fn within(mut self, rows: usize) -> Self {
        if self.lines.len() > rows {
            let left = self.lines.len() - rows.saturating_sub(1);
            self.lines.truncate(rows.saturating_sub(1));
            if rows > 1 {
                self.lines.push((format!("+{left} more"), Load::Calm));
            }
        }
        self
    }
}

pub(super) fn devices(rows: &Rows, width: usize) -> Table {
    let has_state = rows.devices.iter().any(|row| !state(row).is_empty());
    let columns = if has_state { &DEVICES[..] } else { &DEVICES[..DEVICES.len() - 1] };
    table(columns, rows.devices.iter().map(|row| (device(row), row.load())).collect(), width)
}

pub(super) fn clients(rows: &Rows, width: usize) -> Table {
    table(&CLIENTS, rows.clients.iter().map(|row| (client(row), row.load())).collect(), width)
}

pub(super) fn files(rows: &Rows, width: usize) -> Table {
    table(&FILES, rows.files.iter().map(|row| (file(row), row.load())).collect(), width)
}

pub(super) fn waits(rows: &Rows, width: usize) -> Table {
    table(&WAITS, rows.waits.iter().map(|row| (wait(row), row.load())).collect(), width)
}

/// The figures of the whole server, on one line.
pub(super) fn summary(rows: &Rows, width: usize) -> String {
    let cache = &rows.cache;
    let hit = units::share(cache.hit_pages, cache.hit_pages + cache.miss_pages);
    let (used, all) = (units::memory(cache.used_bytes), units::memory(cache.cache_bytes));
    let parts = [
        shown(&rows.listen),
        format!("{} calls/s", units::count(rows.calls_per_s)),
        format!("dirty {}", units::memory(cache.dirty_bytes)),
        format!("cache {used} of {all}"),
        format!("hit {hit}"),
        format!("connections {}", units::count(rows.connections)),
        format!("up {}", units::latency(rows.uptime_ns)),
        format!("policy {}", shown(&rows.policy)),
    ];
    let mut line = String::new();
    for part in parts {
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

fn device(row: &DeviceRow) -> Vec<Cell> {
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), units::latency);
    let owes = match (row.away_ns, row.stalled_ns) {
        (Some(_), _) => "away".to_owned(),
        (None, Some(_)) => "hangs".to_owned(),
        (None, None) => time(row.owed_ns),
    };
    vec![
        shown(&row.name).into(),
        owes.into(),
        time(row.budget_ns).into(),
        rate(row.written_bytes_per_s),
        rate(row.read_bytes_per_s),
        count(row.in_flight_requests.into()),
        count(row.writers_waiting.into()),
        units::memory(row.dirty_bytes).into(),
        Cell::Curve(row.owed_per_mille.clone()),
        Cell::Curve(written(row)),
        state(row).into(),
    ]
}

/// Bytes written in each second, as a share of the measured speed, or of the best second if that is higher.
fn written(row: &DeviceRow) -> Vec<u64> {
    let best = row.written.iter().copied().chain(row.write_bandwidth_bytes_per_s).max().unwrap_or(0);
    let share = |bytes: &u64| (u128::from(*bytes) * 1_000).checked_div(u128::from(best)).unwrap_or(0) as u64;
    row.written.iter().map(share).collect()
}

fn state(row: &DeviceRow) -> String {
    let mut parts = Vec::new();
    if let Some(ns) = row.stalled_ns.filter(|_| row.away_ns.is_none()) {
        let refuses = if row.refuses { ", writers are refused" } else { "" };
        parts.push(format!("nothing done for {}{refuses}", units::latency(ns)));
    }
    if let Some(ns) = row.away_ns {
        parts.push(format!("away for {}, writers wait", units::latency(ns)));
    }
    if let Some(requests) = row.store_requests_per_s {
        parts.push(format!("{} requests/s", units::count(requests)));
    }
    if row.files_failed > 0 {
        parts.push(format!("{} files could not be written", units::count(row.files_failed.into())));
    }
    parts.join("; ")
}

fn client(row: &ClientRow) -> Vec<Cell> {
    let ClientRow { waited: it, .. } = row;
    vec![
        shown(&row.name).into(),
        rate(row.received_bytes_per_s),
        rate(row.sent_bytes_per_s),
        waited(it.throttle_ns_per_s),
        waited(it.sync_ns_per_s),
        waited(it.read_ns_per_s),
        waited(it.reclaim_ns_per_s),
        count(row.waiting),
    ]
}

fn file(row: &FileRow) -> Vec<Cell> {
    vec![
        shown(&row.name).into(),
        rate(row.written_bytes_per_s),
        rate(row.read_bytes_per_s),
        waited(row.paused_ns_per_s),
        waited(row.synced_ns_per_s),
        count(row.waiting),
        shown(&row.device).into(),
    ]
}

fn wait(row: &WaitRow) -> Vec<Cell> {
    let ended = row.ended_ns_ago.map_or_else(|| "waits".to_owned(), |ns| format!("-{}", ago(ns)));
    let name = |name: &Option<String>| shown(name.as_deref().unwrap_or("-"));
    vec![
        units::latency(row.longest_ns).into(),
        shown(&row.waits_for).into(),
        count(row.times),
        ended.into(),
        shown(&row.device).into(),
        name(&row.client).into(),
        name(&row.file).into(),
    ]
}

/// To a tenth of a second.
fn ago(ns: u64) -> String {
    format!("{}.{} s", ns / 1_000_000_000, ns / 100_000_000 % 10)
}

fn table(columns: &[Column], rows: Vec<(Vec<Cell>, Load)>, width: usize) -> Table {
    let widest = |at: usize| rows.iter().filter_map(|(cells, _)| cells.get(at)).map(Cell::wide).max().unwrap_or(0);
    let contents: Vec<usize> = (0..columns.len()).map(widest).collect();
    let places = places(columns, &contents, width);
    let title = columns.iter().map(|column| Cell::Text(column.title.to_owned())).collect();
    Table {
        title: line(columns, &places, title),
        lines: rows.into_iter().map(|(row, load)| (line(columns, &places, row), load)).collect(),
    }
}

/// The width of each column; none for one that is left out. `contents` are the widths of the columns' widest cells.
fn places(columns: &[Column], contents: &[usize], width: usize) -> Vec<Option<usize>> {
    let mut places = vec![None; columns.len()];
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.sort_by_key(|at| columns[*at].rank);
    let mut left = width;
    for at in by_rank {
        let first = left == width;
        let wanted = columns[at].width + if first { 0 } else { GAP };
        if wanted > left && !first {
            // A less important column may be narrower, but does not take its place: columns come and go in one order.
            break;
        }
        places[at] = Some(columns[at].width.min(width));
        left = left.saturating_sub(wanted);
    }
    let mut grow = |fill: Fill, wanted: &dyn Fn(usize, &Column) -> usize| {
        for at in (0..columns.len()).filter(|at| columns[*at].fill == fill) {
            if let Some(place) = &mut places[at] {
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
    places
}

fn line(columns: &[Column], places: &[Option<usize>], cells: Vec<Cell>) -> String {
    let mut line = String::new();
    for ((column, place), cell) in columns.iter().zip(places).zip(cells) {
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
    let cut = if wide(text) <= width { text.to_owned() } else { cut(text, width, fill) };
    let space = " ".repeat(width.saturating_sub(wide(&cut)));
    match fill {
        Fill::Figure => format!("{space}{cut}"),
        Fill::Name | Fill::Path | Fill::Curve => format!("{cut}{space}"),
    }
}

fn cut(text: &str, width: usize, fill: Fill) -> String {
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let mut kept = Vec::new();
    let mut taken = 0;
    let letters: Vec<char> = if fill == Fill::Path { text.chars().rev().collect() } else { text.chars().collect() };
    for letter in letters {
        taken += wide(letter.encode_utf8(&mut [0; 4]));
        if taken > room {
            break;
        }
        kept.push(letter);
    }
    match fill {
        Fill::Path => format!("…{}", kept.iter().rev().collect::<String>()),
        _ => format!("{}…", kept.iter().collect::<String>()),
    }
}
