//! S3-FIFO with a correlation window: the policy in force unless another is asked for.
//!
//! Owns: its three queues, the fate of pages that were taken off a queue because they could not go.
//! Does not own: the pages' states; uses, which hits note; the memory of evicted pages (`ghost`); the rule in force,
//! and with it the size of the small queues, fresh and probation, which are measured (`rule_choice`).
//! Invariants: all queues are first in, first out; a hit moves nothing. This lock is the last in the order, and a
//! written page takes it only once it is clean.
//!
//! | a page | goes |
//! |-|-|
//! | that comes | to *fresh*; to *main* if it was read or written on demand and went from probation not long ago |
//! | at the tail of fresh, which has half of that size | to *probation*, its hits forgotten: a burst just after arrival is not popularity |
//! | at the tail of probation, hit since | to main |
//! | there, read ahead and not used yet | back to probation's head, three times, while such pages are at most a quarter of the frames |
//! | there otherwise | out of the cache; it is remembered |
//! | at the tail of main, hit since | back to main's head, with a hit less |
//! | there otherwise | out of the cache |
//! | that cannot go, in any of these | out of its queue; when it can, to main if hit, else to probation's tail |
//! | that is held, in any of these | back to the head |
//!
//! If the choice falls on the rule *keep*, the pages in fresh and probation are *adopted*. They go to main, but for as
//! many as the small queues may have. No page leaves the cache for that, and none is read. Some go
//! with each page that comes; meanwhile victims are found as ever. Under the rule without small queues a page comes to
//! main, and main's hand takes all hits of a page at once; fresh and probation drain into main.
//!
//! Probation gives first while it and fresh have more than their part of the frames. The limit is higher, up to 3/8,
//! while pages wait there for the reader they were read for. After [`LOOKS_MAX`] pages that stay, the next that can go
//! does.

use std::sync::Mutex;

use afflux_frames::FrameId;

use super::ghost::Ghost;
use super::queue::{Queue, UNLISTED, forget, listed};
use super::rule_choice::{InForce, RuleChoice};
use super::{Arrival, Eviction, EvictionKind, PageKey, Scan, UNEVICTABLE, is_clean};
use crate::page::{DIRTY, PageTable};
use crate::sync::OwnLines;
use crate::wait::lock;

const FRESH: u8 = 1;
const PROBATION: u8 = 2;
const MAIN: u8 = 3;
/// On no queue: a scan found the page while it could not go.
const PARKED: u8 = 4;
/// On no queue: the page has just come, or was written and has not been clean yet. It goes to fresh.
const COMING: u8 = 5;
/// As [`COMING`], but the page was remembered: it goes to main.
const COMING_BACK: u8 = 6;

/// Pages looked at in search of one, before the next that can go does. With fewer, a loop a little larger than the
/// cache loses ten points of its hits: main's pages then go in the order in which they come again.
const LOOKS_MAX: u64 = 128;
/// Checks of each page after which one that stays counts as held.
const LOOKS_A_PAGE: u64 = 4;

/// The most pages of fresh that move on when a page comes. So one arrival has little to do when the small queues
/// shrink.
const AGED_MAX: u64 = 2;
/// The most pages that become main's when a page comes, while pages are adopted.
const ADOPTED_MAX: u64 = 64;

pub(super) struct S3Window {
    sizes: Sizes,
    choice: RuleChoice,
    ghost: Ghost,
    queues: OwnLines<Mutex<Queues>>,
}

/// What does not depend on the small queues' size, in frames.
struct Sizes {
    /// Fresh and probation together, at most, for the sake of pages read ahead.
    small_max: u64,
    /// The most pages read ahead that nobody has used yet.
    unread_max: u64,
}

impl Sizes {
    fn of(frames: u64) -> Self {
        Self { small_max: frames * 3 / 8, unread_max: frames / 4 }
    }

    /// Frames of fresh and probation together above which probation gives.
    fn small_target(&self, small: u32, unread: u64) -> u64 {
        u64::from(small).max((unread + unread / 4).min(self.small_max))
    }
}

struct Queues {
    fresh: Queue,
    probation: Queue,
    main: Queue,
    /// [`InForce::adoptions`] when the last one began.
    adoptions: u32,
    /// Pages of the small queues that it has yet to look at.
    to_adopt: u64,
}

impl EvictionKind {
    /// S3-FIFO with a correlation window, a separate budget for unread pages, and dirty pages out of its queues.
    pub const S3_WINDOW: Self = Self {
        name: "s3-window",
        about: "s3-fifo that counts no burst after arrival, and spares pages read ahead and not yet used",
        make: |frames| Box::new(S3Window::new(frames)),
    };
}

impl Default for EvictionKind {
    fn default() -> Self {
        Self::S3_WINDOW
    }
}

