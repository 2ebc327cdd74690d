//! One queue: first in, first out, or by the last use.
//!
//! Owns: both policies. Does not own: the cache trait (`mod`).
//! Invariants: under FIFO uses change nothing. A page that was read ahead counts as used at that time.

use super::Cache;
use super::lists::Lists;

const QUEUE: u8 = 1;

pub(in super::super) struct Queue {
    frames: usize,
    lists: Lists<1>,
    /// Whether a use puts a page first again.
    is_by_use: bool,
}

impl Queue {
    pub(in super::super) fn fifo(frames: usize, pages: usize) -> Self {
        Self { frames, lists: Lists::new(pages), is_by_use: false }
    }

    /// Evicts the least recently used page.
    pub(in super::super) fn lru(frames: usize, pages: usize) -> Self {
        Self { is_by_use: true, ..Self::fifo(frames, pages) }
    }
}

impl Cache for Queue {
    fn used(&mut self, page: u32) {
        if self.is_by_use {
            self.lists.put(page, QUEUE);
        }
    }

    fn insert(&mut self, page: u32, _: bool) {
        if self.lists.len(QUEUE) == self.frames {
            self.lists.take_oldest(QUEUE);
        }
        self.lists.put(page, QUEUE);
    }

    fn holds(&self, page: u32) -> bool {
        self.lists.on(page) == QUEUE
    }
}
