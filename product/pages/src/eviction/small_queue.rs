//! The share of the small queues, measured: two miniatures of the cache go by two rules, and the cache follows the one
//! that misses less.
//!
//! Owns: the rules, the count of misses of each, the choice, the size of the small queues in force.
//! Does not own: the miniatures' queues (`miniature`), the sampled pages (`sample`), the cache's queues (`s3_window`).
//! Invariants: only a page that comes does work here, and few do: a hit costs nothing. The lock is held with no other
//! lock of the policy. The same arrivals and uses give the same share.

use std::sync::Mutex;

use super::ghost::mixed;
use super::miniature::{Miniature, Rule};
use super::sample::Sample;
use super::{Admitted, Arrival};
use crate::page::PageTable;
use crate::sync::OwnLines;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::wait::lock;

/// Small queues for sets that fit but for a little, loops and scans; and queues that grow while pages come back which
/// larger ones had kept.
const RULES: [Rule; 2] = [Rule { least: 20, most: 20 }, Rule { least: 100, most: 750 }];
/// Of so many frames a miniature has one, but at least [`FRAMES_MIN`] and at most [`FRAMES_MAX`].
const FRAMES_A_FRAME: u32 = 64;
const FRAMES_MIN: u32 = 64;
const FRAMES_MAX: u32 = 4096;
/// All sampled pages are looked at as often while so many pages come as the cache has frames.
const ROUNDS_A_REFILL: usize = 8;
/// The other rule must miss less by one in so many misses.
const LEAD: u64 = 20;
/// A miss in a count.
const MISS: u64 = 1 << 16;

pub(super) struct SmallQueueSize {
    frames: u32,
    /// Pages with a hash below this are sampled.
    below: u64,
    /// The frames of the small queues in force.
    small: AtomicU32,
    measured: OwnLines<Mutex<Measured>>,
}

struct Measured {
    sample: Sample,
    miniatures: [Miniature; 2],
    misses: [u64; 2],
    /// The rule in force.
    chosen: usize,
    /// Frames of a miniature.
    frames: u32,
}

impl SmallQueueSize {
    pub(super) fn new(frames: u32) -> Self {
        let few = (frames / FRAMES_A_FRAME).clamp(FRAMES_MIN.min(frames), FRAMES_MAX);
        let sample = Sample::new(few);
        let miniatures = RULES.map(|rule| Miniature::new(rule, few, sample.pages()));
        let measured = Measured { sample, miniatures, misses: [0; 2], chosen: 0, frames: few };
        Self {
            frames,
            below: (u64::from(few) << 32) / u64::from(frames.max(1)),
            small: AtomicU32::new(measured.small(frames)),
            measured: OwnLines(Mutex::new(measured)),
        }
    }

    /// Frames of the small queues together, while nothing was read ahead.
    pub(super) fn small(&self) -> u64 {
        u64::from(self.small.load(Ordering::Relaxed))
    }

    pub(super) fn bytes(&self) -> u64 {
        let measured = lock(&self.measured);
        measured.sample.bytes() + measured.miniatures.iter().map(Miniature::bytes).sum::<u64>()
    }

    /// A page has come into the cache.
    pub(super) fn note(&self, pages: &PageTable, arrival: &Arrival) {
        let hash = mixed(arrival.key);
        if hash >> 32 < self.below {
            self.measure(pages, arrival, hash as u32);
        }
    }

    #[cold]
    fn measure(&self, pages: &PageTable, arrival: &Arrival, hash: u32) {
        let mut measured = lock(&self.measured);
        measured.arrive(pages, arrival, hash);
        self.small.store(measured.small(self.frames), Ordering::Relaxed);
    }
}

impl Measured {
    fn arrive(&mut self, pages: &PageTable, arrival: &Arrival, hash: u32) {
        let Self { sample, miniatures, .. } = self;
        let number = sample.number(hash, |page| !miniatures.iter().any(|miniature| miniature.is_known(page)));
        if let Some(number) = number {
            let is_ahead = arrival.why == Admitted::Ahead;
            self.sample.put(number, arrival.frame, pages, u8::from(!is_ahead));
            if is_ahead {
                self.miniatures.iter_mut().filter(|one| !one.has_page(number)).for_each(|one| one.come(number, true));
            } else {
                self.use_page(number);
            }
        }
        for _ in 0..(self.sample.pages() * ROUNDS_A_REFILL).div_ceil(self.frames as usize) {
            if let Some(number) = self.sample.look(pages) {
                self.use_page(number);
            }
        }
    }

    /// A sampled page is used: a miniature that does not hold it misses.
    fn use_page(&mut self, number: u16) {
        let mut missed = false;
        for (miniature, misses) in self.miniatures.iter_mut().zip(&mut self.misses) {
            if miniature.has_page(number) {
                miniature.touch(number);
            } else {
                miniature.come(number, false);
                *misses += MISS;
                missed = true;
            }
        }
        if missed {
            // Of about one refill of a miniature, the latest misses count most.
            let frames = u64::from(self.frames);
            self.misses.iter_mut().for_each(|misses| *misses -= *misses / frames);
            let other = 1 - self.chosen;
            if self.misses[self.chosen] > self.misses[other] + self.misses[other] / LEAD + MISS {
                self.chosen = other;
            }
        }
    }

    /// Frames of the small queues of a cache with so many, under the rule in force.
    fn small(&self, frames: u32) -> u32 {
        let small = u64::from(self.miniatures[self.chosen].small()) * u64::from(frames) / u64::from(self.frames.max(1));
        (small as u32).max(1)
    }
}

#[cfg(test)]
mod tests;
