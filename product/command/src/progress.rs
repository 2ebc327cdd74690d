//! The display of a drain: a bar on a terminal, plain lines at long intervals otherwise.
//!
//! Owns: the bar, the rate and the remaining time, the words for the end.
//! Does not own: the figures, which the draining code measures.
//! Invariants: no escape sequences unless standard error is a terminal; the bar is erased at the end.

#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::control::messages::{DirtyFileReport, Drained, Progress};
use afflux_report::{output, units};

/// Between plain lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Most files that are named one by one.
const NAMED_MAX: usize = 20;

/// Shows a drain on standard error.
pub(crate) struct DrainDisplay {
    form: Form,
    hint: &'static str,
}

enum Form {
    Bar(ProgressBar),
    Lines { last: Option<Duration> },
    Nothing,
}

impl DrainDisplay {
    /// A display, or none if not `wanted`. `hint` tells the user what to do meanwhile.
    pub(crate) fn new(wanted: bool, hint: &'static str) -> Self {
        let form = match wanted {
            false => Form::Nothing,
            true if std::io::stderr().is_terminal() => Form::Bar(bar()),
            true => Form::Lines { last: None },
        };
        Self { form, hint }
    }

    pub(crate) fn show(&mut self, progress: Progress) {
        let text = sentence(progress);
        let elapsed = Duration::from_nanos(progress.elapsed_ns);
        match &mut self.form {
            Form::Bar(bar) => {
                bar.set_length(progress.left_bytes + progress.written_bytes);
                bar.set_position(progress.written_bytes);
                bar.set_message(format!("{text}   {}", self.hint));
            }
            Form::Lines { last } => {
                if progress.left_bytes > 0 && last.is_none_or(|last| elapsed >= last + LINE_EVERY) {
                    *last = Some(elapsed);
                    output::remark(format_args!("Writing: {text}"));
                }
            }
            Form::Nothing => {}
        }
    }

    /// Erases the bar.
    pub(crate) fn finish(&mut self) {
        if let Form::Bar(bar) = &self.form {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("Writing  {bar:24}  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─");
    ProgressBar::new(0).with_style(style)
}

/// `7.30 MB to write 25.1 MB/s 0.3 s left`.
fn sentence(progress: Progress) -> String {
    let Progress { left_bytes, written_bytes, elapsed_ns } = progress;
    let elapsed = Duration::from_nanos(elapsed_ns);
    let left = units::data(left_bytes);
    if written_bytes == 0 || elapsed.is_zero() {
        return format!("{left} to write");
    }
    let remaining = elapsed.as_secs_f64() * left_bytes as f64 / written_bytes as f64;
    let time = Duration::try_from_secs_f64(remaining).unwrap_or(Duration::MAX);
    format!("{left} to write   {}   {} left", units::rate(written_bytes, elapsed), units::time(time))
}

/// The text for a complete drain.
pub(crate) fn done(drained: &Drained) -> String {
    let elapsed = Duration::from_nanos(drained.elapsed_ns);
    let written = match drained.written_bytes {
        0 => String::new(),
        bytes => format!(" ({} in {})", units::data(bytes), units::time(elapsed)),
    };
    let open = match drained.open_files {
        0 => String::new(),
        files => format!(" Clients still have {} open.", units::plural(files, "file")),
    };
    format!("Done: everything is written{written}.{open}")
}

/// A first line, and one for each file with unwritten bytes.
pub(crate) fn unwritten(first: &str, files: &[DirtyFileReport]) -> String {
    let mut text = first.to_owned();
    for DirtyFileReport { file, bytes, reason } in files.iter().take(NAMED_MAX) {
        let (file, bytes) = (output::shown(file), units::data(*bytes));
        match reason.as_ref().map(output::shown) {
            Some(reason) => text.push_str(&format!("\n  {file}: {bytes} not written: {reason}")),
            None => text.push_str(&format!("\n  {file}: {bytes} not written")),
        }
    }
    if files.len() > NAMED_MAX {
        let bytes = files[NAMED_MAX..].iter().map(|file| file.bytes).sum();
        let more = units::count((files.len() - NAMED_MAX) as u64);
        text.push_str(&format!("\n  and {more} more files: {} not written", units::data(bytes)));
    }
    text
}
