//! First in, first out.
//!
//! Owns: the policy. Does not own: the cache trait (`mod`). Invariants: uses change nothing.

use super::Cache;
use super::lists::Lists;

const QUEUE: u8 = 1;

pub(in super::super) struct Fifo {
    frames: usize,
    lists: Lists<1>,
}

impl Fifo {
    pub(in super::super) fn new(frames: usize, pages: usize) -> Self {
        Self { frames, lists: Lists::new(pages) }
    }
}

impl Cache for Fifo {
    fn touch(&mut self, page: u32, _: bool) -> bool {
        self.holds(page)
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
