//! Which writes to one host file may be under way together.
//!
//! A file's last bytes that fill no block are written through the host's page cache, and all other bytes past it. The
//! host may change a page in its cache while a direct write of the same page, or of a neighbour in its folio, is in
//! flight. Then it may lose one of the two, and the next flush reports an input/output error. The host also changes
//! pages on its own: a write past an end of file that lies inside a page zeroes the rest of that page.
//!
//! The host's file systems do a write that makes its file longer alone, synchronously, and with the file's lock held.
//! So such writes go one at a time. Once several of them wait, the file is made longer first, and they go together
//! (`notebook/performance-notes.md` has the other approaches that were tried).
//!
//! Owns: the turns of one file's writes, and how far the file is extended ahead of waiting writes.
//! Does not own: the order of writes to the same bytes (the engine has only one of those in flight); sizes on the host
//! (`file`).
//! Invariants: once a write waits to be alone, writes begin in order of arrival, so that neither kind starves. A flight
//! has its turn until it is answered or dropped. A file is made no longer than the engine has accepted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::flight::RequestFlight;

const PAGE_BYTES: u64 = 4096;
/// The most by which a file is extended beyond the waiting writes. The host waits for the writes in flight before it
/// extends a file, so extensions should be rare. After a crash, this many unsynced bytes may be zeros.
const AHEAD_BYTES: u64 = 64 << 20;

/// Which other writes may have their turn meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WriteSharing {
    /// All writes of this kind, and one extending write.
    Together,
    /// For a write that makes the file longer by whole pages: one such write at a time, with those of the kind above.
    Longer,
    /// None.
    Alone,
}

/// How a write begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begins {
    /// At once.
    As(WriteSharing),
    /// After an extension of the file to this size, on behalf of other waiting writes.
    Leads(u64),
}

/// A write, as far as its turn depends on it.
pub(super) trait TurnWrite {
    /// The end of the write in the file.
    fn end(&self) -> u64;

    /// The size that the engine has accepted for the file.
    fn file_bytes(&self) -> u64;
}

/// The turns of a file.
#[derive(Default)]
pub(super) struct Turns(Mutex<TurnsState<Box<RequestFlight>>>);

/// A turn; it ends when this is dropped.
pub(super) struct WriteTurn {
    turns: Arc<Turns>,
    share: WriteSharing,
    /// The file is at least this long through this flight's write.
    size: u64,
}

struct TurnsState<W> {
    together: u32,
    alone: bool,
    /// A write is making the file longer, or is extending it for others.
    longer: bool,
    /// Writes that wait for that write.
    longer_next: VecDeque<W>,
    /// A write that wants to be alone, and the writes that came after it.
    waiting: VecDeque<(WriteSharing, W)>,
}

impl<W> Default for TurnsState<W> {
    fn default() -> Self {
        Self { together: 0, alone: false, longer: false, longer_next: VecDeque::new(), waiting: VecDeque::new() }
    }
}

/// Writes that begin.
type StartedWrites<W> = Vec<(Begins, W)>;

impl<W: TurnWrite> TurnsState<W> {
    /// A write comes.
    fn enter(&mut self, share: WriteSharing, write: W) -> Option<(Begins, W)> {
        if self.waiting.is_empty() {
            return self.admit(share, write);
        }
        self.waiting.push_back((share, write));
        None
    }

    /// A write's turn has ended; the file is at least `size` long.
    fn leave(&mut self, share: WriteSharing, size: u64) -> StartedWrites<W> {
        let mut begun = Vec::new();
        match share {
            WriteSharing::Together => self.together -= 1,
            WriteSharing::Alone => self.alone = false,
            WriteSharing::Longer => self.extension_ends(size, &mut begun),
        }
        self.admit_waiting(&mut begun);
        begun
    }

    /// The leading write has extended the file to `size`, and goes on with the writes that end within it.
    fn grown(&mut self, size: u64) -> StartedWrites<W> {
        let mut begun = Vec::new();
        self.together += 1;
        self.extension_ends(size, &mut begun);
        self.admit_waiting(&mut begun);
        begun
    }

    fn admit(&mut self, share: WriteSharing, write: W) -> Option<(Begins, W)> {
        if self.try_begin(share) {
            return Some((Begins::As(share), write));
        }
        match share {
            WriteSharing::Longer if !self.alone => self.longer_next.push_back(write),
            _ => self.waiting.push_back((share, write)),
        }
        None
    }