impl S3Window {
    pub(super) fn new(frames: u32) -> Self {
        Self::with_choice(frames, RuleChoice::new(frames))
    }

    fn with_choice(frames: u32, choice: RuleChoice) -> Self {
        let frames = u64::from(frames);
        let queues = Queues {
            fresh: Queue::new(FRESH),
            probation: Queue::new(PROBATION),
            main: Queue::new(MAIN),
            adoptions: 0,
            to_adopt: 0,
        };
        Self {
            sizes: Sizes::of(frames),
            choice,
            ghost: Ghost::new(frames * 5 / 8),
            queues: OwnLines(Mutex::new(queues)),
        }
    }
}

impl Queues {
    /// The queue with this number.
    fn on(&mut self, number: u8) -> Option<&mut Queue> {
        match number {
            FRESH => Some(&mut self.fresh),
            PROBATION => Some(&mut self.probation),
            MAIN => Some(&mut self.main),
            _ => None,
        }
    }

    /// Puts an evictable page on its queue, unless it is on one.
    fn list(&mut self, pages: &PageTable, now: InForce, frame: FrameId) {
        if !is_clean(pages, frame) {
            return;
        }
        if self.adoptions != now.adoptions || self.to_adopt > 0 {
            self.adopt(pages, now);
        }
        match (listed(pages, frame), now.small) {
            (UNLISTED | COMING, Some(small)) => self.push_fresh(pages, small, frame),
            (UNLISTED | COMING, None) => self.push_recent(pages, frame),
            (COMING_BACK, _) => self.main.push_head(pages, frame),
            (PARKED, small) if pages.take_hits(frame) > 0 || small.is_none() => self.main.push_head(pages, frame),
            (PARKED, _) => self.probation.push_tail(pages, frame),
            _ => {}
        }
    }

    /// A page that comes moves older pages out of fresh first.
    fn push_fresh(&mut self, pages: &PageTable, small: u32, frame: FrameId) {
        self.fresh.push_head(pages, frame);
        let over = self.fresh.count().saturating_sub(fresh_max(small));
        (0..over.min(AGED_MAX)).for_each(|_| self.age(pages));
    }

    /// A page comes to main while there are no small queues: their pages become main's by age.
    fn push_recent(&mut self, pages: &PageTable, frame: FrameId) {
        for _ in 0..AGED_MAX {
            let queue = if self.probation.count() > 0 { &mut self.probation } else { &mut self.fresh };
            if let Some(oldest) = queue.tail() {
                queue.unlink(pages, oldest, UNLISTED);
                self.main.push_head(pages, oldest);
            }
        }
        self.main.push_head(pages, frame);
    }

    /// The pages in the cache become main's, the oldest first, but for as many as the small queues may have. Those that
    /// were read ahead and not used again stay: most are never used again.
    #[cold]
    fn adopt(&mut self, pages: &PageTable, now: InForce) {
        if self.adoptions != now.adoptions {
            self.adoptions = now.adoptions;
            self.to_adopt = self.fresh.count() + self.probation.count();
        }
        let small = now.small.unwrap_or(0);
        for _ in 0..ADOPTED_MAX {
            let is_over = self.fresh.count() + self.probation.count() > u64::from(small);
            if !is_over || self.to_adopt == 0 {
                self.to_adopt = 0;
                return;
            }
            if self.fresh.count() > fresh_max(small) {
                self.age(pages);
                continue;
            }
            self.to_adopt -= 1;
            if let Some(oldest) = self.probation.tail() {
                self.probation.unlink(pages, oldest, UNLISTED);
                let queue = if pages.is_ahead_without_hit(oldest) { &mut self.probation } else { &mut self.main };
                queue.push_head(pages, oldest);
            }
        }
    }

    /// Moves the oldest page of fresh to probation.
    fn age(&mut self, pages: &PageTable) {
        if let Some(oldest) = self.fresh.tail() {
            self.fresh.unlink(pages, oldest, UNLISTED);
            pages.take_hits(oldest);
            self.probation.push_head(pages, oldest);
        }
    }

    /// The queue that gives the next victim, after `looks` pages that stayed.
    fn victim_queue(&mut self, pages: &PageTable, small_target: Option<u64>, looks: u64) -> Option<u8> {
        // Or all their pages are held: hits would have been used up by now.
        if looks >= LOOKS_A_PAGE * (self.probation.count() + self.main.count()) {
            self.age(pages);
            if self.probation.count() > 0 {
                return Some(PROBATION);
            }
        }
        let small = self.fresh.count() + self.probation.count();
        let is_over = small_target.is_some_and(|target| small > target);
        if self.probation.count() > 0 && (is_over || self.main.count() == 0) {
            Some(PROBATION)
        } else if self.main.count() > 0 {
            Some(MAIN)
        } else {
            // Only fresh has pages, or none has: the first is the case above.
            None
        }
    }

