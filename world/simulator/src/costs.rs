//! CPU costs of the engine's work: the table by which virtual time passes within a step.
//!
//! A file names the machine and, for each cost, a value, its unit and where it comes from:
//!
//! ```toml
//! machine = "two cores of an AMD EPYC"
//! [read_hit_pages]
//! value = 52
//! unit = "ns/page"
//! source = "afflux calibrate, 2026-11-20"
//! ```
//!
//! A key is a counter's name, `step` or `switch`. A counter's cost is that of one of its unit. `step` is one poll of a
//! task. `switch` is a CPU's change to a task other than the one it ran last. The costs of [`CostOf::Caller`] are
//! charged only by runs that ask for them (`Callers`). A key missing from the file costs nothing.
//!
//! Owns: the built-in tables, the format.
//! Does not own: a table in memory (`costs::table`), measuring (the command), the counters (`afflux_engine::counters`).
//! Invariants: values are whole picoseconds, so that sums are exact and the same everywhere.

mod parse;
mod table;

pub use table::{COST_NS_MAX, CallerCost, Cost, CostOf, CostTable};

use crate::document::InputError;

/// A built-in table: its name and its text.
const BUILT_IN: &[(&str, &str)] = &[
    ("epyc-2026", include_str!("../../../costs/epyc-2026.toml")),
    ("linux-2010", include_str!("../../../costs/linux-2010.toml")),
];

impl CostTable {
    /// A table where nothing costs anything: only time charged by hand passes.
    pub fn free() -> Self {
        Self::new("nothing costs anything", Vec::new())
    }

    /// The table of the machine that the figures of docs/results.md come from.
    pub fn standard() -> Self {
        Self::named(BUILT_IN[0].0).unwrap_or_else(Self::free)
    }

    /// The names of the built-in tables, the standard one first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The built-in table of this name.
    pub fn named(name: &str) -> Option<Self> {
        let (name, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Self::parse(name, text).ok()
    }

    /// Parses a table from the text of a file; `file` is its name for errors.
    ///
    /// # Errors
    /// When the text is not TOML, a key is unknown, or a value is out of its range.
    pub fn parse(file: &str, text: &str) -> Result<Self, InputError> {
        parse::table(file, text)
    }

    /// The table as the text of a file.
    pub fn to_text(&self) -> String {
        parse::text(self)
    }
}

#[cfg(test)]
mod tests;
