//! Two lists of evictable pages, as the kernel's: inactive and active.
//!
//! Owns: the lists. Does not own: the pages' states.
//! Invariants: new pages enter the inactive list; a page used there moves to the active one when the hand meets it. A
//! hit moves nothing. This lock is the last in the order. As in the kernel, the first use of a page is the one that it
//! was brought in for. Only a page used again counts as in use, so a stream that is read once leaves the active list
//! alone.

use std::sync::{Mutex, MutexGuard, PoisonError};

use afflux_engine::eviction::queue::{Queue, UNLISTED, listed};
use afflux_engine::eviction::{Arrival, Eviction, EvictionKind, FrameId, PageTable, Scan, UNEVICTABLE, is_clean};

/// The kernel's lists.
pub const TWO_LISTS: EvictionKind = EvictionKind {
    name: "two-list",
    about: "inactive and active pages, as the kernel's two lists",
    make: |_| Box::new(TwoLists::new()),
};

const INACTIVE: u8 = 1;
const ACTIVE: u8 = 2;

struct TwoLists {
    lists: Mutex<[Queue; 2]>,
}

impl TwoLists {
    fn new() -> Self {
        Self { lists: Mutex::new([Queue::new(INACTIVE), Queue::new(ACTIVE)]) }
    }

    fn lock(&self) -> MutexGuard<'_, [Queue; 2]> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Links a page that can go, unless it is linked.
fn link(pages: &PageTable, lists: &mut [Queue; 2], frame: FrameId) {
    if is_clean(pages, frame) && listed(pages, frame) == UNLISTED {
        lists[slot(INACTIVE)].push_head(pages, frame);
    }
}

impl Eviction for TwoLists {
    fn admitted(&self, pages: &PageTable, arrivals: &[Arrival]) {
        if arrivals.iter().all(|arrival| arrival.is_written()) {
            return;
        }
        let mut lists = self.lock();
        for arrival in arrivals.iter().filter(|arrival| !arrival.is_written()) {
            link(pages, &mut lists, arrival.frame);
        }
    }

    fn cleaned(&self, pages: &PageTable, frames: &mut dyn Iterator<Item = FrameId>) {
        let mut lists = self.lock();
        frames.for_each(|frame| link(pages, &mut lists, frame));
    }

    fn removed(&self, pages: &PageTable, frames: &[FrameId]) {
        // The lock is needed: a scan may have the frame off its list for a moment.
        let mut lists = self.lock();
        frames.iter().for_each(|frame| unlink(pages, &mut lists, *frame));
    }

    fn victims(&self, pages: &PageTable, count: usize, scan_max: u64) -> Scan {
        let mut lists = self.lock();
        let mut scan = Scan::new(count, scan_max);
        refill_inactive(pages, &mut lists, &mut scan);
        while scan.may_go_on() {
            let Some(frame) = lists[slot(INACTIVE)].tail() else {
                break;
            };
            scan.scanned += 1;
            unlink(pages, &mut lists, frame);
            let word = pages.word(frame);
            if word.has_any(UNEVICTABLE) {
                scan.pass_over(pages, frame, word);
                continue;
            }
            if pages.take_uses(frame) > 1 {
                lists[slot(ACTIVE)].push_head(pages, frame);
            } else if word.is_held() {
                lists[slot(INACTIVE)].push_head(pages, frame);
            } else {
                scan.take(pages, frame, false);
            }
        }
        if scan.victims.is_empty() {
            // All inactive pages are held, or in use: the next look is at the oldest active ones.
            demote(pages, &mut lists, count);
        }
        scan
    }
}

/// Keeps the inactive list at least as long as the active one, by moving unused pages down.
fn refill_inactive(pages: &PageTable, lists: &mut [Queue; 2], scan: &mut Scan) {
    for _ in 0..scan.wanted.1 {
        if lists[slot(INACTIVE)].count() >= lists[slot(ACTIVE)].count() {
            return;
        }
        let Some(frame) = lists[slot(ACTIVE)].tail() else {
            return;
        };
        unlink(pages, lists, frame);
        let word = pages.word(frame);
        if word.has_any(UNEVICTABLE) {
            scan.pass_over(pages, frame, word);
            continue;
        }
        let to = if pages.take_uses(frame) > 0 { ACTIVE } else { INACTIVE };
        lists[slot(to)].push_head(pages, frame);
    }
}

/// Moves pages from the active list's tail to the inactive one's.
fn demote(pages: &PageTable, lists: &mut [Queue; 2], count: usize) {
    for _ in 0..count {
        let Some(frame) = lists[slot(ACTIVE)].tail() else {
            return;
        };
        unlink(pages, lists, frame);
        lists[slot(INACTIVE)].push_tail(pages, frame);
    }
}

fn slot(list: u8) -> usize {
    usize::from(list - 1)
}

fn unlink(pages: &PageTable, lists: &mut [Queue; 2], frame: FrameId) {
    let on = listed(pages, frame);
    if on != UNLISTED {
        lists[slot(on)].unlink(pages, frame, UNLISTED);
    }
}

#[cfg(test)]
mod tests;
