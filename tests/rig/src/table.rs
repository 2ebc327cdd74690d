//! Tables of figures, as Markdown.
//!
//! Owns: the rows, the digits of figures, the form of a ratio.
//! Does not own: the figures.
//! Invariants: a ratio is shown with the least and the most of its rounds. A figure that is not there is a dash.

use std::fmt::{self, Display, Formatter};

use afflux_figures::MedianAndRange;

/// A table: its head, then its rows.
#[derive(Clone, Debug)]
pub struct Table {
    columns: usize,
    text: String,
}

impl Table {
    /// A table without rows.
    pub fn new<T: AsRef<str>>(head: impl IntoIterator<Item = T>) -> Self {
        let mut table = Self { columns: 0, text: String::new() };
        table.row(head);
        table.columns = table.text.matches(" |").count();
        table.text += &format!("|{}\n", "-|".repeat(table.columns));
        table
    }

    /// Adds a row.
    pub fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells: String = cells.into_iter().map(|cell| format!(" {} |", cell.as_ref())).collect();
        self.text += &format!("|{cells}\n");
    }
}

impl Display for Table {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// A figure in three digits, with commas for thousands.
pub fn short(figure: f64) -> String {
    match figure.abs() {
        size if size >= 999.5 => {
            let unit = 10_f64.powi(size.log10().floor() as i32 - 2).max(1.0);
            let whole = ((figure / unit).round() * unit) as u64;
            let digits = whole.to_string();
            let groups: Vec<&str> =
                digits.as_bytes().rchunks(3).rev().map(|three| str::from_utf8(three).unwrap_or("")).collect();
            groups.join(",")
        }
        size if size >= 99.95 => format!("{figure:.0}"),
        size if size >= 9.995 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

/// A ratio with its range.
pub fn ratio(ratio: Option<MedianAndRange>) -> String {
    let Some(all) = ratio else { return "–".to_owned() };
    let [middle, least, most] = all.map(short);
    format!("**{middle}×** ({least}–{most})")
}

#[cfg(test)]
mod tests;
