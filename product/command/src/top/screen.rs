//! The picture on a full screen, and the effect of keys on it.
//!
//! Owns: the lines of each table, the highlights and colours, the list of keys, the last line; the user's choices.
//! Does not own: the tables (`table`), reading keys (`terminal`).
//! Invariants: any size has a picture, down to none at all. Devices come first: on a small screen they get all lines. A
//! choice is a pure function of the key; the typed text is bounded.

use afflux_report::output::shown;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::top::rows::{Attention, Rows, SortOrder};
use crate::top::table::{self, RowTable};

/// Fewest lines of a table: its title and a row.
const TABLE_MIN: usize = 2;

const TITLE: Style = Style::new().add_modifier(Modifier::REVERSED);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// The keys, and the meaning of colours and columns.
const KEYS: &str = "\
q   quit
s   sort clients and files by bytes written, by time waited, or by name
p   hold the picture, and go on
/   show only names with the letters that follow; Enter keeps them, Esc drops them
?   these lines, and back

yellow   a disk that owes half of its budget, calls that wait for a quarter of the time, a wait of 1 s
red      a disk over its budget, hung or failing, calls that wait all the time, a wait of 10 s

owes       time that the disk needs to write all dirty bytes
paused     time of each second in which writes waited for the disk
synced     the same for COMMIT and stable writes; read: for bytes that are not cached
sent us    bytes that the client sent; got: bytes that it was sent";

/// The style of a row; without colours the figures say the same.
fn style(load: Attention) -> Style {
    match load {
        Attention::Calm => Style::new(),
        Attention::Busy => Style::new().fg(Color::Yellow),
        Attention::Over => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, rows: &Rows, choices: &Choices) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    if choices.explains {
        for (at, line) in KEYS.lines().enumerate() {
            put(frame, area, at, Line::raw(line));
        }
        return;
    }
    let mut lines = vec![Line::styled(table::summary(rows, width), STRONG)];
    // With two lines or fewer there is no line for the keys.
    let below = height.saturating_sub(if height > 2 { 2 } else { 1 });
    let tables = table::all(rows, width);
    let heights = heights(below, &tables.each_ref().map(|table| table.lines.len() + 1));
    for (table, its_height) in tables.into_iter().zip(heights).filter(|(_, its_height)| *its_height > 0) {
        let RowTable { title, lines: rows } = table.within(its_height - 1);
        lines.push(Line::styled(format!("{title:width$}"), TITLE));
        let filled = rows.len();
        lines.extend(rows.into_iter().map(|(row, load)| Line::styled(row, style(load))));
        lines.extend((filled + 1..its_height).map(|_| Line::default()));
    }
    lines.truncate(height.saturating_sub(usize::from(height > 2)));
    for (at, line) in lines.into_iter().enumerate() {
        put(frame, area, at, line);
    }
    if height > 2 {
        put(frame, area, height - 1, last_line(rows, choices));
    }
}

/// Draws a line of the picture, cut to the width.
fn put(frame: &mut Frame<'_>, area: Rect, at: usize, line: Line<'_>) {
    let Ok(row) = u16::try_from(at) else { return };
    if row < area.height {
        frame.buffer_mut().set_line(area.x, area.y + row, &line, area.width);
    }
}

/// Divides `height` lines among the tables, which want `wanted` lines each. The first gets all that it wants, the
/// others equal parts of the rest. Lines that a table does not want go to the next ones.
fn heights(height: usize, wanted: &[usize; 4]) -> [usize; 4] {
    let mut heights = [0; 4];
    let mut left = height;
    heights[0] = wanted[0].max(TABLE_MIN).min(left);
    left -= heights[0];
    for (at, its_height) in heights.iter_mut().enumerate().skip(1) {
        let after = 4 - at;
        let part = if left / after >= TABLE_MIN { left / after } else { left };
        if part < TABLE_MIN {
            break;
        }
        *its_height = if at == 3 { left } else { wanted[at].max(TABLE_MIN).min(part) };
        left -= *its_height;
    }
    heights
}

fn last_line(rows: &Rows, choices: &Choices) -> Line<'static> {
    if choices.typing.is_some() {
        return Line::from(vec![Span::styled(format!("/{}", shown(&choices.letters)), STRONG), Span::raw("_")]);
    }
    let mut parts = Vec::new();
    if choices.held {
        parts.push(Span::styled("held  ", TITLE));
    }
    if !choices.letters.is_empty() {
        parts.push(Span::styled(format!("/{}  ", shown(&choices.letters)), STRONG));
    }
    parts.push(Span::raw(format!("q quit  s sort ({})  p hold  / filter  ? keys", choices.order.name())));
    if rows.lost_events > 0 {
        let lost = afflux_report::units::count(rows.lost_events);
        parts.push(Span::raw(format!("  {lost} events missed: files did more")));
    }
    Line::from(parts)
}

/// Most letters of the filter.
const LETTERS_MAX: usize = 100;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Choices {
    pub(super) order: SortOrder,
    /// The picture is frozen.
    pub(super) held: bool,
    /// The filter: names of rows contain these letters.
    pub(super) letters: String,
    /// The filter before the user began to type; none unless typing.
    pub(super) typing: Option<String>,
    /// The list of keys is shown in place of the tables.
    pub(super) explains: bool,
    pub(super) ends: bool,
}

impl Choices {
    pub(super) fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, self.typing.is_some()) {
            (KeyCode::Char('c' | 'd'), _) if control => self.ends = true,
            (KeyCode::Enter, true) => self.typing = None,
            (KeyCode::Esc, true) => self.letters = self.typing.take().unwrap_or_default(),
            (KeyCode::Backspace, true) => {
                self.letters.pop();
            }
            (KeyCode::Char(letter), true) if !control && self.letters.len() < LETTERS_MAX => self.letters.push(letter),
            (KeyCode::Char('q'), false) => self.ends = true,
            (KeyCode::Char('?'), false) => self.explains = !self.explains,
            (_, false) if self.explains => self.explains = false,
            (KeyCode::Char('s'), false) => self.order = self.order.next(),
            (KeyCode::Char('p' | ' '), false) => self.held = !self.held,
            (KeyCode::Char('/'), false) => self.typing = Some(std::mem::take(&mut self.letters)),
            (KeyCode::Esc, false) => self.letters.clear(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
