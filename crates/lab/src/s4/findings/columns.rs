//! Columns of s4: the thresholds.
//!
//! Owns: what a column is called. Does not own: what stands in it.
//! Invariants: a threshold has one name, in tables and in plots.

use report::{Align, Table};

use crate::s4::plan::Plan;

/// What a threshold is called.
pub(super) fn column_title(centisecs: u64) -> String {
    if centisecs == 0 { "off".to_owned() } else { format!("{centisecs} cs") }
}

/// A table whose columns are the centiseconds.
pub(super) fn table(plan: &Plan, caption: &str, first: &str, align: Align) -> Table {
    let titles: Vec<String> = plan.centisecs.iter().map(|&centisecs| column_title(centisecs)).collect();
    let columns: Vec<(&str, Align)> =
        std::iter::once((first, align)).chain(titles.iter().map(|title| (title.as_str(), Align::Right))).collect();
    Table::new(caption, &columns)
}
