//! The progress of a run: a bar on a terminal, a line now and then elsewhere.
//!
//! Owns: the bar, the lines, their words and times.
//! Does not own: the figures.
//! Invariants: on a terminal nothing is shown before the run has lasted [`SHOWN_AFTER`], and the bar is erased at the
//! end. Elsewhere a run that is over within [`SAID_EVERY`] is silent, and a longer one prints a line each time that
//! this interval has passed.

#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use afflux_workloads::simulation::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use afflux_report::{output, units};

/// Shorter runs need no bar.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

/// Between two drawings.
const DRAWN_EVERY: Duration = Duration::from_millis(100);

/// Between two lines, and before the first, if there is no terminal.
const SAID_EVERY: Duration = Duration::from_secs(10);

pub(super) struct RunDisplay {
    start: Instant,
    /// Time since the start at which the next line or picture is due.
    due: Duration,
    bar: Option<ProgressBar>,
    terminal: bool,
}

impl RunDisplay {
    pub(super) fn new() -> Self {
        Self::shown_on(std::io::stderr().is_terminal())
    }

    fn shown_on(terminal: bool) -> Self {
        let due = if terminal { SHOWN_AFTER } else { SAID_EVERY };
        Self { start: Instant::now(), due, bar: None, terminal }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        if let Some(line) = self.shown(progress, self.start.elapsed()) {
            output::remark(line);
        }
    }

    /// Draws the bar, or returns a line to print, once it is due.
    fn shown(&mut self, progress: Progress, elapsed: Duration) -> Option<String> {
        if elapsed < self.due {
            return None;
        }
        if !self.terminal {
            self.due = elapsed + SAID_EVERY;
            return Some(format!("simulating for {}: {}", units::time(elapsed), sentence(progress)));
        }
        self.due = elapsed + DRAWN_EVERY;
        let share = share(progress);
        let bar = self.bar.get_or_insert_with(|| bar(share.is_some()));
        bar.set_length(1000);
        bar.set_position((share.unwrap_or(0.0) * 1000.0) as u64);
        bar.set_message(sentence(progress));
        None
    }

    pub(super) fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar, or only words if the amount of work is unknown.
fn bar(end_known: bool) -> ProgressBar {
    let template = if end_known { "Simulating  {bar:24}  {msg}" } else { "Simulating  {msg}" };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─");
    ProgressBar::new(0).with_style(style)
}

/// The finished part of the run, from 0 to 1: by bytes where these are known, else by time.
fn share(progress: Progress) -> Option<f64> {
    let (part, whole) = match (progress.bytes_total, progress.time_total_ns) {
        (Some(total), _) => (progress.bytes, total),
        (None, Some(total_ns)) => (progress.virtual_ns, total_ns),
        (None, None) => return None,
    };
    Some(if whole == 0 { 1.0 } else { (part as f64 / whole as f64).min(1.0) })
}

/// `30 % 12 s simulated 1.20 GB of 4.00 GB`.
fn sentence(progress: Progress) -> String {
    let time = units::time(Duration::from_nanos(progress.virtual_ns));
    let moved = units::data(progress.bytes);
    let share = share(progress).map(|share| format!("{:.0} %   ", (share * 100.0).floor())).unwrap_or_default();
    match (progress.bytes_total, progress.time_total_ns) {
        (Some(total), _) => format!("{share}{time} simulated   {moved} of {}", units::data(total)),
        (None, Some(total_ns)) => {
            format!("{share}{time} of {} simulated   {moved}", units::time(Duration::from_nanos(total_ns)))
        }
        (None, None) => format!("{time} simulated   {moved}"),
    }
}
