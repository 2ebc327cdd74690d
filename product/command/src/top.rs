//! `afflux top`: the continuous view of a running server.
//!
//! Owns: the choice among three forms: a full screen, plain lines, JSON.
//! Does not own: asking (`follow`), rates and sums (`model`), the picture (`screen`), the terminal (`terminal`).
//! Invariants: all three forms, and `stat`, show the same rows. The server gets only the requests of `stat` and
//! `trace`.

mod follow;
mod model;
mod rows;
mod screen;
mod table;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::time::Duration;

use crate::args;
use crate::control::messages::Report;
use crate::watch::{self, Watch};
use afflux_report::failure::Outcome;
use follow::{FollowedReport, Following};
use model::Model;

/// Columns of plain lines if the width is unknown.
const COLUMNS: usize = 120;

/// Most rows of each table in plain lines.
const ROWS: usize = 20;

pub(crate) fn run(args: &args::Top) -> Outcome {
    let following = Following::start(args.target.control.as_deref())?;
    let is_full = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if is_full && !args.json && !args.once {
        return terminal::run(&following);
    }
    let mut model = Model::default();
    // The server's samples set the pace.
    Watch { again: !args.once, redraws: false, pause: Duration::ZERO }.show(|| {
        model.take(following.next()?);
        // The first report has no predecessor for rates.
        while !model.has_rates() {
            model.take(following.next()?);
        }
        if args.json { watch::json_line(&model.rows()) } else { Ok(table::plain(&model.rows(), columns(), ROWS)) }
    })
}

fn columns() -> usize {
    console::Term::stdout().size_checked().map_or(COLUMNS, |(_, columns)| columns.into())
}

/// The tables from reports alone. Without events, files have only the calls that wait for them now.
#[derive(Default)]
pub(crate) struct Tables(Model);

impl Tables {
    pub(crate) fn take(&mut self, report: Report) {
        self.0.take(FollowedReport { report, events: Vec::new(), lost: 0 });
    }

    /// The tables as plain lines; rates need two reports.
    pub(crate) fn text(&self) -> String {
        table::plain(&self.0.rows(), columns(), ROWS)
    }
}
