//! The lists of pages, and the owners of the pages.
//!
//! Owns: the inactive and the active list, isolated pages, the pages ahead of a reader.
//! Does not own: free frames (the zone's), the order of scans (`vmscan`).
//! Invariants: a frame with a page is on one list or isolated by one scanner. Files are read in order, so a file needs
//! no index: only the 64 pages from the next one on matter.

use std::collections::VecDeque;

/// Pages of a file that a lookup covers: more than two windows of readahead.
pub(super) const AHEAD_PAGES: u32 = 64;

/// The owner of the page in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Owner {
    pub(super) file: u32,
    pub(super) page: u32,
}

/// Why a scan cannot free a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// It is dirty, or under writeback, for the whole run. A scan puts it back at the head of the inactive list.
    Dirty,
    /// A process has mapped it and keeps using it. A scan of the inactive list moves it to the active one.
    Mapped,
}

/// A list of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    InactiveFile,
    ActiveFile,
}

/// Pages on the lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sizes {
    pub(super) inactive: u64,
    pub(super) active: u64,
    /// Pages that scanners have isolated.
    pub(super) isolated: u64,
}

/// The state of a file that is read.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The next page to read.
    next: u32,
    /// A bit for each page from there on that is in memory, at the page's number modulo 64.
    present: u64,
}

#[derive(Clone, Copy, Debug)]
enum Page {
    Of(Owner),
    /// A clean page that nobody reads any more.
    Unread,
    Held(Held),
}

/// The lists.
pub(super) struct Lru {
    /// The oldest page at the front.
    inactive: VecDeque<u32>,
    active: VecDeque<u32>,
    isolated: u64,
    pages: Vec<Page>,
    streams: Vec<Stream>,
}

impl Lru {
    pub(super) fn new(frames: u32, files: usize) -> Self {
        Self {
            inactive: VecDeque::new(),
            active: VecDeque::new(),
            isolated: 0,
            pages: vec![Page::Of(Owner::default()); frames as usize],
            streams: vec![Stream::default(); files],
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        let len = |list: &VecDeque<u32>| list.len() as u64;
        Sizes { inactive: len(&self.inactive), active: len(&self.active), isolated: self.isolated }
    }

    /// `add_to_page_cache_lru`.
    pub(super) fn add(&mut self, frame: u32, owner: Owner) {
        self.pages[frame as usize] = Page::Of(owner);
        self.streams[owner.file as usize].present |= bit(owner.page);
        self.inactive.push_back(frame);
    }

    pub(super) fn add_held(&mut self, frame: u32, held: Held) {
        self.pages[frame as usize] = Page::Held(held);
        self.inactive.push_back(frame);
    }

    pub(super) fn add_unread(&mut self, frame: u32) {
        self.pages[frame as usize] = Page::Unread;
        self.inactive.push_back(frame);
    }

    /// Whether the page is in memory. It must be at most 63 pages after the reader's next one.
    pub(super) fn has(&self, owner: Owner) -> bool {
        self.streams[owner.file as usize].present & bit(owner.page) != 0
    }

    /// Marks the page as read.
    pub(super) fn mark_read(&mut self, owner: Owner) {
        let stream = &mut self.streams[owner.file as usize];
        stream.present &= !bit(owner.page);
        stream.next = owner.page + 1;
    }

    /// `isolate_lru_pages`: moves up to `pages` from a list's tail to the scanner.
    pub(super) fn isolate(&mut self, list: List, pages: u64) -> Vec<u32> {
        let from = match list {
            List::InactiveFile => &mut self.inactive,
            List::ActiveFile => &mut self.active,
        };
        let count = (pages as usize).min(from.len());
        self.isolated += count as u64;
        from.drain(..count).collect()
    }

    /// `shrink_page_list` without the frames: leaves those of `isolated` that can be freed, and puts the others back.
    pub(super) fn shrink(&mut self, isolated: &mut Vec<u32>) {
        self.isolated -= isolated.len() as u64;
        isolated.retain(|frame| match self.pages[*frame as usize] {
            Page::Of(owner) => {
                let stream = &mut self.streams[owner.file as usize];
                if owner.page >= stream.next {
                    stream.present &= !bit(owner.page);
                }
                true
            }
            Page::Unread => true,
            Page::Held(held) => {
                match held {
                    Held::Dirty => self.inactive.push_back(*frame),
                    Held::Mapped => self.active.push_back(*frame),
                }
                false
            }
        });
    }

    /// `shrink_active_list` for isolated pages: none of them is a program's code, so all go to the inactive list.
    pub(super) fn deactivate(&mut self, isolated: &[u32]) {
        self.isolated -= isolated.len() as u64;
        self.inactive.extend(isolated);
    }
}

fn bit(page: u32) -> u64 {
    1 << (page % AHEAD_PAGES)
}
