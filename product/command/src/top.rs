//! `afflux top`: the continuous view of a running server.
//!
//! Owns: the choice among three forms: a full screen, plain lines, JSON.
//! Does not own: asking (`follow`), rates and sums (`model`), the picture (`screen`), the terminal (`terminal`).
//! Invariants: all three forms, and `stat`, show the same rows. The server gets only the requests of `stat` and `trace`.

mod follow;
mod keys;
mod lines;
mod model;
mod rows;
mod screen;
mod table;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{IsTerminal, Write};

use crate::args;
use crate::control::messages::Report;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use follow::{Following, Sample};
use model::Model;

/// Columns of plain lines if the width is unknown.
const COLUMNS: usize = 120;

/// Most rows of each table in plain lines.
const ROWS: usize = 20;

pub(crate) fn run(args: &args::Top) -> Outcome {
    let following = Following::start(args.target.control.as_deref())?;
    if args.json {
        return print(&following, args.once, |model| {
            let line = serde_json::to_string(&model.rows()).map_err(|error| Failure::failed(error.to_string()))?;
            Ok(format!("{line}\n"))
        });
    }
    if args.once || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return print(&following, args.once, |model| Ok(lines::text(&model.rows(), columns(), ROWS)));
    }
    terminal::run(&following)
}

/// Columns of plain lines.
fn columns() -> usize {
    console::Term::stdout().size_checked().map_or(COLUMNS, |(_, columns)| columns.into())
}

/// The tables from reports alone. Without events, files have only the calls that wait for them now.
#[derive(Default)]
pub(crate) struct Tables(Model);

impl Tables {
    pub(crate) fn take(&mut self, report: Report) {
        self.0.take(Sample { report, events: Vec::new(), lost: 0 });
    }

    /// The tables as plain lines; rates need two reports.
    pub(crate) fn text(&self) -> String {
        lines::text(&self.0.rows(), columns(), ROWS)
    }
}

/// Prints the text of each second until the reader is gone (`top | head`).
fn print(following: &Following, once: bool, mut text: impl FnMut(&Model) -> Outcome<String>) -> Outcome {
    let mut model = Model::default();
    loop {
        model.take(following.next()?);
        // The first report has no predecessor for rates.
        if !model.has_rates() {
            continue;
        }
        let text = text(&model)?;
        let mut stdout = std::io::stdout().lock();
        let printed = stdout.write_all(output::harmless(&text, &[]).as_bytes()).and_then(|()| stdout.flush());
        if printed.is_err() || once {
            return Ok(());
        }
    }
}
