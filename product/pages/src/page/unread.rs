//! How many pages in the cache were read ahead and not requested yet, and how many were read in vain.
//!
//! Owns: the counts, spread over cache lines, since readers of different streams change them at every page; the age of
//! unread pages; how many pages of each file came and were used.
//! Does not own: which pages are unread (`table`), how many there may be (`readahead`).
//! Invariants: a page is counted once, from its readahead until its first use or its end. A page counts as waste once:
//! when it leaves unread, or when it is old.
//!
//! Files have a count in common if their slots differ by a multiple of [`FILES`].
//!
//! Time passes in spells of [`SPELL_NS`]. A page bears the parity of the spell in which it was read ahead. At the start
//! of a spell, the unread pages of its parity come from the last spell but one, or from earlier spells: they are old.

use afflux_frames::FrameId;

use crate::sync::OwnLines;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::units::Nanos;

/// An unread page is old after one to two of these.
const SPELL_NS: u64 = 30 * Nanos::SECOND;
/// Neighbouring frames have different counts, so that two streams seldom meet.
const PARTS: usize = 16;

/// Counts of files.
const FILES: usize = if cfg!(loom) { 2 } else { 4096 };

/// The pages of a file that were read ahead, ever.
#[derive(Clone, Copy, Default, Debug)]
pub struct PagesAhead {
    /// Pages that came in before they were asked for.
    pub came: u64,
    /// Those that somebody asked for.
    pub used: u64,
}

#[derive(Default)]
struct FileCounts {
    came: AtomicU64,
    used: AtomicU64,
}

/// The parity of the spell in which a page was read ahead: 0 or 1, as spells alternate.
pub(super) type Parity = usize;

/// The counts. A part alone may be below zero: only their sum means something.
pub struct Unread {
    pages: [OwnLines<[AtomicU64; 2]>; PARTS],
    /// When the spell began; its parity is that of `spell`.
    began_ns: AtomicU64,
    spell: AtomicU64,
    /// How many unread pages of each parity have been counted as waste.
    old: [AtomicU64; 2],
    /// Waste that was not reported yet.
    wasted: AtomicU64,
    files: Box<[FileCounts]>,
}

impl Unread {
    pub(super) fn new() -> Self {
        Self {
            pages: std::array::from_fn(|_| OwnLines([AtomicU64::new(0), AtomicU64::new(0)])),
            began_ns: AtomicU64::new(0),
            spell: AtomicU64::new(0),
            old: [AtomicU64::new(0), AtomicU64::new(0)],
            wasted: AtomicU64::new(0),
            files: (0..FILES).map(|_| FileCounts::default()).collect(),
        }
    }

    #[inline]
    fn file(&self, slot: u32) -> &FileCounts {
        &self.files[slot as usize % FILES]
    }

    /// The pages of the file in this slot, and of the slots before it.
    pub fn of_file(&self, slot: u32) -> PagesAhead {
        let counts = self.file(slot);
        PagesAhead { came: counts.came.load(Ordering::Relaxed), used: counts.used.load(Ordering::Relaxed) }
    }

    #[inline]
    fn part(&self, frame: FrameId, parity: Parity) -> &AtomicU64 {
        &self.pages[frame.index() % PARTS][parity]
    }

    /// The parity of the spell.
    pub(super) fn parity(&self) -> Parity {
        (self.spell.load(Ordering::Relaxed) % 2) as Parity
    }

    /// A page of the file in this slot was read ahead.
    pub(super) fn add(&self, frame: FrameId, parity: Parity, slot: u32) {
        self.part(frame, parity).fetch_add(1, Ordering::Relaxed);
        self.file(slot).came.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody asked for the page.
    #[inline]
    pub(super) fn used(&self, frame: FrameId, parity: Parity, slot: u32) {
        self.part(frame, parity).fetch_sub(1, Ordering::Relaxed);
        self.file(slot).used.fetch_add(1, Ordering::Relaxed);
    }

    /// A page left the cache unread. Old pages leave first.
    pub(super) fn waste(&self, frame: FrameId, parity: Parity) {
        self.part(frame, parity).fetch_sub(1, Ordering::Relaxed);
        let was_old = self.old[parity].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| old.checked_sub(1));
        self.wasted.fetch_add(u64::from(was_old.is_err()), Ordering::Relaxed);
    }

    /// Ends the spell if its time is over. Readahead calls this first, so that no page gets the parity of an ended
    /// spell.
    pub fn age(&self, now: Nanos) {
        let began = self.began_ns.load(Ordering::Relaxed);
        let passed_ns = now.0.saturating_sub(began);
        if passed_ns < SPELL_NS
            || self.began_ns.compare_exchange(began, now.0, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        let over = self.parity();
        self.grow_old(1 - over);
        if passed_ns >= 2 * SPELL_NS {
            // There was no readahead since the spell should have ended.
            self.grow_old(over);
        }
        self.spell.fetch_add(1, Ordering::Relaxed);
    }

    /// All unread pages of a parity are old now.
    fn grow_old(&self, parity: Parity) {
        let pages = self.of(parity);
        let counted = self.old[parity].swap(pages, Ordering::Relaxed);
        self.wasted.fetch_add(pages.saturating_sub(counted), Ordering::Relaxed);
    }

    fn of(&self, parity: Parity) -> u64 {
        let sum = self.pages.iter().fold(0u64, |sum, part| sum.wrapping_add(part[parity].load(Ordering::Relaxed)));
        // The sum is not atomic: it may miss a page's arrival and include its end.
        if sum > u64::MAX / 2 { 0 } else { sum }
    }

    /// Unread pages now.
    pub fn pages(&self) -> u64 {
        self.of(0) + self.of(1)
    }

    /// Waste since the last call.
    pub fn take_wasted(&self) -> u64 {
        if self.wasted.load(Ordering::Relaxed) == 0 { 0 } else { self.wasted.swap(0, Ordering::Relaxed) }
    }
}
