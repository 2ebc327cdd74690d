//! Finds the tests that take long, in the output of their program.
//!
//! Owns: the names. Does not own: the output.
//! Invariants: the standard library's test harness says `test NAME has been running for over 60 seconds`, and when a
//! test ends `test NAME ... ok` or another word. Other lines say nothing here.

use std::collections::BTreeSet;

/// Tests that take long and have not ended.
#[derive(Default)]
pub(super) struct Running {
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    long: BTreeSet<String>,
}

impl Running {
    /// More output has come.
    pub(super) fn note(&mut self, output: &[u8]) {
        for part in output.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.begun)).into_owned();
                self.note_line(line.trim_end());
            }
        }
    }

    fn note_line(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test ") else { return };
        if let Some((name, _)) = rest.split_once(" has been running for over ") {
            self.long.insert(name.to_owned());
        } else if let Some((name, _)) = rest.split_once(" ... ") {
            // A test that should panic has ` - should panic` behind its name, in both lines.
            self.long.remove(name);
        }
    }

    /// A line for each of them.
    pub(super) fn said(&self) -> String {
        self.long.iter().map(|name| format!("  test {name} was running\n")).collect()
    }
}

#[cfg(test)]
mod tests;
