//! How far a run is, on a terminal.
//!
//! Owns: the bar and its words.
//! Does not own: the figures.
//! Invariants: nothing is shown unless standard error is a terminal, nor before the run has lasted
//! [`SHOWN_AFTER`]; the bar is erased at the end.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use workloads::simulation::Progress;

use crate::units;

/// Shorter runs need no bar.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

/// Between two drawings.
const DRAWN_EVERY: Duration = Duration::from_millis(100);

pub(super) struct RunDisplay {
    start: Instant,
    drawn: Option<Instant>,
    bar: Option<ProgressBar>,
    terminal: bool,
}

impl RunDisplay {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), drawn: None, bar: None, terminal: std::io::stderr().is_terminal() }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        if !self.terminal {
            return;
        }
        let now = Instant::now();
        let due = self.drawn.map_or(self.start + SHOWN_AFTER, |drawn| drawn + DRAWN_EVERY);
        if now < due {
            return;
        }
        self.drawn = Some(now);
        let bar = self.bar.get_or_insert_with(|| bar(progress.bytes_total.is_some()));
        bar.set_length(progress.bytes_total.unwrap_or(0).max(progress.bytes));
        bar.set_position(progress.bytes);
        bar.set_message(sentence(progress));
    }

    pub(super) fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar, or only the words where nobody knows how much there is to do.
fn bar(end_known: bool) -> ProgressBar {
    let template = if end_known { "Simulating  {bar:24}  {msg}" } else { "Simulating  {msg}" };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─");
    ProgressBar::new(0).with_style(style)
}

/// `12 s simulated   1.20 of 4.00 GB`.
fn sentence(progress: Progress) -> String {
    let time = units::time(Duration::from_nanos(progress.virtual_ns));
    let moved = units::data(progress.bytes);
    match progress.bytes_total {
        Some(total) => format!("{time} simulated   {moved} of {}", units::data(total)),
        None => format!("{time} simulated   {moved}"),
    }
}
