//! Records as a later process finds them.
//!
//! Owns: what a record means after a kill; the return of a record to a state between two steps.
//! Does not own: the rules about several records (`recovery::look`).
//! Invariants: any bytes are read without harm. A record that is being settled has the same meaning after each store.

use afflux_frames::FrameId;

use super::table::Marked;
use super::{
    DETACHED, DIRTY, FAILED, PRESENT, PRIOR, PageIdentity, PageTable, READING, REUSES, Sectors, UPTODATE, WRITEBACK,
    Word,
};

/// All flags that there are.
const KNOWN: u64 = PRESENT | UPTODATE | DIRTY | WRITEBACK | READING | DETACHED | PRIOR | FAILED;

/// What a record means after a kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundRecord {
    /// No page, or a clean one.
    Nothing,
    /// A page with accepted sectors that the device may not have.
    Dirty {
        /// File and page number that the frame was found with.
        identity: PageIdentity,
        /// The sectors.
        dirty: Sectors,
    },
    /// No thread leaves a frame like this, and it may have had a dirty page.
    Illegal,
}

impl PageTable {
    /// Frames of all pages that were found.
    pub fn frames(&self) -> impl Iterator<Item = FrameId> + use<> {
        (0..self.count()).map(FrameId::new)
    }

    /// The meaning of the frame after a kill, by its mark. In memory without marks, by its record.
    pub fn found(&self, frame: FrameId) -> FoundRecord {
        let (word, dirty) = (self.word(frame), self.dirty(frame));
        let may_be_dirty = word.has(PRESENT) && !dirty.is_empty();
        let found = |dirty| FoundRecord::Dirty { identity: self.identity(frame), dirty };
        match self.marked(frame) {
            Marked::Dirty(dirty) => found(dirty),
            Marked::Damaged => FoundRecord::Illegal,
            // A mark comes before its record says so, and goes after that.
            Marked::Clean if may_be_dirty => FoundRecord::Illegal,
            Marked::Unknown if may_be_dirty && (!is_legal(word) || !self.valid(frame).contains(dirty)) => {
                FoundRecord::Illegal
            }
            Marked::Unknown if may_be_dirty => found(dirty),
            Marked::Clean | Marked::Unknown => FoundRecord::Nothing,
        }
    }

    /// Makes a found page dirty, without holders. It never had fewer dirty sectors, nor has it fewer valid ones at any
    /// moment.
    pub fn settle_found(&self, frame: FrameId, dirty: Sectors, valid: Sectors) {
        let uptodate = if valid == Sectors::ALL { UPTODATE } else { 0 };
        self.set_dirty(frame, dirty);
        self.set_sectors(frame, valid);
        self.set_word(frame, PRESENT | DIRTY | uptodate);
        self.forget_uses(frame);
    }

    /// Makes a frame free that holds nothing to persist.
    pub fn settle_free(&self, frame: FrameId) {
        self.set_word(frame, 0);
        self.forget_mark(frame);
        self.set_dirty(frame, Sectors::NONE);
        self.set_sectors(frame, Sectors::NONE);
        self.forget_uses(frame);
    }
}

/// Whether the flags of a present page are some that threads leave.
fn is_legal(word: Word) -> bool {
    let unknown = !(KNOWN | REUSES | super::HOLDERS);
    !word.has_any(unknown | DETACHED) && !word.has(DIRTY | WRITEBACK)
}