    /// The queue that gives after too many looks: one queue after the other, main first.
    fn any_victim_queue(&mut self, looks: u64) -> Option<u8> {
        let order = match (looks - LOOKS_MAX) % 3 {
            0 => [MAIN, PROBATION, FRESH],
            1 => [PROBATION, MAIN, FRESH],
            _ => [FRESH, MAIN, PROBATION],
        };
        order.into_iter().find(|number| self.on(*number).is_some_and(|queue| queue.count() > 0))
    }

    /// Where a page at a queue's tail goes instead of out of the cache.
    fn stays(
        &mut self,
        pages: &PageTable,
        from: u8,
        frame: FrameId,
        now: InForce,
        unread_may_stay: bool,
    ) -> Option<u8> {
        match from {
            MAIN if now.small.is_none() => (pages.take_hits(frame) > 0).then_some(MAIN),
            MAIN => pages.try_drop_hit(frame).then_some(MAIN),
            _ if pages.is_unread(frame) => (unread_may_stay && pages.try_spare_unread(frame)).then_some(PROBATION),
            _ => (pages.take_hits(frame) > 0).then_some(MAIN),
        }
    }
}

/// The most pages of fresh, if the small queues together have so many.
fn fresh_max(small: u32) -> u64 {
    (u64::from(small) / 2).max(1)
}

impl Eviction for S3Window {
    fn admitted(&self, pages: &PageTable, arrivals: &[Arrival]) {
        let mut clean = false;
        for arrival in arrivals {
            let back = match arrival.why {
                super::Admitted::Ahead => false,
                super::Admitted::Demand | super::Admitted::Written => self.ghost.remove(arrival.key),
            };
            if arrival.is_written() {
                pages.note_used(arrival.frame);
            }
            pages.set_list(arrival.frame, if back { COMING_BACK } else { COMING });
            clean |= !arrival.is_written();
            self.choice.note(pages, arrival);
        }
        if clean {
            let now = self.choice.in_force();
            let mut queues = lock(&self.queues);
            arrivals.iter().for_each(|arrival| queues.list(pages, now, arrival.frame));
        }
    }

    fn cleaned(&self, pages: &PageTable, frames: &mut dyn Iterator<Item = FrameId>) {
        let now = self.choice.in_force();
        let mut queues = lock(&self.queues);
        frames.for_each(|frame| queues.list(pages, now, frame));
    }

    /// The new frame takes the old one's position, with one more use.
    fn replaced(&self, pages: &PageTable, old: FrameId, new: FrameId) {
        let now = match listed(pages, old) {
            UNLISTED | COMING | FRESH => COMING,
            COMING_BACK => COMING_BACK,
            _ => PARKED,
        };
        pages.copy_hits(old, new);
        pages.note_used(new);
        pages.touch(new);
        pages.set_list(new, now);
        if !pages.word(new).has_any(DIRTY) {
            lock(&self.queues).list(pages, self.choice.in_force(), new);
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
        let unread = pages.unread.pages();
        let now = self.choice.in_force();
        let small_target = now.small.map(|small| self.sizes.small_target(small, unread));
        let mut unread_left = unread;
        let mut looks = 0;
        while scan.may_go_on() {
            let tired = looks >= LOOKS_MAX;
            let from =
                if tired { queues.any_victim_queue(looks) } else { queues.victim_queue(pages, small_target, looks) };
            let Some((from, frame)) = from.and_then(|from| Some((from, queues.on(from)?.tail()?))) else {
                break;
            };
            (scan.scanned, looks) = (scan.scanned + 1, looks + 1);
            let word = pages.word(frame);
            let to = if word.has_any(UNEVICTABLE) {
                scan.pass_over(pages, frame, word);
                Some(PARKED)
            } else if word.is_held() {
                Some(from)
            } else if tired {
                None
            } else {
                queues.stays(pages, from, frame, now, unread_left <= self.sizes.unread_max)
            };
            let unread = pages.is_unread(frame);
            queues.on(from).expect("it has a tail").unlink(pages, frame, to.unwrap_or(UNLISTED));
            match to {
                Some(to) => queues.on(to).into_iter().for_each(|queue| queue.push_head(pages, frame)),
                None => {
                    scan.take(pages, frame, from != MAIN && !unread);
                    unread_left -= u64::from(unread && unread_left > 0);
                    looks = 0;
                }
            }
        }
        scan
    }

    fn bytes(&self) -> u64 {
        self.ghost.bytes() + self.choice.bytes()
    }
}

#[cfg(test)]
mod tests;
