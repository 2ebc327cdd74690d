//! The pages of the simulated kernel's cache: whose they are, and the two lists that they are on.
//!
//! Owns: the lists, what is off them in scanners' hands, the pages that a reader has ahead of itself.
//! Does not own: free frames (the zone's), what is scanned when (`afflux_linux_policies::reclaim`).
//! Invariants: a frame with a page is on one list or isolated by one scanner. Files are read in order, so that a file
//! needs no index: of its pages those that matter lie in the 64 from the next one read on.

use std::collections::VecDeque;

use afflux_linux_policies::reclaim::{List, Sizes};

/// Pages of a file that are looked at: more than two windows of readahead.
pub(super) const AHEAD_PAGES: u32 = 64;

/// Whose page a frame has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Owner {
    pub(super) file: u32,
    pub(super) page: u32,
}

/// A file as its reader is in it.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The next page to be read.
    next: u32,
    /// A bit each of the pages from there on that are in memory, at the page's number modulo 64.
    present: u64,
}

/// The lists.
pub(super) struct Lists {
    /// The oldest at the front.
    inactive: VecDeque<u32>,
    active: VecDeque<u32>,
    isolated: u64,
    owners: Vec<Owner>,
    streams: Vec<Stream>,
}

impl Lists {
    pub(super) fn new(frames: u32, files: usize) -> Self {
        Self {
            inactive: VecDeque::new(),
            active: VecDeque::new(),
            isolated: 0,
            owners: vec![Owner::default(); frames as usize],
            streams: vec![Stream::default(); files],
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        let len = |list: &VecDeque<u32>| list.len() as u64;
        Sizes { inactive: len(&self.inactive), active: len(&self.active), isolated: self.isolated }
    }

    /// A page has come into memory.
    pub(super) fn add(&mut self, frame: u32, owner: Owner) {
        self.owners[frame as usize] = owner;
        self.streams[owner.file as usize].present |= bit(owner.page);
        self.inactive.push_back(frame);
    }

    /// Whether the page, at most 63 after the next one that its reader reads, is in memory.
    pub(super) fn has(&self, owner: Owner) -> bool {
        self.streams[owner.file as usize].present & bit(owner.page) != 0
    }

    /// The reader has read that page.
    pub(super) fn was_read(&mut self, owner: Owner) {
        let stream = &mut self.streams[owner.file as usize];
        stream.present &= !bit(owner.page);
        stream.next = owner.page + 1;
    }

    /// Takes up to `pages` off a list's tail, into the scanner's hands.
    pub(super) fn isolate(&mut self, list: List, pages: u64, into: &mut Vec<u32>) {
        let from = match list {
            List::Inactive => &mut self.inactive,
            List::Active => &mut self.active,
        };
        let count = (pages as usize).min(from.len());
        into.extend(from.drain(..count));
        self.isolated += count as u64;
    }

    /// These pages are no longer in memory.
    pub(super) fn freed(&mut self, frames: &[u32]) {
        self.isolated -= frames.len() as u64;
        for frame in frames {
            let Owner { file, page } = self.owners[*frame as usize];
            let stream = &mut self.streams[file as usize];
            if page >= stream.next {
                stream.present &= !bit(page);
            }
        }
    }

    /// These pages of the active list were not used since: they go to the inactive one.
    pub(super) fn deactivated(&mut self, frames: &[u32]) {
        self.isolated -= frames.len() as u64;
        self.inactive.extend(frames);
    }
}

fn bit(page: u32) -> u64 {
    1 << (page % AHEAD_PAGES)
}

#[cfg(test)]
mod tests;
