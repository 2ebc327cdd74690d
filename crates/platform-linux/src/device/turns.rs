//! Which writes to one host file may be under way together.
//!
//! A file's last bytes that fill no block are written through the host's page cache, everything
//! else past it. Where a direct write is in flight while the host changes the same page, or its
//! neighbours in one folio, in its cache, the host may lose one of the two and reports it as an
//! input/output error of the next flush. It changes pages of its own accord too: a write past an end
//! of file that lies inside a page zeroes the rest of that page.
//!
//! Owns: the turns of one file's writes. Writes that leave the host's cache alone share theirs; one
//! that does not has its turn alone.
//! Does not own: the order of writes to the same bytes: the engine has only one of those in flight.
//! Invariants: first come, first served, so that neither kind starves. A flight has its turn until it
//! is answered or dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::flight::Flight;

/// Whether others may have their turn meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    Together,
    Alone,
}

/// The turns of a file.
#[derive(Default)]
pub(super) struct Turns(Mutex<State>);

#[derive(Default)]
struct State {
    together: u32,
    alone: bool,
    waiting: VecDeque<(Share, Box<Flight>)>,
}

/// A turn; it ends when this is dropped.
pub(super) struct Turn {
    turns: Arc<Turns>,
    share: Share,
}

impl State {
    fn begins(&mut self, share: Share) -> bool {
        let free = !self.alone && (share == Share::Together || self.together == 0);
        match share {
            Share::Together if free => self.together += 1,
            Share::Alone if free => self.alone = true,
            _ => {}
        }
        free
    }
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the flight its turn, or keeps it until it has it.
    pub(super) fn enter(self: &Arc<Self>, share: Share, mut flight: Box<Flight>) -> Option<Box<Flight>> {
        let mut state = self.lock();
        if state.waiting.is_empty() && state.begins(share) {
            flight.has_turn(Turn { turns: Arc::clone(self), share });
            return Some(flight);
        }
        state.waiting.push_back((share, flight));
        None
    }

    #[expect(clippy::vec_box, reason = "flights live in boxes")]
    fn leave(self: &Arc<Self>, share: Share) -> Vec<Box<Flight>> {
        let mut state = self.lock();
        match share {
            Share::Together => state.together -= 1,
            Share::Alone => state.alone = false,
        }
        let mut begun = Vec::new();
        while let Some((share, _)) = state.waiting.front() {
            let share = *share;
            if !state.begins(share) {
                break;
            }
            if let Some((_, mut flight)) = state.waiting.pop_front() {
                flight.has_turn(Turn { turns: Arc::clone(self), share });
                begun.push(flight);
            }
        }
        begun
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        for flight in self.turns.leave(self.share) {
            super::launch(flight);
        }
    }
}
