//! SIEVE as published (Zhang et al., NSDI '24): one queue, and a hand that goes from its tail to its head.
//!
//! Owns: the queue and the hand. Does not own: the pages' states, uses.
//! Invariants: a page used since the hand passed it stays in its place; new pages enter at the head. In the publication
//! every page can go. Here a page that cannot go leaves the queue at the hand, and returns when clean. The use for
//! which a page was brought in counts as its arrival.

use std::sync::Mutex;

use afflux_frames::FrameId;

use super::queue::{Queue, UNLISTED, listed};
use super::{Arrival, Eviction, Scan, UNEVICTABLE, is_clean};
use crate::page::{DIRTY, PageTable};
use crate::sync::OwnLines;
use crate::wait::lock;

const QUEUED: u8 = 1;

/// The policy, on cache lines of its own.
pub(super) struct Sieve {
    line: OwnLines<Mutex<Line>>,
}

struct Line {
    queue: Queue,
    /// The page to look at next; the tail if there is none.
    hand: Option<FrameId>,
}

impl Sieve {
    pub(super) fn new() -> Self {
        Self { line: OwnLines(Mutex::new(Line { queue: Queue::new(QUEUED), hand: None })) }
    }
}

impl Line {
    fn list(&mut self, pages: &PageTable, frame: FrameId) {
        if is_clean(pages, frame) && listed(pages, frame) == UNLISTED {
            self.queue.push_head(pages, frame);
        }
    }

    fn unlink(&mut self, pages: &PageTable, frame: FrameId) {
        if self.hand == Some(frame) {
            self.hand = Queue::newer(pages, frame);
        }
        self.queue.unlink(pages, frame, UNLISTED);
    }
}

impl Eviction for Sieve {
    fn admitted(&self, pages: &PageTable, arrivals: &[Arrival]) {
        arrivals.iter().filter(|arrival| arrival.is_written()).for_each(|arrival| pages.note_used(arrival.frame));
        if !arrivals.iter().all(Arrival::is_written) {
            let mut line = lock(&self.line);
            arrivals.iter().for_each(|arrival| line.list(pages, arrival.frame));
        }
    }

    fn cleaned(&self, pages: &PageTable, frames: &mut dyn Iterator<Item = FrameId>) {
        let mut line = lock(&self.line);
        frames.for_each(|frame| line.list(pages, frame));
    }

    fn replaced(&self, pages: &PageTable, old: FrameId, new: FrameId) {
        pages.copy_hits(old, new);
        pages.note_used(new);
        pages.touch(new);
        if !pages.word(new).any(DIRTY) {
            lock(&self.line).list(pages, new);
        }
    }

    fn removed(&self, pages: &PageTable, frames: &[FrameId]) {
        let mut line = lock(&self.line);
        for frame in frames.iter().filter(|frame| listed(pages, **frame) == QUEUED) {
            line.unlink(pages, *frame);
        }
    }

    fn victims(&self, pages: &PageTable, count: usize, scan_max: u64) -> Scan {
        let mut line = lock(&self.line);
        let mut scan = Scan::new(count, scan_max);
        while scan.goes_on() {
            let Some(frame) = line.hand.or_else(|| line.queue.tail()) else {
                break;
            };
            scan.scanned += 1;
            let word = pages.word(frame);
            if word.any(UNEVICTABLE) {
                line.hand = Some(frame);
                line.unlink(pages, frame);
                scan.pass_over(pages, frame, word);
            } else if pages.take_hits(frame) > 0 || word.held() {
                line.hand = Queue::newer(pages, frame);
            } else {
                line.hand = Some(frame);
                line.unlink(pages, frame);
                scan.take(pages, frame, false);
            }
        }
        scan
    }
}

#[cfg(test)]
mod tests;
