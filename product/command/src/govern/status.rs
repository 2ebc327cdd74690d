//! `afflux govern --status`: each device, the time it may owe, and the time it owes.
//!
//! Owns: the table, and its form where a table does not fit.
//! Does not own: the figures: a governor's journal and the host have them.
//! Invariants: it only reads, and needs no governor; an unknown value is a dash.

use std::path::Path;
use std::time::Duration;

use afflux_govern::{BdiKind, Host, Journal, JournalEntry, MachineLimits, Values, running};
use afflux_report::terminal::Terminal;
use afflux_report::{Align, Table};
use serde::Serialize;
use serde_json::json;

use super::words::values_text;
use crate::args;
use crate::watch::{self, Watch};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::{output, units};

/// Fewest columns of a terminal for a table; a narrower one would break its lines.
const TABLE_COLUMNS: usize = 90;
const COLUMNS: [(&str, Align); 8] = [
    ("device", Align::Left),
    ("model", Align::Left),
    ("speed", Align::Right),
    ("budget", Align::Right),
    ("limit", Align::Right),
    ("dirty now", Align::Right),
    ("to write it", Align::Right),
    ("", Align::Left),
];
/// Longest model name in the table, in letters.
const MODEL_MAX: usize = 24;

/// A device's line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    pub(super) bdi: String,
    pub(super) device: String,
    pub(super) model: Option<String>,
    pub(super) bytes_per_second: Option<u64>,
    pub(super) budget_ns: Option<u64>,
    pub(super) limit_bytes: Option<u64>,
    pub(super) dirty_bytes: Option<u64>,
    pub(super) remark: String,
}

pub(super) fn run(args: &args::Govern, host: &Host, directory: &Path) -> Outcome {
    let watch = Watch { again: args.watch, redraws: !args.json, pause: watch::EVERY };
    watch.show(|| text(args, host, directory))
}

fn text(args: &args::Govern, host: &Host, directory: &Path) -> Outcome<String> {
    let journal = Journal::read(host, directory).map_err(Failure::failed)?;
    let machine = host.machine().map_err(Failure::failed)?;
    let mut lines = Vec::new();
    for bdi in host.names().map_err(Failure::failed)? {
        lines.extend(line(host, &bdi, journal.devices.get(&bdi), machine));
    }
    if args.json {
        return Ok(lines.iter().map(|line| object(line) + "\n").collect());
    }
    let first = match (running(directory), journal.is_in_force()) {
        (Some(pid), _) => format!("A governor runs (process {pid}).\n"),
        (None, true) => {
            "No governor runs; an earlier one's limits are still in force (afflux govern --restore puts them back).\n"
                .to_owned()
        }
        (None, false) => "No governor runs.\n".to_owned(),
    };
    let width = console::Term::stdout().size_checked().map_or(usize::MAX, |(_, columns)| usize::from(columns));
    Ok(first + &shown(&lines, width, Terminal::of_stdout()))
}

fn line(host: &Host, bdi: &str, entry: Option<&JournalEntry>, machine: MachineLimits) -> Option<Line> {
    let disk = match host.kind(bdi)? {
        BdiKind::Alone { name, why } => {
            // Loop devices and drives without a medium are of no interest.
            let line = Line { bdi: bdi.to_owned(), device: name, remark: why.to_owned(), ..Line::default() };
            return (!why.starts_with("no medium") && !why.starts_with("memory")).then_some(line);
        }
        BdiKind::Disk(disk) => disk,
    };
    let values = host.values(bdi).ok().flatten();
    let held = values.filter(|values| *values != Values::KERNELS);
    let is_ours = entry.is_some_and(|entry| held.is_some_and(|held| entry.ours_ppm.contains(&held.ratio_ppm)));
    let remark = match (held, is_ours) {
        (Some(values), false) => format!("set by another program: {}", values_text(values)),
        (None, _) if entry.is_some_and(|entry| entry.bytes_per_second.is_some()) => "fast enough".to_owned(),
        _ => String::new(),
    };
    let limit = |values: Values| u128::from(values.ratio_ppm) * u128::from(machine.dirty_bytes) / 1_000_000;
    Some(Line {
        bdi: bdi.to_owned(),
        device: disk.name,
        model: disk.model,
        bytes_per_second: entry.and_then(|entry| entry.bytes_per_second),
        budget_ns: entry.map(|entry| entry.budget_ns),
        limit_bytes: held.filter(|held| held.strict).map(|held| limit(held) as u64),
        dirty_bytes: host.dirty_bytes(bdi),
        remark,
    })
}

impl Line {
    /// Time that writing its dirty bytes takes.
    fn drain_ns(&self) -> Option<u64> {
        let (dirty, speed) = (self.dirty_bytes?, self.bytes_per_second?.max(1));
        u64::try_from(u128::from(dirty) * 1_000_000_000 / u128::from(speed)).ok()
    }

    fn cells(&self) -> [String; 8] {
        let dash = || "-".to_owned();
        let time = |ns: Option<u64>| ns.map_or_else(dash, |ns| units::time(Duration::from_nanos(ns)));
        let data = |bytes: Option<u64>| bytes.map_or_else(dash, units::data);
        let model = self.model.as_ref().map_or_else(dash, |model| {
            let model = output::shown(model);
            let cut: String = model.chars().take(MODEL_MAX).collect();
            if cut.len() < model.len() { format!("{}…", cut.trim_end()) } else { cut }
        });
        [
            output::shown(&self.device),
            model,
            self.bytes_per_second.map_or_else(dash, |speed| units::rate(speed, Duration::from_secs(1))),
            time(self.budget_ns),
            data(self.limit_bytes),
            data(self.dirty_bytes),
            time(self.drain_ns()),
            self.remark.clone(),
        ]
    }
}

/// A table, or, where it does not fit, a few lines for each device.
pub(super) fn shown(lines: &[Line], width: usize, terminal: Terminal) -> String {
    if width >= TABLE_COLUMNS {
        let mut table = Table::new("", &COLUMNS);
        lines.iter().for_each(|line| table.row(line.cells()));
        return table.text(terminal);
    }
    let mut text = String::new();
    for line in lines {
        let [device, rest @ ..] = line.cells();
        text.push_str(&wrapped(&device, width));
        for ((title, _), cell) in COLUMNS[1..].iter().zip(rest).filter(|(_, cell)| !cell.is_empty() && cell != "-") {
            let said = if title.is_empty() { cell } else { format!("{title} {cell}") };
            text.push_str(&wrapped(&format!(" {said}"), width));
        }
    }
    text
}

/// Lines of at most `width` letters, broken between words, and within a word that is longer than a line.
fn wrapped(text: &str, width: usize) -> String {
    let indent = if text.starts_with(' ') { " " } else { "" };
    let room = width.max(8) - indent.len();
    let mut lines = Vec::<Vec<char>>::new();
    for word in text.split_whitespace() {
        let word: Vec<char> = word.chars().collect();
        for part in word.chunks(room) {
            match lines.last_mut() {
                Some(line) if part.len() == word.len() && line.len() + 1 + part.len() <= room => {
                    line.push(' ');
                    line.extend(part);
                }
                _ => lines.push(part.to_vec()),
            }
        }
    }
    lines.into_iter().map(|line| format!("{indent}{}\n", line.into_iter().collect::<String>())).collect()
}

fn object(line: &Line) -> String {
    let mut object = json!(line);
    object["drain_ns"] = json!(line.drain_ns());
    object.to_string()
}
