//! Two lists of evictable pages, as the kernel's: inactive and active.
//!
//! Owns: the lists, linked through the frame table.
//! Does not own: the pages' states. Links and the list number in a record change with this lock held.
//! Invariants: a frame is on at most one list. New pages enter the inactive list; a page used there
//! moves to the active one when the hand meets it. A hit moves nothing. This lock is the last in the
//! order. As with the kernel's, the first use of a page is the one that it was brought in for; only
//! one used again counts as in use, so that a stream that is read once leaves the active list alone.

use std::sync::Mutex;

use frames::FrameId;

use super::{Admitted, Eviction, PageKey, Scan, Victim};
use crate::page::{DIRTY, PRESENT, PRIOR, PageTable, READING, WRITEBACK};
use crate::wait::lock;

const NONE: u32 = u32::MAX;
const UNLISTED: u8 = 0;
const INACTIVE: u8 = 1;
const ACTIVE: u8 = 2;

/// The lists, on cache lines of their own.
#[repr(align(128))]
pub(crate) struct TwoLists {
    lists: Mutex<[List; 2]>,
}

struct List {
    head: u32,
    tail: u32,
    len: u64,
}

impl TwoLists {
    pub(crate) fn new() -> Self {
        let list = || List { head: NONE, tail: NONE, len: 0 };
        Self { lists: Mutex::new([list(), list()]) }
    }
}

/// Links a page that may go, unless it is linked.
fn link(pages: &PageTable, lists: &mut [List; 2], frame: FrameId) {
    let word = pages.word(frame);
    if word.has(PRESENT) && !word.any(DIRTY) && pages.list(frame) == UNLISTED {
        push(pages, lists, INACTIVE, frame);
    }
}

impl Eviction for TwoLists {
    fn admitted(&self, pages: &PageTable, frame: FrameId, _: PageKey, why: Admitted) {
        if why != Admitted::Written {
            link(pages, &mut lock(&self.lists), frame);
        }
    }

    fn cleaned(&self, pages: &PageTable, frames: &mut dyn Iterator<Item = FrameId>) {
        let mut lists = lock(&self.lists);
        frames.for_each(|frame| link(pages, &mut lists, frame));
    }

    /// It is unlinked when the hand meets it.
    fn dirtied(&self, _: &PageTable, _: FrameId) {}

    fn removed(&self, pages: &PageTable, frames: &[FrameId]) {
        // Not without the lock: a scan may have the frame off its list for a moment.
        let mut lists = lock(&self.lists);
        frames.iter().for_each(|frame| unlink(pages, &mut lists, *frame));
    }

    fn file_forgotten(&self, _: u64) {}

    fn victims(&self, pages: &PageTable, count: usize, scan_max: u64) -> Scan {
        let mut lists = lock(&self.lists);
        let mut scan = Scan { victims: Vec::with_capacity(count.min(scan_max as usize)), scanned: 0 };
        refill_inactive(pages, &mut lists, scan_max);
        while scan.victims.len() < count && scan.scanned < scan_max {
            let Some(frame) = tail(&lists, INACTIVE) else {
                break;
            };
            scan.scanned += 1;
            unlink(pages, &mut lists, frame);
            let word = pages.word(frame);
            if word.any(DIRTY | WRITEBACK | READING | PRIOR) {
                continue;
            }
            if pages.take_uses(frame) > 1 {
                push(pages, &mut lists, ACTIVE, frame);
            } else if word.held() {
                push(pages, &mut lists, INACTIVE, frame);
            } else {
                scan.victims.push(Victim { frame, identity: pages.identity(frame) });
            }
        }
        scan
    }
}

/// Keeps the inactive list at least as long as the active one, by moving unused pages down.
fn refill_inactive(pages: &PageTable, lists: &mut [List; 2], moves_max: u64) {
    for _ in 0..moves_max {
        if lists[slot(INACTIVE)].len >= lists[slot(ACTIVE)].len {
            return;
        }
        let Some(frame) = tail(lists, ACTIVE) else {
            return;
        };
        unlink(pages, lists, frame);
        if pages.word(frame).any(DIRTY | WRITEBACK | READING | PRIOR) {
            continue;
        }
        let to = if pages.take_uses(frame) > 0 { ACTIVE } else { INACTIVE };
        push(pages, lists, to, frame);
    }
}

fn slot(list: u8) -> usize {
    usize::from(list - 1)
}

fn tail(lists: &[List; 2], list: u8) -> Option<FrameId> {
    let tail = lists[slot(list)].tail;
    (tail != NONE).then(|| FrameId::new(tail))
}

fn push(pages: &PageTable, lists: &mut [List; 2], to: u8, frame: FrameId) {
    let list = &mut lists[slot(to)];
    pages.set_prev(frame, NONE);
    pages.set_next(frame, list.head);
    if list.head == NONE {
        list.tail = frame.raw();
    } else {
        pages.set_prev(FrameId::new(list.head), frame.raw());
    }
    list.head = frame.raw();
    list.len += 1;
    pages.set_list(frame, to);
}

fn unlink(pages: &PageTable, lists: &mut [List; 2], frame: FrameId) {
    let on = pages.list(frame);
    if on == UNLISTED {
        return;
    }
    let (prev, next) = pages.links(frame);
    let list = &mut lists[slot(on)];
    if prev == NONE {
        list.head = next;
    } else {
        pages.set_next(FrameId::new(prev), next);
    }
    if next == NONE {
        list.tail = prev;
    } else {
        pages.set_prev(FrameId::new(next), prev);
    }
    list.len -= 1;
    pages.set_list(frame, UNLISTED);
}

#[cfg(test)]
mod tests;
