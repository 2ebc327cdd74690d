//! Page states: one record a frame, and the legal transitions between states.
//!
//! Owns: the state word (pins, guards, writers, flags, reuses), the identity of a frame's page, which of its sectors
//! are valid and which are dirty.
//! Does not own: the bytes (`frames`), the lookup of a page (`cache::index`), lists of pages.
//! Invariants: the record, and after a kill its mark, says which sectors of which file are dirty. Identity is stored
//! before the page is marked, and the mark before a write is acknowledged; the mark is cleared after the device has the
//! bytes. Flags change only with the file's lock held. The exception is the release of a detached frame by its last
//! holder. A frame with `WRITEBACK` or a guard does not change.

mod entry;
mod found;
mod sectors;
mod table;
mod unread;

pub use entry::about_to_fill;
pub use found::FoundRecord;
pub use sectors::{SECTOR_BYTES, Sectors};
pub use table::{FrameRecord, PageIdentity, PageTable, mixed};
pub use unread::PagesAhead;

/// One transient reader: a copy in progress; does not exclude writers.
pub const PIN: u64 = 1;
/// One holder that relies on unchanged bytes.
pub const GUARD: u64 = 1 << 16;
/// One writer in the middle of a copy.
pub const WRITER: u64 = 1 << 32;

const PINS: u64 = GUARD - 1;
const GUARDS: u64 = (WRITER - 1) & !PINS;
const WRITERS: u64 = 0xfff << 32;
/// A guard that threads have in common: a page that has it is guarded for each thread that announces the frame
/// (`entry`). The highest bit of the guards' field.
pub(crate) const LENT: u64 = 1 << 31;
/// Guards above this are refused, far below where the field would overflow.
const GUARDS_MAX: u64 = 0x7000 << 16;

/// The frame is in its file's index.
pub const PRESENT: u64 = 1 << 44;
/// All sectors are valid.
pub const UPTODATE: u64 = 1 << 45;
/// Some sectors are newer than the device's, and no write of them is in flight.
pub const DIRTY: u64 = 1 << 46;
/// A device is writing from the frame.
pub const WRITEBACK: u64 = 1 << 47;
/// A read that fills the page is in flight.
pub const READING: u64 = 1 << 48;
/// No longer in the index; freed when the last holder and the last request are done.
pub const DETACHED: u64 = 1 << 49;
/// An older version of the page is still being written; this one has to wait for it.
pub const PRIOR: u64 = 1 << 50;
/// The last attempt to write the page failed.
pub const FAILED: u64 = 1 << 51;

/// The low bits of the number of times the frame was freed after holding a page; the record has the high bits. They
/// show a reader without a hold that the frame was not reused during its copy.
pub(crate) const REUSES: u64 = !0 << 53;
const REUSE: u64 = 1 << 53;

/// All holders' fields.
pub(crate) const HOLDERS: u64 = PINS | GUARDS | WRITERS;
const FLAGS: u64 = !(HOLDERS | REUSES);

/// A snapshot of a state word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// Whether all of these states hold.
    pub fn has(self, flags: u64) -> bool {
        self.0 & flags == flags
    }

    /// Whether any of these states holds.
    pub fn has_any(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// The states, without holders and reuses.
    pub fn flags(self) -> u64 {
        self.0 & FLAGS
    }

    pub(crate) fn is_guarded(self) -> bool {
        self.0 & GUARDS != 0
    }

    pub(crate) fn has_all_guards(self) -> bool {
        self.0 & GUARDS & !LENT >= GUARDS_MAX
    }

    /// Whether a writer is in the middle of a copy.
    pub fn is_being_written_to(self) -> bool {
        self.0 & WRITERS != 0
    }

    /// Whether there is a writer besides the caller.
    pub(crate) fn has_other_writers(self) -> bool {
        self.0 & WRITERS > WRITER
    }

    /// Whether anybody holds the frame, as far as the word shows. A lent guard may have no user: it can be recalled.
    pub fn is_held(self) -> bool {
        self.0 & HOLDERS & !LENT != 0
    }

    /// Whether a write has to go to another frame.
    pub fn is_stable(self) -> bool {
        self.has_any(WRITEBACK) || self.is_guarded()
    }
}

/// Checks a change of flags against the table of legal transitions.
///
/// | from | to |
/// | --- | --- |
/// | free | reading, dirty, clean (zeros past the device's end) |
/// | reading | clean, free (the read failed), detached |
/// | clean | dirty, reading (the missing sectors), detached |
/// | dirty | writeback, reading (likewise), clean (cut off), detached |
/// | writeback | clean, dirty (sectors remain, or failed), detached |
/// | detached | free |
pub(crate) fn is_legal(from: u64, to: u64) -> bool {
    let state = |word: u64| word & (PRESENT | DIRTY | WRITEBACK | READING | DETACHED);
    let (from, to) = (state(from), state(to));
    if to & DIRTY != 0 && to & WRITEBACK != 0 {
        return false;
    }
    if to & PRESENT != 0 && to & DETACHED != 0 || to & WRITEBACK != 0 && from & (DIRTY | WRITEBACK) == 0 {
        return false;
    }
    match (from & PRESENT != 0, to & PRESENT != 0) {
        (false, true) => from == 0 && to & WRITEBACK == 0,
        (true, true) => !(from & WRITEBACK != 0 && to & READING != 0 && from & READING == 0),
        (true, false) => to & DETACHED != 0 && to & DIRTY == 0,
        (false, false) => to & DIRTY == 0 && (to == 0 || from & DETACHED != 0),
    }
}

#[cfg(all(test, loom))]
mod loom_models;
#[cfg(test)]
mod tests;
