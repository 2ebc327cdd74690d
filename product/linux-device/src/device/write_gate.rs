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
//! Owns: the grants of one file's writes, and how far the file is extended ahead of waiting writes.
//! Does not own: the start of a write (`launch`); sizes on the host (`file`); the order of writes to the same bytes.
//! The engine has one of those in flight at a time.
//! Invariants: once a write waits to be alone, writes begin in order of arrival, so that neither kind starves. A write
//! has its grant until it is answered or dropped. A file is made no longer than the engine has accepted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PAGE_BYTES: u64 = 4096;
/// The most by which a file is extended beyond the waiting writes. The host waits for the writes in flight before it
/// extends a file, so extensions should be rare. After a crash, this many unsynced bytes may be zeros.
const AHEAD_BYTES: u64 = 64 << 20;

/// Which other writes may be under way meanwhile.
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
    As(WriteSharing),
    /// After an extension of the file to this size, on behalf of other waiting writes.
    Leads(u64),
}

/// A write, as far as its grant depends on it. A file holds the writes that wait, and each write holds its file: so a
/// grant knows its write by this trait alone.
pub(super) trait GatedWrite: Send {
    /// The end of the write in the file.
    fn end(&self) -> u64;

    /// The size that the engine has accepted for the file.
    fn file_bytes(&self) -> u64;

    /// The write holds its grant until it has ended.
    fn take_grant(&mut self, grant: WriteGrant, begins: Begins);

    /// Goes on, with its grant.
    fn begin(self: Box<Self>);
}

/// A write that has waited, or waits.
type WaitingWrite = Box<dyn GatedWrite>;

/// The grants of a file.
#[derive(Default)]
pub(super) struct WriteGate(Mutex<GateState>);

/// The permission to write; it ends when this is dropped.
pub(super) struct WriteGrant {
    gate: Arc<WriteGate>,
    sharing: WriteSharing,
    /// The file is at least this long through this write.
    size: u64,
}

#[derive(Default)]
struct GateState {
    together: u32,
    alone: bool,
    /// A write is making the file longer, or is extending it for others.
    longer: bool,
    /// Writes that wait for that write.
    longer_next: VecDeque<WaitingWrite>,
    /// A write that wants to be alone, and the writes that came after it.
    waiting: VecDeque<(WriteSharing, WaitingWrite)>,
}

/// Writes that begin.
type StartedWrites = Vec<(Begins, WaitingWrite)>;

impl GateState {
    /// Gives a write that comes its grant, if it may begin now.
    fn try_enter(&mut self, sharing: WriteSharing) -> bool {
        self.waiting.is_empty() && self.try_begin(sharing)
    }

    /// Queues a write that may not begin now.
    fn keep(&mut self, sharing: WriteSharing, write: WaitingWrite) {
        match sharing {
            WriteSharing::Longer if self.waiting.is_empty() && !self.alone => self.longer_next.push_back(write),
            _ => self.waiting.push_back((sharing, write)),
        }
    }

    /// A write's grant has ended; the file is at least `size` long.
    fn leave(&mut self, sharing: WriteSharing, size: u64) -> StartedWrites {
        let mut begun = Vec::new();
        match sharing {
            WriteSharing::Together => self.together -= 1,
            WriteSharing::Alone => self.alone = false,
            WriteSharing::Longer => self.extension_ends(size, &mut begun),
        }
        self.admit_waiting(&mut begun);
        begun
    }

    /// The leading write has extended the file to `size`, and goes on with the writes that end within it.
    fn grown(&mut self, size: u64) -> StartedWrites {
        let mut begun = Vec::new();
        self.together += 1;
        self.extension_ends(size, &mut begun);
        self.admit_waiting(&mut begun);
        begun
    }

    /// Gives a write its grant, if it may begin now.
    fn try_begin(&mut self, sharing: WriteSharing) -> bool {
        let is_free = match sharing {
            WriteSharing::Together => !self.alone,
            WriteSharing::Longer => !self.alone && !self.longer,
            WriteSharing::Alone => !self.alone && !self.longer && self.together == 0,
        };
        match sharing {
            _ if !is_free => {}
            WriteSharing::Together => self.together += 1,
            WriteSharing::Longer => self.longer = true,
            WriteSharing::Alone => self.alone = true,
        }
        is_free
    }

    fn admit_waiting(&mut self, begun: &mut StartedWrites) {
        for (sharing, write) in std::mem::take(&mut self.waiting) {
            if self.try_enter(sharing) {
                begun.push((Begins::As(sharing), write));
            } else {
                self.keep(sharing, write);
            }
        }
    }

    /// The waiting writes that end within `size` begin together. One of the others begins too, on behalf of all of
    /// them.
    fn extension_ends(&mut self, size: u64, begun: &mut StartedWrites) {
        self.longer = false;
        let (inside, beyond): (VecDeque<WaitingWrite>, VecDeque<WaitingWrite>) =
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
fn ahead(writes: &VecDeque<WaitingWrite>) -> u64 {
    let end = writes.iter().map(|write| write.end()).max().unwrap_or(0);
    let accepted = writes.iter().map(|write| write.file_bytes()).max().unwrap_or(0);
    end.max((accepted - accepted % PAGE_BYTES).min(end.saturating_add(AHEAD_BYTES)))
}

impl WriteGate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the write a grant and returns the write, or queues the write until then.
    pub(super) fn enter<W: GatedWrite + 'static>(
        self: &Arc<Self>,
        sharing: WriteSharing,
        mut write: Box<W>,
    ) -> Option<Box<W>> {
        let mut state = self.lock();
        if !state.try_enter(sharing) {
            state.keep(sharing, write);
            return None;
        }
        drop(state);
        write.take_grant(self.grant(sharing), Begins::As(sharing));
        Some(write)
    }

    /// A grant for a write that does not wait for one. None if it would have to.
    pub(super) fn enter_now(self: &Arc<Self>, sharing: WriteSharing) -> Option<WriteGrant> {
        self.lock().try_enter(sharing).then(|| self.grant(sharing))
    }

    fn grant(self: &Arc<Self>, sharing: WriteSharing) -> WriteGrant {
        WriteGrant { gate: Arc::clone(self), sharing, size: 0 }
    }

    /// Writes that have waited go on, each with its grant.
    fn begin(self: &Arc<Self>, begun: StartedWrites) {
        for (begins, mut write) in begun {
            let sharing = if let Begins::As(sharing) = begins { sharing } else { WriteSharing::Longer };
            write.take_grant(self.grant(sharing), begins);
            write.begin();
        }
    }
}

impl WriteGrant {
    /// The file was extended to `size` for this write. The grant of a leading write now counts as a shared one.
    pub(super) fn grown(&mut self, size: u64) {
        if self.sharing == WriteSharing::Alone {
            return;
        }
        self.sharing = WriteSharing::Together;
        let begun = self.gate.lock().grown(size);
        self.gate.begin(begun);
    }

    /// Records that the write has written up to `end`.
    pub(super) fn wrote(&mut self, end: u64) {
        self.size = end;
    }
}

impl Drop for WriteGrant {
    fn drop(&mut self) {
        let begun = self.gate.lock().leave(self.sharing, self.size);
        self.gate.begin(begun);
    }
}

#[cfg(test)]
mod tests;
