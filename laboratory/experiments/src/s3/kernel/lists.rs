//! The pages of the simulated kernel's cache: their owners, and the two lists.
//!
//! Owns: the lists, the pages that scanners have isolated, the pages ahead of a reader.
//! Does not own: free frames (the zone's), the order of scans (`afflux_linux_policies::reclaim`).
//! Invariants: a frame with a page is on one list or isolated by one scanner. Files are read in order, so a file needs
//! no index: only the 64 pages from the next one on matter.

use std::collections::VecDeque;

use afflux_linux_policies::reclaim::{List, Sizes};

/// Pages of a file that a lookup covers: more than two windows of readahead.
pub(super) const AHEAD_PAGES: u32 = 64;

/// The owner of the page in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Owner {
    pub(super) file: u32,
    pub(super) page: u32,
}

/// The state of a file that is read.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The next page to read.
    next: u32,
    /// A bit for each page from there on that is in memory, at the page's number modulo 64.
    present: u64,
}

/// The two lists of pages.
pub(super) struct Lists {
    /// The oldest page at the front.
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

    /// Adds a page that has come into memory.
    pub(super) fn add(&mut self, frame: u32, owner: Owner) {
        self.owners[frame as usize] = owner;
        self.streams[owner.file as usize].present |= bit(owner.page);
        self.inactive.push_back(frame);
    }

    /// Whether the page is in memory. It must be at most 63 pages after the reader's next one.
    pub(super) fn has(&self, owner: Owner) -> bool {
        self.streams[owner.file as usize].present & bit(owner.page) != 0
    }

    /// Marks the page as read.
    pub(super) fn was_read(&mut self, owner: Owner) {
        let stream = &mut self.streams[owner.file as usize];
        stream.present &= !bit(owner.page);
        stream.next = owner.page + 1;
    }

    /// Moves up to `pages` from a list's tail to the scanner.
    pub(super) fn isolate(&mut self, list: List, pages: u64, into: &mut Vec<u32>) {
        let from = match list {
            List::Inactive => &mut self.inactive,
            List::Active => &mut self.active,
        };
        let count = (pages as usize).min(from.len());
        into.extend(from.drain(..count));
        self.isolated += count as u64;
    }

    /// Removes pages that are no longer in memory.
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

    /// Moves unused pages of the active list to the inactive one.
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
