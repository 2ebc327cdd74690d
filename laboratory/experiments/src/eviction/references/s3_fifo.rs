//! S3-FIFO as published (Yang et al., SOSP '23, algorithm 1).
//!
//! Owns: the policy. Does not own: the cache trait (`mod`).
//! Invariants: a page moves from the small queue to the main one if it was used more than once again there. The ghost
//! has as many entries as the main queue has frames. The use for which a page was brought in counts as its arrival. A
//! page read ahead never comes back through the ghost.

use super::Cache;
use super::lists::Lists;

const SMALL: u8 = 1;
const MAIN: u8 = 2;
const GHOST: u8 = 3;

/// Uses in the small queue that move a page to the main one.
const MOVE_HITS: u8 = 2;
/// The most uses that are counted.
const HITS_MAX: u8 = 3;

pub(in super::super) struct S3Fifo {
    frames: usize,
    small_max: usize,
    lists: Lists<3>,
    hits: Vec<u8>,
    unread: Vec<bool>,
    looked_at: u64,
}

impl S3Fifo {
    pub(in super::super) fn new(frames: usize, pages: usize) -> Self {
        let (hits, unread) = (vec![0; pages], vec![false; pages]);
        Self { frames, small_max: frames / 10, lists: Lists::new(pages), hits, unread, looked_at: 0 }
    }

    fn evict(&mut self) {
        loop {
            let small_gives = self.lists.len(SMALL) > self.small_max || self.lists.len(MAIN) == 0;
            let from = if small_gives { SMALL } else { MAIN };
            let Some(page) = self.lists.take_oldest(from) else { return };
            self.looked_at += 1;
            let hits = &mut self.hits[page as usize];
            match (from, *hits) {
                (SMALL, MOVE_HITS..) => *hits = 0,
                (MAIN, 1..) => *hits -= 1,
                (SMALL, _) => return self.remember(page),
                _ => return,
            }
            self.lists.put(page, MAIN);
        }
    }

    fn remember(&mut self, page: u32) {
        self.lists.put(page, GHOST);
        if self.lists.len(GHOST) > self.frames - self.small_max {
            self.lists.take_oldest(GHOST);
        }
    }
}

impl Cache for S3Fifo {
    fn used(&mut self, page: u32) {
        if !std::mem::take(&mut self.unread[page as usize]) {
            let hits = &mut self.hits[page as usize];
            *hits = (*hits + 1).min(HITS_MAX);
        }
    }

    fn insert(&mut self, page: u32, ahead: bool) {
        if self.lists.len(SMALL) + self.lists.len(MAIN) == self.frames {
            self.evict();
        }
        let comes_back = !ahead && self.lists.on(page) == GHOST;
        self.lists.put(page, if comes_back { MAIN } else { SMALL });
        (self.hits[page as usize], self.unread[page as usize]) = (0, ahead);
    }

    fn holds(&self, page: u32) -> bool {
        matches!(self.lists.on(page), SMALL | MAIN)
    }

    fn looked_at(&self) -> Option<u64> {
        Some(self.looked_at)
    }
}
