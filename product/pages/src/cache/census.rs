//! Where all frames are: counted one by one, for checks.
//!
//! Owns: the count. Does not own: any frame.
//! Invariants: exact where nothing else runs, as in a simulation between two steps; elsewhere a sample.

use afflux_frames::FrameId;

use super::PageCache;
use crate::page::{DETACHED, DIRTY, PRESENT, WRITEBACK};

/// How many frames are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Count of all frames.
    pub frames: u64,
    /// Count of free frames.
    pub free: u64,
    /// Frames in a file's index.
    pub cached: u64,
    /// Frames that hold parts of the files' indexes.
    pub index: u64,
    /// Frames taken out of an index that wait for their readers or writers.
    pub leaving: u64,
    /// Of `cached`: dirty, and not being written.
    pub dirty: u64,
    /// Being written since it was dirty, in an index or leaving.
    pub writeback: u64,
    /// Pages that files count as not yet written.
    pub unwritten: u64,
    /// Of `dirty`: pages of found files that nobody has adopted yet, which no file counts.
    pub unadopted: u64,
}

impl Census {
    /// Frames that are neither free nor hold a page or a part of an index: in the hands of a reader or a writer.
    pub fn in_transit(&self) -> i64 {
        self.frames as i64 - (self.free + self.cached + self.index + self.leaving) as i64
    }
}

impl PageCache {
    /// Counts all frames, in time proportional to their number. The files supply `unwritten` and `unadopted`.
    pub fn census(&self) -> Census {
        let mut census =
            Census { frames: self.frames.total().into(), free: self.frames.free_count().into(), ..Census::default() };
        census.index = self.nodes.frames();
        for frame in (0..self.frames.total()).map(FrameId::new) {
            let word = self.pages.word(frame);
            census.cached += u64::from(word.has(PRESENT));
            census.leaving += u64::from(word.has(DETACHED));
            census.dirty += u64::from(word.has(DIRTY));
            census.writeback += u64::from(word.has(WRITEBACK));
        }
        census
    }
}
