//! Which writes to one host file may be under way together.
//!
//! A file's last bytes that fill no block are written through the host's page cache, everything
//! else past it. Where a direct write is in flight while the host changes the same page, or its
//! neighbours in one folio, in its cache, the host may lose one of the two and reports it as an
//! input/output error of the next flush. It changes pages of its own accord too: a write past an end
//! of file that lies inside a page zeroes the rest of that page.
//!
//! A direct write that makes its file longer is done alone by the host's file systems, waited for and with the
//! file's lock held. So one goes at a time; once several wait, the file is made longer before them, and they go
//! together (`notebook/performance-notes.md` has what else was tried).
//!
//! Owns: the turns of one file's writes, and how long it is made ahead of those that wait.
//! Does not own: the order of writes to the same bytes: the engine has only one of those in flight; sizes on
//! the host (`file`).
//! Invariants: first come, first served where a write wants to be alone, so that neither kind starves. A flight has
//! its turn until it is answered or dropped. A file is made no longer than the engine has accepted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::flight::Flight;

const PAGE_BYTES: u64 = 4096;
/// How far ahead of those that wait a file is made longer at most. The host waits for what is in flight then, which
/// is to happen seldom; after a crash, so much of what was not synced may be zeros.
const AHEAD_BYTES: u64 = 64 << 20;

/// Whether others may have their turn meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    /// All of this kind, and one that makes the file longer.
    Together,
    /// It makes the file longer, by whole pages: one at a time, with those that do not.
    Longer,
    /// Nobody.
    Alone,
}

/// How a write begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begins {
    /// At once.
    As(Share),
    /// It has the file made this long first, for others that wait too.
    Leads(u64),
}

/// A write, as far as its turn depends on it.
pub(super) trait Write {
    /// Where it ends in the file.
    fn end(&self) -> u64;

    /// The size that was accepted for the file.
    fn file_bytes(&self) -> u64;
}

/// The turns of a file.
#[derive(Default)]
pub(super) struct Turns(Mutex<State<Box<Flight>>>);

/// A turn; it ends when this is dropped.
pub(super) struct Turn {
    turns: Arc<Turns>,
    share: Share,
    /// The file is at least this long by what was written in it.
    size: u64,
}

struct State<W> {
    together: u32,
    alone: bool,
    /// One makes the file longer, or has it made longer.
    longer: bool,
    /// Those that wait for that.
    longer_next: VecDeque<W>,
    /// One that wants to be alone, and those that came after it.
    waiting: VecDeque<(Share, W)>,
}

impl<W> Default for State<W> {
    fn default() -> Self {
        Self { together: 0, alone: false, longer: false, longer_next: VecDeque::new(), waiting: VecDeque::new() }
    }
}

/// Writes that begin.
type Begun<W> = Vec<(Begins, W)>;

impl<W: Write> State<W> {
    /// A write comes.
    fn enter(&mut self, share: Share, write: W) -> Option<(Begins, W)> {
        if self.waiting.is_empty() {
            return self.admit(share, write);
        }
        self.waiting.push_back((share, write));
        None
    }

    /// One that had its turn has ended; the file is at least `size` long.
    fn leave(&mut self, share: Share, size: u64) -> Begun<W> {
        let mut begun = Vec::new();
        match share {
            Share::Together => self.together -= 1,
            Share::Alone => self.alone = false,
            Share::Longer => self.longer_ends(size, &mut begun),
        }
        self.admit_waiting(&mut begun);
        begun
    }

    /// The one that leads had the file made so long; it goes on like those that are inside now.
    fn grown(&mut self, size: u64) -> Begun<W> {
        let mut begun = Vec::new();
        self.together += 1;
        self.longer_ends(size, &mut begun);
        self.admit_waiting(&mut begun);
        begun
    }

    fn admit(&mut self, share: Share, write: W) -> Option<(Begins, W)> {
        let free = match share {
            Share::Together => !self.alone,
            Share::Longer => !self.alone && !self.longer,
            Share::Alone => !self.alone && !self.longer && self.together == 0,
        };
        match share {
            Share::Longer if !free && !self.alone => {
                self.longer_next.push_back(write);
                return None;
            }
            _ if !free => {
                self.waiting.push_back((share, write));
                return None;
            }
            Share::Together => self.together += 1,
            Share::Longer => self.longer = true,
            Share::Alone => self.alone = true,
        }
        Some((Begins::As(share), write))
    }

    fn admit_waiting(&mut self, begun: &mut Begun<W>) {
        for (share, write) in std::mem::take(&mut self.waiting) {
            if self.waiting.is_empty() {
                begun.extend(self.admit(share, write));
            } else {
                self.waiting.push_back((share, write));
            }
        }
    }

    /// Of those that waited, the ones that are inside now begin; of the others one does, on behalf of all.
    fn longer_ends(&mut self, size: u64, begun: &mut Begun<W>) {
        self.longer = false;
        let (inside, beyond): (VecDeque<W>, VecDeque<W>) =
            std::mem::take(&mut self.longer_next).into_iter().partition(|write| write.end() <= size);
        self.together += inside.len() as u32;
        begun.extend(inside.into_iter().map(|write| (Begins::As(Share::Together), write)));
        let ahead = ahead(&beyond);
        self.longer_next = beyond;
        if let Some(first) = self.longer_next.pop_front() {
            self.longer = true;
            let alone = self.longer_next.is_empty();
            begun.push((if alone { Begins::As(Share::Longer) } else { Begins::Leads(ahead) }, first));
        }
    }
}

/// How long a file is made before these are written: as long as they need it, and as was accepted, which others
/// that come soon will need.
fn ahead<W: Write>(writes: &VecDeque<W>) -> u64 {
    let end = writes.iter().map(W::end).max().unwrap_or(0);
    let accepted = writes.iter().map(W::file_bytes).max().unwrap_or(0);
    end.max((accepted - accepted % PAGE_BYTES).min(end.saturating_add(AHEAD_BYTES)))
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, State<Box<Flight>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the flight its turn and returns it, or keeps it until it has it.
    pub(super) fn enter(self: &Arc<Self>, share: Share, flight: Box<Flight>) -> Option<Box<Flight>> {
        let begun = self.lock().enter(share, flight);
        begun.map(|begun| self.give_turn(begun))
    }

    fn give_turn(self: &Arc<Self>, (begins, mut flight): (Begins, Box<Flight>)) -> Box<Flight> {
        let share = if let Begins::As(share) = begins { share } else { Share::Longer };
        flight.has_turn(Turn { turns: Arc::clone(self), share, size: 0 }, begins);
        flight
    }
}

impl Turn {
    /// The file was made this long for the flight that leads: its turn is one of those together now.
    pub(super) fn grown(&mut self, size: u64) {
        self.share = Share::Together;
        let begun = self.turns.lock().grown(size);
        begun.into_iter().for_each(|begun| super::launch(self.turns.give_turn(begun)));
    }

    /// The flight has written up to here.
    pub(super) fn wrote(&mut self, end: u64) {
        self.size = end;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let begun = self.turns.lock().leave(self.share, self.size);
        begun.into_iter().for_each(|begun| super::launch(self.turns.give_turn(begun)));
    }
}

#[cfg(test)]
mod tests;
