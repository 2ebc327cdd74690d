//! Tables, for terminals and for pages.
//!
//! Owns: columns and their alignment, rows, a caption, notes; the width on a page.
//! Does not own: numbers as text (`units`); the page around it (`html`).
//! Invariants: columns line up; an absent cell is empty; nothing is cut. A column without a text in any row is omitted.
//! On a page that is too narrow, the first column stays in place while the others scroll, and a line says that there
//! are more.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use crate::markup::{prose, text_width};
use crate::terminal::{Paint, Terminal};

/// Height of a table's text on a page, in pixels, and the gap between its columns.
const FONT: f64 = 14.0;
const GAP: f64 = 15.0;

/// A text of more letters than this may be broken into lines of about this length on a page.
const WORDS_MAX: usize = 28;

/// A column's title is broken into lines of about this many letters.
const TITLE_WORDS: f64 = 12.0;

/// A note on a terminal is broken into lines of at most this many letters.
const NOTE_MAX: usize = 118;

/// Widths of tables, in pixels, each with the class of the hint that a narrower window shows.
const HINTS: [(f64, &str); 3] = [(1160.0, "below-1400"), (780.0, "below-1200"), (560.0, "below-800")];

/// The same on a telephone, where the first column has at most its narrow width.
const NARROW_HINT: (f64, &str) = (385.0, "below-600");
const NARROW_FIRST: f64 = 136.0;

/// Alignment of a column's texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Words, which begin at the left.
    Left,
    /// Numbers, which end at the right.
    Right,
}

/// The text of a cell.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    text: String,
    flagged: bool,
}

