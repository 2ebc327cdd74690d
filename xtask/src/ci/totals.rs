//! Counts what test programs say at their end.
//!
//! Owns: the sums of a run, the line that says whether it passed.
//! Does not own: the programs (`programs`), the list of skipped tests (`skips`).
//! Invariants: the standard library's test harness says `test result: ok. 3 passed; 0 failed; 1 ignored; …` once for
//! each program, and cargo once for the examples of each crate. A skipped test says that it passed, and is counted
//! apart.

use std::time::Duration;

/// The tests of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    programs: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Totals {
    /// What a program has said.
    pub(super) fn of(output: &str) -> Self {
        let results = output.lines().filter_map(|line| line.strip_prefix("test result: "));
        results.fold(Self { programs: 1, ..Self::default() }, |sum, line| sum.plus(Self::of_result(line)))
    }

    /// The counts of a result: `ok. 3 passed; 0 failed; 1 ignored; …`
    fn of_result(line: &str) -> Self {
        let count = |word: &str| {
            let before = line.split_once(word).map_or("", |(before, _)| before.trim_end());
            before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default()
        };
        Self { programs: 0, passed: count("passed"), failed: count("failed"), ignored: count("ignored") }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            programs: self.programs + other.programs,
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            ignored: self.ignored + other.ignored,
        }
    }

    /// The last words of a run: its sums, and how long it took. Of the tests that passed, so many were skipped.
    pub(super) fn said(self, examples: Self, skipped: usize, took: Duration) -> String {
        let Self { programs, passed, failed, ignored } = self;
        let done = passed.saturating_sub(skipped as u64);
        format!(
            "{done} tests of {programs} programs and {} examples of the documentation passed, {} failed; {skipped} were \
             skipped or skipped a part, {ignored} are left to `cargo xtask nightly`. {} min {} s",
            examples.passed,
            failed + examples.failed,
            took.as_secs() / 60,
            took.as_secs() % 60,
        )
    }
}

#[cfg(test)]
mod tests;
