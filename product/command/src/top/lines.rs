//! The same tables as plain lines.
//!
//! Owns: their order, the words above each.
//! Does not own: the tables (`table`).
//! Invariants: no escape sequences; a table without rows is left out.

use super::rows::Rows;
use super::table::{self, RowTable};

/// At most `columns` columns wide, and `rows_max` rows of each table.
pub(super) fn text(rows: &Rows, columns: usize, rows_max: usize) -> String {
    let mut text = format!("{}\n", table::summary(rows, columns));
    let tables = [
        table::devices(rows, columns),
        table::clients(rows, columns),
        table::files(rows, columns),
        table::waits(rows, columns),
    ];
    for table in tables.into_iter().filter(|table| !table.lines.is_empty()) {
        let RowTable { title, lines } = table.within(rows_max);
        text.push_str(&format!("\n{title}\n"));
        lines.iter().for_each(|(line, _)| text.push_str(&format!("{line}\n")));
    }
    text.push('\n');
    text
}
