//! Lists that a rule or a run reads: files beside the source, which the program contains.
//!
//! Owns: their form: a row is a line, its columns stand between strokes; lines that begin with `#` are comments.
//! Does not own: the meaning of a column.
//! Invariants: a row has at most the columns that its reader wants; columns that are missing at its end are empty.

/// The rows of a list.
pub(crate) fn rows<const COLUMNS: usize>(list: &'static str) -> impl Iterator<Item = [&'static str; COLUMNS]> {
    list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let row = std::array::from_fn(|_| columns.next().unwrap_or_default());
        assert!(columns.next().is_none(), "'{line}' has more than {COLUMNS} columns");
        row
    })
}
