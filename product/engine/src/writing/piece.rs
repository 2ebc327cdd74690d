//! A piece of a write: what it has in hand, and why it stopped.
//!
//! Owns: the frames and the charge that a piece uses up.
//! Does not own: taking them (`writing`), the change of each page (`page`).
//! Invariants: a piece says what it lacks, and leaves the page unchanged for which it lacks it.

use afflux_frames::FrameId;

use crate::dirty::Charge;
use crate::reclaim::SpareFrames;

/// Why a piece stopped before its end.
pub(super) enum PieceEnd {
    Done,
    /// More frames are needed than were taken.
    Frames,
    /// The page has to be read first, or a request for it has to end.
    Page(u64),
    /// A copy into the page, or out of it, is in progress.
    Busy,
    /// The file is being cut at this moment.
    Cutting,
    Discarded,
}

/// A write's resources for dirtying pages.
pub(super) struct WriteResources<'a, 'c> {
    pub(super) spare: &'a mut SpareFrames<'c>,
    pub(super) charge: &'a mut Charge,
}

impl WriteResources<'_, '_> {
    /// A frame to fill. Prefetches the one after it meanwhile.
    pub(super) fn frame(&mut self) -> Result<FrameId, PieceEnd> {
        let frame = self.spare.take().ok_or(PieceEnd::Frames)?;
        self.spare.expect_copy();
        Ok(frame)
    }
}
