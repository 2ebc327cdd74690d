//! Recently evicted pages, in four bytes each.
//!
//! Owns: the table. Each bucket is one cache line with 16 entries: a fingerprint, and when the page went.
//! Does not own: which pages are worth remembering, the consequence of a return.
//! Invariants: takes no lock; its size is fixed when it is made. Time is counted in pages remembered. An entry is
//! forgotten once somewhat more pages than the table has entries have come after it. It is also forgotten if it is the
//! oldest in a full bucket. One page in some thousands is mistaken for an evicted one: only the page's queue in the
//! cache depends on that.

use super::PageKey;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{OwnLines, zeros};

const WAYS: usize = 16;
/// Epochs in which the table remembers as many pages as it has entries.
const EPOCHS: u64 = 1024;
/// Epochs after which an entry is forgotten: pages spread unevenly over buckets, so this is somewhat above [`EPOCHS`].
const STALE_EPOCHS: u64 = 1200;

pub(super) struct Ghost {
    buckets: Box<[Bucket]>,
    /// Pages remembered so far.
    noted: OwnLines<AtomicU64>,
    /// Pages remembered in one epoch.
    epoch_pages: u64,
    stale_epochs: u64,
}

/// An entry is a fingerprint, never 0, above the epoch; 0 is no entry.
#[derive(Default)]
#[repr(align(64))]
struct Bucket([AtomicU32; WAYS]);

// SAFETY: it is atomic numbers without padding, and zeros are none.
#[cfg(not(loom))]
unsafe impl afflux_frames::Zeroed for Bucket {}

const _: () = assert!(WAYS == 16, "an entry's number has four bits");

impl Bucket {
    fn entries(&self) -> [u32; WAYS] {
        std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed))
    }
}

/// The position of a page's entry, and its fingerprint.
struct GhostSlot<'a> {
    bucket: &'a Bucket,
    fingerprint: u32,
}

impl Ghost {
    /// A table for `entries` pages.
    pub(super) fn new(entries: u64) -> Self {
        let entries = entries.max(1);
        let epoch_pages = (entries / EPOCHS).max(1);
        Self {
            buckets: zeros(entries.div_ceil(WAYS as u64) as usize),
            noted: OwnLines(AtomicU64::new(0)),
            epoch_pages,
            stale_epochs: (entries * STALE_EPOCHS / EPOCHS / epoch_pages).max(1),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(&*self.buckets) as u64
    }

    /// Remembers pages, each in place of the oldest entry of its bucket if need be.
    pub(super) fn note(&self, keys: &[PageKey]) {
        if keys.is_empty() {
            return;
        }
        let epoch = self.noted.fetch_add(keys.len() as u64, Ordering::Relaxed) / self.epoch_pages;
        for key in keys {
            let slot = self.slot(*key);
            let aged = slot.bucket.entries().map(|entry| age(epoch, entry));
            // The last of the oldest entries: one comparison of all ages, with the entries' numbers below them.
            let oldest = (0..WAYS).map(|at| aged[at] << 4 | at as u32).max().unwrap_or(0) as usize % WAYS;
            let entry = slot.fingerprint << 16 | epoch as u32 & 0xffff;
            slot.bucket.0[oldest].store(entry, Ordering::Relaxed);
        }
    }

    /// Whether the page is remembered; the entry is removed.
    pub(super) fn remove(&self, key: PageKey) -> bool {
        let slot = self.slot(key);
        let entries = slot.bucket.entries();
        let alike = entries.map(|entry| entry >> 16 == slot.fingerprint);
        if !alike.contains(&true) {
            return false;
        }
        let epoch = self.noted.load(Ordering::Relaxed) / self.epoch_pages;
        (0..WAYS).filter(|at| alike[*at]).any(|at| {
            u64::from(age(epoch, entries[at])) <= self.stale_epochs
                && slot.bucket.0[at].compare_exchange(entries[at], 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        })
    }

    fn slot(&self, key: PageKey) -> GhostSlot<'_> {
        let hash = mixed(key);
        let bucket = ((hash >> 32) * self.buckets.len() as u64) >> 32;
        GhostSlot { bucket: &self.buckets[bucket as usize], fingerprint: (hash as u32 & 0xffff).max(1) }
    }
}

/// The age of an entry in epochs; longer than any if there is none.
fn age(epoch: u64, entry: u32) -> u32 {
    if entry == 0 { 1 << 16 } else { (epoch as u32).wrapping_sub(entry) & 0xffff }
}

/// Mixes all bits of the key into each bit of the result (the finalizer of splitmix64).
pub(super) fn mixed(key: PageKey) -> u64 {
    let mut bits = key.page ^ key.file.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests;
