//! Showing a text once, or again and again.
//!
//! Owns: the loop of every `--watch`, replacing the earlier text on a terminal, the end with the reader; lines of JSON.
//! Does not own: the texts.
//! Invariants: nothing is redrawn unless standard output is a terminal. A reader that is gone (`stat --watch | head`)
//! ends the loop without an error. No text controls the terminal.

use std::io::IsTerminal;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

/// Between two texts, for a command that asks at once.
pub(crate) const EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// Whether it is shown until Ctrl-C, and not once.
    pub(crate) again: bool,
    /// Whether it replaces the earlier one on a terminal.
    pub(crate) redraws: bool,
    /// Pause between two texts; zero if making one takes its time.
    pub(crate) pause: Duration,
}

impl Watch {
    /// Shows each text that `text` makes.
    pub(crate) fn show(self, mut text: impl FnMut() -> Outcome<String>) -> Outcome {
        let redraws = self.redraws && std::io::stdout().is_terminal();
        let mut drawn = 0;
        loop {
            let text = text()?;
            let erase = if redraws && drawn > 0 { format!("\x1b[{drawn}A\x1b[J") } else { String::new() };
            if !try_print(&erase, &text) || !self.again {
                return Ok(());
            }
            drawn = text.lines().count();
            thread::sleep(self.pause);
        }
    }
}

/// Prints a value as JSON, on one line.
pub(crate) fn say_json(value: &impl Serialize) {
    // What is printed so has no value that JSON lacks.
    let _ = json_line(value).map(|line| output::say(line.trim_end()));
}

/// A value as JSON, on one line.
pub(crate) fn json_line(value: &impl Serialize) -> Outcome<String> {
    Ok(serde_json::to_string(value).map_err(Failure::failed)? + "\n")
}

/// Prints a text after a control sequence for the terminal. False once the reader is gone.
pub(crate) fn try_print(erase: &str, text: &str) -> bool {
    output::try_write(format!("{erase}{}", output::harmless(text, &output::PAINTS)).as_bytes())
}
