//! The effect of keys.
//!
//! Owns: the user's choices.
//! Does not own: reading keys (`terminal`), showing the choices (`screen`).
//! Invariants: a pure function of the key; the typed text is bounded.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::rows::SortOrder;

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
