//! How many pages are under guards, and that they are not too many.
//!
//! Owns: the counts, one a place, so that threads that take guards seldom change the same word.
//! Does not own: the guards (`pins`), the frames' own counts of them (`page`).
//! Invariants: the sum over all places is what guards hold. It passes the limit by less than [`SLACK_PAGES`] a place, and
//! by nothing where the limit is small.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Cache;
use crate::sync::OwnLines;

/// As many as there are.
const PLACES: usize = 16;
/// A place asks for the sum when it has grown by this.
const SLACK_PAGES: u64 = 64;
/// Below this limit a place always asks: all slack together is an eighth of it.
const EXACT_BELOW_PAGES: u64 = 8 * PLACES as u64 * SLACK_PAGES;

/// The counts.
pub(crate) struct GuardCounts([OwnLines<AtomicU64>; PLACES]);

impl GuardCounts {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| OwnLines::default()))
    }

    /// Notes pages that guards take; false, and none noted, when guards would then hold too much.
    pub(crate) fn admit(&self, place: usize, pages: u64, pages_max: u64) -> bool {
        let before = self.0[place].fetch_add(pages, Ordering::Relaxed);
        let unasked = pages_max >= EXACT_BELOW_PAGES && before / SLACK_PAGES == (before + pages) / SLACK_PAGES;
        let fits = unasked || self.pages() <= pages_max;
        if !fits {
            self.0[place].fetch_sub(pages, Ordering::Relaxed);
        }
        fits
    }

    /// Notes pages that guards have let go of, at the place where they were noted.
    pub(crate) fn forget(&self, place: usize, pages: u64) {
        let before = self.0[place].fetch_sub(pages, Ordering::Relaxed);
        debug_assert!(before >= pages, "guards were given back that nobody took");
    }

    /// Pages under guards.
    pub(crate) fn pages(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

/// The cache as guards hold it, at one place: references to it are counted apart, too.
#[repr(align(128))]
pub(crate) struct GuardPlace {
    pub(super) cache: Arc<Cache>,
    pub(super) number: usize,
}

/// All places of a cache.
pub(crate) struct GuardPlaces([Arc<GuardPlace>; PLACES]);

impl GuardPlaces {
    pub(crate) fn new(cache: &Arc<Cache>) -> Arc<Self> {
        let place = |number| Arc::new(GuardPlace { cache: Arc::clone(cache), number });
        Arc::new(Self(std::array::from_fn(place)))
    }

    /// The place of a thread, of which this is something that no other thread has.
    #[inline]
    pub(crate) fn of<T>(&self, own: &T) -> &Arc<GuardPlace> {
        // Any will do: the bits above a cache line's differ where threads' values lie apart.
        let address = std::ptr::from_ref(own) as usize;
        &self.0[(address >> 7 ^ address >> 12) % PLACES]
    }
}

#[cfg(test)]
mod tests;