impl Cell {
    /// A cell with an asterisk after its text. A note of the table explains the asterisk.
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

/// A table of text, drawn for terminals, Markdown and pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    caption: String,
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
    notes: Vec<String>,
    names: usize,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(caption: impl Into<String>, columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|&(title, align)| (title.to_owned(), align)).collect();
        Self { caption: caption.into(), columns, rows: Vec::new(), notes: Vec::new(), names: 1 }
    }

    /// The first `columns` columns together name a row; an empty name repeats that of the row above. On a page they
    /// become one column with all names in each row, so that the column in place identifies the row.
    #[must_use]
    pub fn named_by(self, columns: usize) -> Self {
        Self { names: columns.max(1), ..self }
    }

    /// Adds a row. Cells beyond the last column are a mistake of the caller and shown without title.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Adds a sentence below the table.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// The text above the table.
    #[must_use]
    pub fn caption(&self) -> &str {
        &self.caption
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text for a terminal or a file: the caption, then lines, each with its end.
    #[must_use]
    pub fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        if !self.caption.is_empty() {
            let _ = writeln!(text, "{}", terminal.paint(Paint::Strong, &self.caption));
        }
        let columns = self.shown();
        let layout: Vec<_> = columns.iter().map(|at| self.layout(*at)).collect();
        let titles: Vec<Cell> = columns.iter().map(|at| self.title(*at).into()).collect();
        if titles.iter().any(|title| !title.text.is_empty()) {
            let _ = writeln!(text, "{}", terminal.paint(Paint::Faint, &line(&layout, &titles)));
        }
        for row in &self.rows {
            let cells: Vec<Cell> = columns.iter().map(|at| row.get(*at).cloned().unwrap_or_default()).collect();
            let _ = writeln!(text, "{}", line(&layout, &cells));
        }
        for note in &self.notes {
            broken(note).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        }
        text
    }

    pub(crate) fn html(&self) -> String {
        if self.names > 1 {
            return self.with_names_joined().html();
        }
        let columns = self.shown();
        let mut html = String::from("<div class=\"scroll\" tabindex=\"0\">\n");
        let _ = writeln!(html, "<table style=\"--first:{:.0}px\">", self.first(&columns));
        let _ = writeln!(html, "<caption><span>{}</span></caption>", prose(&self.caption));
        html.push_str("<thead><tr>");
        for &at in &columns {
            let _ = write!(html, "<th scope=\"col\"{}>{}</th>", self.class(at), prose(self.title(at)));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for &at in &columns {
                let cell = row.get(at).cloned().unwrap_or_default();
                let mark = if cell.flagged { "<b>*</b>" } else { "" };
                let _ = write!(html, "<td{}>{}{mark}</td>", self.class(at), prose(&cell.text));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table>\n</div>\n");
        let classes = self.hints(&columns);
        if !classes.is_empty() {
            let hint = "More columns to the right: scroll the table sideways.";
            let _ = writeln!(html, "<p class=\"hint {}\">{hint}</p>", classes.join(" "));
        }
        for note in &self.notes {
            let _ = writeln!(html, "<p class=\"note\">{}</p>", prose(note));
        }
        html
    }

    /// The same table with the columns that name a row joined into one.
    fn with_names_joined(&self) -> Self {
        let joined = |texts: &[&str]| {
            let texts: Vec<&str> = texts.iter().copied().filter(|text| !text.is_empty()).collect();
            texts.join(", ")
        };
        let (names, figures) = self.columns.split_at(self.names.min(self.columns.len()));
        let title = joined(&names.iter().map(|(title, _)| title.as_str()).collect::<Vec<_>>());
        let columns = std::iter::once((title, Align::Left)).chain(figures.iter().cloned()).collect();
        let mut above = vec![Cell::default(); self.names];
        let mut rows = Vec::new();
        for row in &self.rows {
            let mut is_above = true;
            for (at, name) in above.iter_mut().enumerate() {
                let own = row.get(at).cloned().unwrap_or_default();
                is_above &= own.text.is_empty();
                if !is_above {
                    *name = own;
                }
            }
            let texts: Vec<&str> = above.iter().map(|name| name.text.as_str()).collect();
            let flagged = above.iter().any(|name| name.flagged);
            let name = Cell { text: joined(&texts), flagged };
            rows.push(std::iter::once(name).chain(row.iter().skip(self.names).cloned()).collect());
        }
        Self { caption: self.caption.clone(), columns, rows, notes: self.notes.clone(), names: 1 }
    }

    /// The columns that have a text in some row; all of them if there is no row.
    fn shown(&self) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(self.columns.len());
        (0..count).filter(|at| self.rows.is_empty() || self.cells(*at).any(|cell| !cell.text.is_empty())).collect()
    }

    fn cells(&self, at: usize) -> impl Iterator<Item = &Cell> {
        self.rows.iter().filter_map(move |row| row.get(at))
    }

    fn title(&self, at: usize) -> &str {
        self.columns.get(at).map_or("", |column| &column.0)
    }

    fn align(&self, at: usize) -> Align {
        self.columns.get(at).map_or(Align::Left, |column| column.1)
    }

    /// Whether a column has sentences rather than names.
    fn is_words(&self, at: usize) -> bool {
        self.align(at) == Align::Left && self.cells(at).any(|cell| cell.text.chars().count() > WORDS_MAX)
    }

    fn class(&self, at: usize) -> &'static str {
        match self.align(at) {
            Align::Right => " class=\"number\"",
            Align::Left if self.is_words(at) => " class=\"words\"",
            Align::Left => "",
        }
    }

    /// Estimate of a column's width on a page, in pixels.
    fn width(&self, at: usize) -> f64 {
        let letters = WORDS_MAX as f64 * 0.6 * FONT;
        let cells = self.cells(at).map(|cell| text_width(&cell.text, FONT)).fold(0.0, f64::max);
        let cells = if self.is_words(at) { cells.min(letters) } else { cells };
        let title = text_width(self.title(at), FONT).min(TITLE_WORDS * 0.6 * FONT);
        cells.max(title) + GAP
    }

    /// The width of the first column on a telephone: that of its texts, up to a bound, at which they are broken into
    /// lines.
    fn first(&self, columns: &[usize]) -> f64 {
        columns.first().map_or(0.0, |at| self.width(*at)).min(NARROW_FIRST)
    }

    /// The classes of windows that do not show all columns at once.
    fn hints(&self, columns: &[usize]) -> Vec<&'static str> {
        let widths: Vec<f64> = columns.iter().map(|at| self.width(*at)).collect();
        let width: f64 = widths.iter().sum();
        let narrow = width - widths.first().map_or(0.0, |first| (first - NARROW_FIRST).max(0.0));
        let wide = HINTS.iter().find(|(wider_than, _)| width > *wider_than);
        let narrow = Some(&NARROW_HINT).filter(|(wider_than, _)| narrow > *wider_than);
        wide.into_iter().chain(narrow).map(|(_, class)| *class).collect()
    }

    /// A column's alignment, its width in letters, and whether it reserves space for an asterisk.
    fn layout(&self, at: usize) -> (Align, usize, bool) {
        let widest = self.cells(at).map(|cell| shown_width(&cell.text)).max().unwrap_or(0);
        (self.align(at), widest.max(shown_width(self.title(at))), self.cells(at).any(|cell| cell.flagged))
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

/// Lines of at most [`NOTE_MAX`] letters, where words allow it.
fn broken(note: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in note.split(' ') {
        let room =
            lines.last().is_some_and(|line| line.is_empty() || shown_width(line) + 1 + shown_width(word) <= NOTE_MAX);
        match lines.last_mut().filter(|_| room) {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
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
