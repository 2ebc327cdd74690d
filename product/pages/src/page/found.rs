//! Records as a later process finds them.
//!
//! Owns: what a record means after a kill; the return of a record to a state between two steps.
//! Does not own: the rules about several records (`recovery::look`).
//! Invariants: any bytes are read without harm. A record that is being settled has the same meaning after each store.

use afflux_frames::FrameId;

use super::table::Marked;
use super::{DIRTY, PRESENT, PageIdentity, PageTable, Sectors, UPTODATE};

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

    /// The meaning of the frame after a kill, by its mark.
    pub fn found(&self, frame: FrameId) -> FoundRecord {
        let may_be_dirty = self.word(frame).has(PRESENT) && !self.dirty(frame).is_empty();
        match self.marked(frame) {
            Marked::Dirty(dirty) => FoundRecord::Dirty { identity: self.identity(frame), dirty },
            Marked::Damaged => FoundRecord::Illegal,
            // A mark comes before its record says so, and goes after that.
            Marked::Clean if may_be_dirty => FoundRecord::Illegal,
            Marked::Clean => FoundRecord::Nothing,
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
