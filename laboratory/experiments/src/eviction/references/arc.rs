//! ARC as published (Megiddo and Modha, FAST '03, figure 4).
//!
//! Owns: the policy. Does not own: the cache trait (`mod`).
//! Invariants: the lists are the published ones, of pages used once and of pages used again, each with its ghost. The
//! paper covers demand reads alone. Here a page read ahead always enters the list of pages used once, without a look at
//! the ghosts. The first use of the page leaves it there.

use super::Cache;
use super::lists::Lists;

const ONCE: u8 = 1;
const AGAIN: u8 = 2;
const GONE_ONCE: u8 = 3;
const GONE_AGAIN: u8 = 4;

pub(in super::super) struct Arc {
    frames: usize,
    /// The number of frames that pages used once should have.
    target: usize,
    lists: Lists<4>,
    unread: Vec<bool>,
}

impl Arc {
    pub(in super::super) fn new(frames: usize, pages: usize) -> Self {
        Self { frames, target: 0, lists: Lists::new(pages), unread: vec![false; pages] }
    }

    /// Frees a frame: moves a page from one of the two lists to its ghost.
    fn replace(&mut self, was_gone_again: bool) {
        let once = self.lists.len(ONCE);
        let from_once = once > 0 && (once > self.target || was_gone_again && once == self.target);
        let (from, to) = if from_once || self.lists.len(AGAIN) == 0 { (ONCE, GONE_ONCE) } else { (AGAIN, GONE_AGAIN) };
        if let Some(page) = self.lists.take_oldest(from) {
            self.lists.put(page, to);
        }
    }

    fn is_full(&self) -> bool {
        self.lists.len(ONCE) + self.lists.len(AGAIN) >= self.frames
    }

    /// Brings in a page that is on no list.
    fn bring_new(&mut self, page: u32) {
        let once = self.lists.len(ONCE) + self.lists.len(GONE_ONCE);
        let all = once + self.lists.len(AGAIN) + self.lists.len(GONE_AGAIN);
        if once == self.frames {
            if self.lists.len(ONCE) < self.frames {
                self.lists.take_oldest(GONE_ONCE);
                if self.is_full() {
                    self.replace(false);
                }
            } else {
                self.lists.take_oldest(ONCE);
            }
        } else if all >= self.frames {
            if all == 2 * self.frames {
                self.lists.take_oldest(GONE_AGAIN);
            }
            if self.is_full() {
                self.replace(false);
            }
        }
        self.lists.put(page, ONCE);
    }
}

impl Cache for Arc {
    fn used(&mut self, page: u32) {
        let first = std::mem::take(&mut self.unread[page as usize]);
        self.lists.put(page, if first { ONCE } else { AGAIN });
    }

    fn insert(&mut self, page: u32, ahead: bool) {
        let (gone_once, gone_again) = (self.lists.len(GONE_ONCE), self.lists.len(GONE_AGAIN));
        let ghost = self.lists.on(page);
        self.unread[page as usize] = ahead;
        match ghost {
            GONE_ONCE | GONE_AGAIN if ahead => {
                self.lists.take(page);
                self.bring_new(page);
            }
            GONE_ONCE => {
                self.target = self.frames.min(self.target + (gone_again / gone_once).max(1));
                self.replace(false);
                self.lists.put(page, AGAIN);
            }
            GONE_AGAIN => {
                self.target = self.target.saturating_sub((gone_once / gone_again).max(1));
                self.replace(true);
                self.lists.put(page, AGAIN);
            }
            _ => self.bring_new(page),
        }
    }

    fn holds(&self, page: u32) -> bool {
        matches!(self.lists.on(page), ONCE | AGAIN)
    }
}
