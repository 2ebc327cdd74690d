//! Tables, for terminals and for pages.
//!
//! Owns: columns and their alignment, rows, a caption, notes.
//! Does not own: numbers as text (`units`); the page around it (`page`).
//! Invariants: columns line up; a cell that is absent is empty; nothing is cut.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use crate::markup::escape;
use crate::terminal::{Paint, Terminal};

/// Where the texts of a column stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// The text of a cell.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    text: String,
    flagged: bool,
}

impl Cell {
    /// A cell to be noticed: an asterisk follows its text. A note of the table says why.
    #[must_use]
    pub fn flagged(text: impl Into<String>) -> Self {
        Self { text: text.into(), flagged: true }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), flagged: false }
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    caption: String,
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
    notes: Vec<String>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(caption: impl Into<String>, columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|&(title, align)| (title.to_owned(), align)).collect();
        Self { caption: caption.into(), columns, rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a row. Cells beyond the last column are a mistake of the caller and shown without title.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Adds a sentence below the table.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// For a terminal or a file: the caption, then lines, each with its end.
    #[must_use]
    pub fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        if !self.caption.is_empty() {
            let _ = writeln!(text, "{}", terminal.paint(Paint::Strong, &self.caption));
        }
        let layout = self.layout();
        let titles: Vec<Cell> = self.columns.iter().map(|(title, _)| title.as_str().into()).collect();
        if titles.iter().any(|title| !title.text.is_empty()) {
            let _ = writeln!(text, "{}", terminal.paint(Paint::Faint, &line(&layout, &titles)));
        }
        for row in &self.rows {
            let _ = writeln!(text, "{}", line(&layout, row));
        }
        for note in &self.notes {
            let _ = writeln!(text, "  {note}");
        }
        text
    }

    pub(crate) fn html(&self) -> String {
        let mut html = String::from("<div class=\"scroll\" tabindex=\"0\">\n<table>\n");
        let _ = writeln!(html, "<caption>{}</caption>", escape(&self.caption));
        html.push_str("<thead><tr>");
        for (title, align) in &self.columns {
            let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class(*align), escape(title));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for at in 0..row.len().max(self.columns.len()) {
                let cell = row.get(at).cloned().unwrap_or_default();
                let align = self.columns.get(at).map_or(Align::Left, |column| column.1);
                let mark = if cell.flagged { "<b>*</b>" } else { "" };
                let _ = write!(html, "<td{}>{}{mark}</td>", class(align), escape(&cell.text));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table>\n</div>\n");
        for note in &self.notes {
            let _ = writeln!(html, "<p class=\"note\">{}</p>", escape(note));
        }
        html
    }

    /// For each column: alignment, width, and whether room is kept for an asterisk.
    fn layout(&self) -> Vec<(Align, usize, bool)> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(self.columns.len());
        let column = |at: usize| {
            let (title, align) = self.columns.get(at).map_or(("", Align::Left), |(title, align)| (title, *align));
            let cells = || self.rows.iter().filter_map(|row| row.get(at));
            let widest = cells().map(|cell| shown_width(&cell.text)).max().unwrap_or(0);
            (align, widest.max(shown_width(title)), cells().any(|cell| cell.flagged))
        };
        (0..count).map(column).collect()
    }
}

fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"number\"",
    }
}

fn line(layout: &[(Align, usize, bool)], cells: &[Cell]) -> String {
    let mut line = String::from("  ");
    for (at, &(align, width, room)) in layout.iter().enumerate() {
        let empty = Cell::default();
        let cell = cells.get(at).unwrap_or(&empty);
        let padding = " ".repeat(width.saturating_sub(shown_width(&cell.text)));
        let mark = match (room, cell.flagged) {
            (true, true) => "*",
            (true, false) => " ",
            (false, _) => "",
        };
        if at > 0 {
            line.push_str("   ");
        }
        let _ = match align {
            Align::Left => write!(line, "{}{mark}{padding}", cell.text),
            Align::Right => write!(line, "{padding}{}{mark}", cell.text),
        };
    }
    line.truncate(line.trim_end().len());
    line
}

/// Columns of a terminal: wide scripts take two, combining marks none.
fn shown_width(text: &str) -> usize {
    let width = |letter: char| match letter {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' => 0,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' => 2,
        '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}' => 2,
        _ => 1,
    };
    text.chars().map(width).sum()
}
