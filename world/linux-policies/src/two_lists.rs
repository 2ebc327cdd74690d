//! Two lists of evictable pages, as the kernel's: inactive and active.
//!
//! The active list gives pages to the inactive one while that is *low*: shorter than the active one divided by a ratio.
//! The ratio is the root of ten times the lists' GiB: 1 below a GiB, 3 at one, 10 at ten. A page that goes leaves a
//! shadow, the number of pages that have gone or were activated by then. If it comes back after no more of these than
//! the active list is long, it would have been used again on longer lists: it is activated at once. While pages come
//! back so, the active list gives pages whatever its length, and equal parts of both lists are looked at.
//!
//! Linux 6.1: `inactive_is_low`, `shrink_active_list`, `prepare_scan_count` and `mark_page_accessed` (mm/vmscan.c,
//! mm/swap.c); `workingset_refault`, `workingset_eviction` (mm/workingset.c, since 3.15); `filemap_add_folio`. Both the
//! shadows and the root for file pages are younger than 3.6, whose active list gives pages once it is longer than the
//! inactive one (`inactive_file_is_low`). Here all kernels have the lists of 6.1.
//!
//! Not modelled: anonymous pages; pages of programs' code, which an active list keeps; mapped pages, whose uses the
//! hand finds.
//!
//! Owns: the lists, the shadows. Does not own: the pages' states.
//! Invariants: new pages enter the inactive list; a page used there moves to the active one when the hand meets it. A
//! hit moves nothing. This lock is the last in the order. As in the kernel, the first use of a page is the one that it
//! was brought in for. Only a page used again counts as in use, so a stream that is read once leaves the active list
//! alone. There are at most as many shadows as pages.

mod shadows;

use std::sync::{Mutex, MutexGuard, PoisonError};

use afflux_engine::eviction::queue::{Queue, UNLISTED, listed};
use afflux_engine::eviction::{
    Arrival, Eviction, EvictionKind, FrameId, PageKey, PageTable, Scan, UNEVICTABLE, is_clean,
};

use shadows::Shadows;

/// The kernel's lists.
pub const TWO_LISTS: EvictionKind = EvictionKind {
    name: "two-list",
    about: "inactive and active pages, as the kernel's two lists",
    make: |frames| Box::new(TwoLists::new(frames)),
};

const INACTIVE: u8 = 1;
const ACTIVE: u8 = 2;
/// Pages of a GiB, as a power of two.
const GIB_BITS: u32 = 30 - 12;

struct TwoLists {
    lists: Mutex<Lists>,
}

struct Lists {
    inactive: Queue,
    active: Queue,
    shadows: Shadows,
    /// Whether a page was activated because of its shadow since the last look for victims.
    refaulted: bool,
}

impl TwoLists {
    fn new(frames: u32) -> Self {
        let lists = Lists {
            inactive: Queue::new(INACTIVE),
            active: Queue::new(ACTIVE),
            shadows: Shadows::new(frames),
            refaulted: false,
        };
        Self { lists: Mutex::new(lists) }
    }

    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many times longer than the inactive list the active one may be, if both have so many pages.
fn active_ratio(pages: u64) -> u64 {
    (10 * (pages >> GIB_BITS)).isqrt().max(1)
}

impl Lists {
    fn queue(&mut self, list: u8) -> &mut Queue {
        if list == ACTIVE { &mut self.active } else { &mut self.inactive }
    }

    /// Links a page that can go, unless it is linked.
    fn link(&mut self, pages: &PageTable, frame: FrameId, list: u8) {
        if is_clean(pages, frame) && listed(pages, frame) == UNLISTED {
            self.queue(list).push_head(pages, frame);
        }
    }

    fn unlink(&mut self, pages: &PageTable, frame: FrameId) {
        match listed(pages, frame) {
            UNLISTED => {}
            on => self.queue(on).unlink(pages, frame, UNLISTED),
        }
    }

    fn activate(&mut self, pages: &PageTable, frame: FrameId) {
        self.active.push_head(pages, frame);
        self.shadows.age(1);
    }

