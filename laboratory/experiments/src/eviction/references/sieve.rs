//! SIEVE as published (Zhang et al., NSDI '24): one queue, and a hand that goes from its tail to its head.
//!
//! Owns: the policy. Does not own: the cache trait (`mod`).
//! Invariants: a page used since the hand passed it stays in its position; new pages enter at the head. The use for
//! which a page was brought in counts as its arrival.

use super::Cache;
use super::lists::Lists;

const QUEUE: u8 = 1;

pub(in super::super) struct Sieve {
    frames: usize,
    lists: Lists<1>,
    visited: Vec<bool>,
    unread: Vec<bool>,
    /// The page to look at next; the tail if there is none.
    hand: Option<u32>,
    looked_at: u64,
}

impl Sieve {
    pub(in super::super) fn new(frames: usize, pages: usize) -> Self {
        let (visited, unread) = (vec![false; pages], vec![false; pages]);
        Self { frames, lists: Lists::new(pages), visited, unread, hand: None, looked_at: 0 }
    }

    fn evict(&mut self) {
        while let Some(page) = self.hand.or_else(|| self.lists.oldest(QUEUE)) {
            self.looked_at += 1;
            self.hand = self.lists.newer(page);
            if !std::mem::take(&mut self.visited[page as usize]) {
                return self.lists.take(page);
            }
        }
    }
}

impl Cache for Sieve {
    fn used(&mut self, page: u32) {
        if !std::mem::take(&mut self.unread[page as usize]) {
            self.visited[page as usize] = true;
        }
    }

    fn insert(&mut self, page: u32, ahead: bool) {
        if self.lists.len(QUEUE) == self.frames {
            self.evict();
        }
        self.lists.put(page, QUEUE);
        (self.visited[page as usize], self.unread[page as usize]) = (false, ahead);
    }

    fn holds(&self, page: u32) -> bool {
        self.lists.on(page) == QUEUE
    }

    fn looked_at(&self) -> Option<u64> {
        Some(self.looked_at)
    }
}
