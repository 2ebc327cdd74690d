//! S3-FIFO as published (Yang et al., SOSP '23, algorithm 1).
//!
//! Owns: its two queues and their ghost. Does not own: the pages' states, uses.
//! Invariants: as published, a page moves from the small queue to the main one if it was used more than once again
//! there. The ghost has as many entries as the main queue has frames. In the publication every page can go. Here a page
//! that cannot go leaves its queue at the hand, and returns when clean. The use for which a page was brought in counts
//! as its arrival.

use std::sync::Mutex;

use afflux_frames::FrameId;

use super::ghost::Ghost;
use super::queue::{Queue, UNLISTED, forget, listed};
use super::{Admitted, Arrival, Eviction, PageKey, Scan, UNEVICTABLE, is_clean};
use crate::page::{DIRTY, PageTable};
use crate::sync::OwnLines;
use crate::wait::lock;

const SMALL: u8 = 1;
const MAIN: u8 = 2;
/// On no queue: the page was remembered, and goes to main when it is clean.
const COMING_BACK: u8 = 3;

/// Looks at each page of a queue, and at all of them, after which the remaining pages count as held.
const LOOKS_A_PAGE: u64 = 4;
const LOOKS_MAX: u64 = 128;
/// Uses in the small queue that move a page to the main one.
const MOVE_HITS: u8 = 2;

pub(super) struct S3Fifo {
    small_max: u64,
    ghost: Ghost,
    queues: OwnLines<Mutex<Queues>>,
}

struct Queues {
    small: Queue,
    main: Queue,
}

impl S3Fifo {
    pub(super) fn new(frames: u32) -> Self {
        let (frames, small_max) = (u64::from(frames), u64::from(frames) / 10);
        let queues = Queues { small: Queue::new(SMALL), main: Queue::new(MAIN) };
        Self { small_max, ghost: Ghost::new(frames - small_max), queues: OwnLines(Mutex::new(queues)) }
    }
}

impl Queues {
    fn on(&mut self, number: u8) -> Option<&mut Queue> {
        match number {
            SMALL => Some(&mut self.small),
            MAIN => Some(&mut self.main),
            _ => None,
        }
    }

    /// The queue that gives the next victim, if that should be `from`, after `stayed` pages stayed: the other one by
    /// turns, if all pages of `from` must be held. The publication has no such pages.
    fn victim_queue(&mut self, from: u8, stayed: u64) -> u8 {
        let (own, other) = if from == SMALL { (&self.small, &self.main) } else { (&self.main, &self.small) };
        let all_held = stayed >= (LOOKS_A_PAGE * own.len()).min(LOOKS_MAX);
        if all_held && other.len() > 0 && stayed.is_multiple_of(2) { SMALL + MAIN - from } else { from }
    }

    fn list(&mut self, pages: &PageTable, frame: FrameId) {
        if is_clean(pages, frame) {
            match listed(pages, frame) {
                UNLISTED => self.small.push_head(pages, frame),
                COMING_BACK => self.main.push_head(pages, frame),
                _ => {}
            }
        }
    }
}

impl Eviction for S3Fifo {
    fn admitted(&self, pages: &PageTable, arrivals: &[Arrival]) {
        for arrival in arrivals {
            if arrival.why != Admitted::Ahead && self.ghost.take(arrival.key) {
                pages.set_list(arrival.frame, COMING_BACK);
            }
            if arrival.is_written() {
                pages.note_used(arrival.frame);
            }
        }
        if !arrivals.iter().all(Arrival::is_written) {
            let mut queues = lock(&self.queues);
            arrivals.iter().for_each(|arrival| queues.list(pages, arrival.frame));
        }
    }

    fn cleaned(&self, pages: &PageTable, frames: &mut dyn Iterator<Item = FrameId>) {
        let mut queues = lock(&self.queues);
        frames.for_each(|frame| queues.list(pages, frame));
    }

    fn replaced(&self, pages: &PageTable, old: FrameId, new: FrameId) {
        pages.copy_hits(old, new);
        pages.note_used(new);
        pages.touch(new);
        if matches!(listed(pages, old), MAIN | COMING_BACK) {
            pages.set_list(new, COMING_BACK);
        }
        if !pages.word(new).any(DIRTY) {
            lock(&self.queues).list(pages, new);
        }
    }

    fn removed(&self, pages: &PageTable, frames: &[FrameId]) {
        let mut queues = lock(&self.queues);
        frames.iter().for_each(|frame| forget(queues.on(listed(pages, *frame)), pages, *frame));
    }

    fn remember(&self, keys: &[PageKey]) {
        self.ghost.note(keys);
    }

    fn victims(&self, pages: &PageTable, count: usize, scan_max: u64) -> Scan {
        let mut queues = lock(&self.queues);
        let mut scan = Scan::new(count, scan_max);
        let mut stayed = 0;
        while scan.goes_on() {
            let small_gives = queues.small.len() > self.small_max || queues.main.len() == 0;
            let from = queues.victim_queue(if small_gives { SMALL } else { MAIN }, stayed);
            stayed += 1;
            let Some(frame) = queues.on(from).and_then(|queue| queue.tail()) else {
                break;
            };
            scan.scanned += 1;
            let word = pages.word(frame);
            queues.on(from).expect("it has a tail").unlink(pages, frame, UNLISTED);
            if word.any(UNEVICTABLE) {
                scan.pass_over(pages, frame, word);
                if from == MAIN {
                    pages.set_list(frame, COMING_BACK);
                }
            } else if word.held() {
                queues.on(from).expect("it had a tail").push_head(pages, frame);
            } else if from == MAIN && pages.drop_hit(frame) || from == SMALL && pages.hits(frame) >= MOVE_HITS {
                if from == SMALL {
                    pages.take_hits(frame);
                }
                queues.main.push_head(pages, frame);
            } else {
                scan.take(pages, frame, from == SMALL);
                stayed = 0;
            }
        }
        scan
    }

    fn bytes(&self) -> u64 {
        self.ghost.bytes()
    }
}

#[cfg(test)]
mod tests;