    /// A page that a reader wants comes: on the active list, if it went a short time ago.
    fn page_comes(&mut self, pages: &PageTable, arrival: &Arrival) {
        let distance = self.shadows.take(arrival.key);
        if arrival.is_written() {
            // It is rewritten, and its content of before would have been of no use.
            return;
        }
        let refaults = distance.is_some_and(|distance| distance <= self.active.count());
        if refaults && is_clean(pages, arrival.frame) && listed(pages, arrival.frame) == UNLISTED {
            self.activate(pages, arrival.frame);
            self.refaulted = true;
        } else {
            self.link(pages, arrival.frame, INACTIVE);
        }
    }

    fn is_inactive_low(&self) -> bool {
        let (inactive, active) = (self.inactive.count(), self.active.count());
        inactive * active_ratio(inactive + active) < active
    }

    /// Gives pages of the active list's tail to the inactive list if that is low, or if pages come back.
    fn deactivate(&mut self, pages: &PageTable, scan: &mut Scan) {
        let refaulted = std::mem::take(&mut self.refaulted);
        let (count, inactive) = (scan.wanted.0 as u64, self.inactive.count().max(1));
        let part = count.saturating_mul(self.active.count()) / inactive;
        for _ in 0..part.max(count).min(scan.wanted.1) {
            if !refaulted && !self.is_inactive_low() {
                return;
            }
            let Some(frame) = self.active.tail() else {
                return;
            };
            self.unlink(pages, frame);
            let word = pages.word(frame);
            if word.has_any(UNEVICTABLE) {
                scan.pass_over(pages, frame, word);
                continue;
            }
            forget_uses_but_one(pages, frame);
            self.inactive.push_head(pages, frame);
        }
    }

    /// Moves pages from the active list's tail to the inactive one's.
    fn demote(&mut self, pages: &PageTable, count: usize) {
        for _ in 0..count {
            let Some(frame) = self.active.tail() else {
                return;
            };
            self.unlink(pages, frame);
            self.inactive.push_tail(pages, frame);
        }
    }
}

/// On the inactive list, a page needs two uses to become active again. If it was used while it was active, one use is
/// enough.
fn forget_uses_but_one(pages: &PageTable, frame: FrameId) {
    if pages.take_uses(frame) > 0 {
        pages.touch(frame);
    }
}

impl Eviction for TwoLists {
    fn admitted(&self, pages: &PageTable, arrivals: &[Arrival]) {
        let mut lists = self.lock();
        arrivals.iter().for_each(|arrival| lists.page_comes(pages, arrival));
    }

    fn cleaned(&self, pages: &PageTable, frames: &mut dyn Iterator<Item = FrameId>) {
        let mut lists = self.lock();
        frames.for_each(|frame| lists.link(pages, frame, INACTIVE));
    }

    fn removed(&self, pages: &PageTable, frames: &[FrameId]) {
        // The lock is needed: a scan may have the frame off its list for a moment.
        let mut lists = self.lock();
        frames.iter().for_each(|frame| lists.unlink(pages, *frame));
    }

    fn remember(&self, keys: &[PageKey]) {
        let mut lists = self.lock();
        keys.iter().for_each(|key| lists.shadows.note(*key));
    }

    fn victims(&self, pages: &PageTable, count: usize, scan_max: u64) -> Scan {
        let mut lists = self.lock();
        let (mut scan, mut activates) = (Scan::new(count, scan_max), false);
        lists.deactivate(pages, &mut scan);
        while scan.may_go_on() {
            let Some(frame) = lists.inactive.tail() else {
                break;
            };
            scan.scanned += 1;
            lists.unlink(pages, frame);
            let word = pages.word(frame);
            if word.has_any(UNEVICTABLE) {
                scan.pass_over(pages, frame, word);
                continue;
            }
            if pages.take_uses(frame) > 1 {
                lists.activate(pages, frame);
                activates = true;
            } else if word.is_held() {
                lists.inactive.push_head(pages, frame);
            } else {
                scan.take(pages, frame, true);
            }
        }
        if scan.victims.is_empty() && !activates {
            // All inactive pages are held: the next look is at the oldest active ones.
            lists.demote(pages, count);
        }
        scan
    }

    fn bytes(&self) -> u64 {
        self.lock().shadows.bytes()
    }
}

#[cfg(test)]
mod tests;
