//! Columns of s4: the thresholds.
//!
//! Owns: the titles of columns. Does not own: the cells.
//! Invariants: a threshold has the same name in tables and in plots.

use afflux_report::{Align, Table};

use crate::s4::plan::{Plan, Threshold};

/// The title of a threshold.
pub(super) fn column_title(threshold: Threshold) -> String {
    match threshold {
        Threshold::OFF => "off".to_owned(),
        Threshold::Centisecs(centisecs) => format!("{centisecs} cs"),
        Threshold::Bytes(bytes) => afflux_report::units::data(bytes),
        Threshold::Tuned => "tuned".to_owned(),
    }
}

/// A table whose columns are the thresholds.
pub(super) fn table(plan: &Plan, caption: &str, first: &str, align: Align) -> Table {
    let titles: Vec<String> = plan.columns.iter().map(|&threshold| column_title(threshold)).collect();
    let columns: Vec<(&str, Align)> =
        std::iter::once((first, align)).chain(titles.iter().map(|title| (title.as_str(), Align::Right))).collect();
    Table::new(caption, &columns)
}