    /// Gives a write its turn, if it may begin now.
    fn try_begin(&mut self, share: WriteSharing) -> bool {
        let is_free = match share {
            WriteSharing::Together => !self.alone,
            WriteSharing::Longer => !self.alone && !self.longer,
            WriteSharing::Alone => !self.alone && !self.longer && self.together == 0,
        };
        match share {
            _ if !is_free => {}
            WriteSharing::Together => self.together += 1,
            WriteSharing::Longer => self.longer = true,
            WriteSharing::Alone => self.alone = true,
        }
        is_free
    }

    fn admit_waiting(&mut self, begun: &mut StartedWrites<W>) {
        for (share, write) in std::mem::take(&mut self.waiting) {
            if self.waiting.is_empty() {
                begun.extend(self.admit(share, write));
            } else {
                self.waiting.push_back((share, write));
            }
        }
    }

    /// The waiting writes that end within `size` begin together. One of the others begins too, on behalf of all of
    /// them.
    fn extension_ends(&mut self, size: u64, begun: &mut StartedWrites<W>) {
        self.longer = false;
        let (inside, beyond): (VecDeque<W>, VecDeque<W>) =
            std::mem::take(&mut self.longer_next).into_iter().partition(|write| write.end() <= size);
        self.together += inside.len() as u32;
        begun.extend(inside.into_iter().map(|write| (Begins::As(WriteSharing::Together), write)));
        let ahead = ahead(&beyond);
        self.longer_next = beyond;
        if let Some(first) = self.longer_next.pop_front() {
            self.longer = true;
            let alone = self.longer_next.is_empty();
            begun.push((if alone { Begins::As(WriteSharing::Longer) } else { Begins::Leads(ahead) }, first));
        }
    }
}

/// The size to which the file is extended before these writes: far enough for them, and up to the accepted size, which
/// writes that come soon will need.
fn ahead<W: TurnWrite>(writes: &VecDeque<W>) -> u64 {
    let end = writes.iter().map(W::end).max().unwrap_or(0);
    let accepted = writes.iter().map(W::file_bytes).max().unwrap_or(0);
    end.max((accepted - accepted % PAGE_BYTES).min(end.saturating_add(AHEAD_BYTES)))
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, TurnsState<Box<RequestFlight>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the flight a turn and returns the flight, or keeps the flight until then.
    pub(super) fn enter(
        self: &Arc<Self>,
        share: WriteSharing,
        flight: Box<RequestFlight>,
    ) -> Option<Box<RequestFlight>> {
        let begun = self.lock().enter(share, flight);
        begun.map(|begun| self.give_turn(begun))
    }

    /// A turn for a write that does not wait for one. None if it would have to.
    pub(super) fn enter_now(self: &Arc<Self>, share: WriteSharing) -> Option<WriteTurn> {
        let mut state = self.lock();
        let begins = state.waiting.is_empty() && state.try_begin(share);
        begins.then(|| WriteTurn { turns: Arc::clone(self), share, size: 0 })
    }

    fn give_turn(self: &Arc<Self>, (begins, mut flight): (Begins, Box<RequestFlight>)) -> Box<RequestFlight> {
        let share = if let Begins::As(share) = begins { share } else { WriteSharing::Longer };
        flight.has_turn(WriteTurn { turns: Arc::clone(self), share, size: 0 }, begins);
        flight
    }
}

impl WriteTurn {
    /// The file was extended to `size` for this flight. The turn of a leading flight now counts as a shared one.
    pub(super) fn grown(&mut self, size: u64) {
        if self.share == WriteSharing::Alone {
            return;
        }
        self.share = WriteSharing::Together;
        let begun = self.turns.lock().grown(size);
        begun.into_iter().for_each(|begun| super::launch(self.turns.give_turn(begun)));
    }

    /// Records that the flight has written up to `end`.
    pub(super) fn wrote(&mut self, end: u64) {
        self.size = end;
    }
}

impl Drop for WriteTurn {
    fn drop(&mut self) {
        let begun = self.turns.lock().leave(self.share, self.size);
        begun.into_iter().for_each(|begun| super::launch(self.turns.give_turn(begun)));
    }
}

#[cfg(test)]
mod tests;
