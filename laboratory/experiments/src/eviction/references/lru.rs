//! Evicts the least recently used page.
//!
//! Owns: the policy. Does not own: the cache trait (`mod`).
//! Invariants: a page that was read ahead counts as used at that time.

use super::Cache;
use super::lists::Lists;

const LIST: u8 = 1;

pub(in super::super) struct Lru {
    frames: usize,
    lists: Lists<1>,
}

impl Lru {
    pub(in super::super) fn new(frames: usize, pages: usize) -> Self {
        Self { frames, lists: Lists::new(pages) }
    }
}

impl Cache for Lru {
    fn touch(&mut self, page: u32, _: bool) -> bool {
        let there = self.holds(page);
        if there {
            self.lists.put(page, LIST);
        }
        there
    }

    fn insert(&mut self, page: u32, _: bool) {
        if self.lists.len(LIST) == self.frames {
            self.lists.take_oldest(LIST);
        }
        self.lists.put(page, LIST);
    }

    fn holds(&self, page: u32) -> bool {
        self.lists.on(page) == LIST
    }
}
