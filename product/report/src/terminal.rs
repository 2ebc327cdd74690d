//! Abilities of a terminal that a file lacks.
//!
//! Owns: whether there may be colour, strong and faint text, a curve in one line.
//! Does not own: progress; the printed text.
//! Invariants: escape sequences go only to a terminal, and not if `NO_COLOR` is set.

#[cfg(test)]
mod tests;

use std::env;
use std::io::{IsTerminal, stdout};

/// The destination of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terminal {
    colour: bool,
}

/// Highlights of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paint {
    /// Words in bold.
    Strong,
    /// Words in a dimmed colour.
    Faint,
}

impl Terminal {
    /// A file or a pipe.
    pub const PLAIN: Self = Self { colour: false };

    /// Standard output: plain unless it is a terminal and `NO_COLOR` is unset or empty.
    #[must_use]
    pub fn of_stdout() -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: stdout().is_terminal() && !refused }
    }

    /// The text, highlighted if possible.
    #[must_use]
    pub fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Strong => 1,
            Paint::Faint => 2,
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A curve of at most `width` letters from 0 to `full`: each letter shows the largest value of its part. Empty without
/// values; values that are not finite count as zero.
#[must_use]
pub fn sparkline(values: &[f64], full: f64, width: usize) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let letters = width.min(values.len());
    let part = |at: usize| {
        let (from, to) = (at * values.len() / letters, (at + 1) * values.len() / letters);
        let largest = values[from..to].iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let level = if full > 0.0 { (largest / full * 8.0).ceil().clamp(0.0, 8.0) as usize } else { 0 };
        LEVELS[level]
    };
    (0..letters).map(part).collect()
}
