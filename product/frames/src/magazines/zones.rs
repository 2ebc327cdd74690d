//! The backing, cut into zones that are locked one by one.
//!
//! Owns: the zone of each frame, the zone that each slot takes from, the set of whole chunks, the total of free frames.
//! Does not own: the frames of a zone (`backing`), the marks' values.
//! Invariants: `free` counts only frames that are in a zone. A frame is put in its zone before it is counted, and the
//! count goes down before a frame is taken out. So a thread that has claimed frames finds them, and the marks hold for
//! any number of threads.
//!
//! With enough zones, each slot begins in its own, so that threads that take and give seldom meet. The first slot of an
//! arena begins in the first zone, independent of its number: the calls alone decide.

use super::backing::{self, Backing, Whole};
use super::index_set::IndexSet;
use super::slot::MAGAZINE_FRAMES;
use crate::sync::SpinLock;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::{Mobility, Order};

/// Most zones of an arena.
const ZONES_MAX: u32 = 8;
/// The smallest zone has 2^12 frames, 16 MiB, unless the arena has less.
const ZONE_SHIFT_MIN: u32 = 12;
/// How often all zones are searched for claimed frames. More than one search is needed only when frames come and go
/// behind the searcher.
const SEARCHES_MAX: usize = 8;
/// The mark of a slot that has not taken anything yet.
const NO_ZONE: u32 = u32::MAX;

const _: () = assert!(1 << ZONE_SHIFT_MIN >= Order::PAGEBLOCK.frames() << 1, "the largest block fits in a zone");

/// On a cache line of its own, since every call reads the fields around it.
#[repr(align(128))]
struct Apart(AtomicU32);

impl std::ops::Deref for Apart {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.0
    }
}

pub(super) struct Zones {
    free: Apart,
    shift: u32,
    zones: Box<[SpinLock<Backing>]>,
    whole: Whole,
    /// The zone that each slot took from last.
    at: Box<[AtomicU32]>,
    slots_begun: AtomicU32,
}

impl Zones {
    /// All of `frames` free.
    pub(super) fn new(frames: u32, slots: usize) -> Self {
        let shift = frames.div_ceil(ZONES_MAX).next_power_of_two().ilog2().max(ZONE_SHIFT_MIN);
        let firsts = (0..frames.div_ceil(1 << shift)).map(|zone| zone << shift);
        let chunks = frames / Order::PAGEBLOCK.frames();
        let mut all = IndexSet::new(chunks);
        (0..chunks).for_each(|chunk| all.insert(chunk));
        let whole = Whole::new(all);
        let zone = |first: u32| SpinLock::new(Backing::new(first, (frames - first).min(1 << shift), &whole));
        let zones = firsts.map(zone).collect();
        let at = (0..slots).map(|_| AtomicU32::new(NO_ZONE)).collect();
        Self { free: Apart(AtomicU32::new(frames)), shift, zones, whole, at, slots_begun: AtomicU32::new(0) }
    }

    /// The number of free frames here.
    #[inline]
    pub(super) fn free_frames(&self) -> u32 {
        self.free.load(Ordering::Relaxed)
    }

    /// Takes single frames as long as `floor` are left; returns their number.
    pub(super) fn take(&self, slot: usize, floor: u32, class: Mobility, out: &mut [u32]) -> usize {
        let claimed = self.claim(floor, 1, out.len() as u32) as usize;
        let mut taken = 0;
        if claimed > 0 {
            self.search(slot, |zone, own_class| {
                taken += zone.take(class, own_class, &mut out[taken..claimed], &self.whole);
                taken == claimed
            });
            self.free.fetch_add((claimed - taken) as u32, Ordering::Relaxed);
        }
        taken
    }

    /// Takes 2 MiB blocks as long as `floor` frames are left; returns their number.
    pub(super) fn take_huge(&self, floor: u32, out: &mut [u32]) -> usize {
        let each = Order::PAGEBLOCK.frames();
        let claimed = (self.claim(floor, each, out.len() as u32 * each) / each) as usize;
        if claimed == 0 {
            return 0;
        }
        let mut whole = self.whole.lock();
        let mut taken = 0;
        while taken < claimed {
            let Some(chunk) = whole.first() else { break };
            whole.remove(chunk);
            out[taken] = chunk * each;
            taken += 1;
        }
        drop(whole);
        if taken < claimed {
            self.free.fetch_add((claimed - taken) as u32 * each, Ordering::Relaxed);
        }
        taken
    }

    /// Puts 2 MiB blocks back.
    pub(super) fn give_huge(&self, blocks: &[u32]) {
        let mut whole = self.whole.lock();
        blocks.iter().for_each(|first| whole.insert(first / Order::PAGEBLOCK.frames()));
        drop(whole);
        self.free.fetch_add(blocks.len() as u32 * Order::PAGEBLOCK.frames(), Ordering::Relaxed);
    }

    /// Takes a block of any order if `floor` frames are left.
    pub(super) fn take_block(&self, slot: usize, floor: u32, order: Order, class: Mobility) -> Option<u32> {
        if order == Order::PAGEBLOCK {
            let mut block = [0];
            return (self.take_huge(floor, &mut block) == 1).then_some(block[0]);
        }
        let frames = order.frames();
        if self.claim(floor, frames, frames) == 0 {
            return None;
        }
        let mut found = None;
        if order > Order::PAGEBLOCK {
            found = backing::take_pair(&mut self.whole.lock()).map(|chunk| chunk * Order::PAGEBLOCK.frames());
        } else {
            self.search_once(slot, &mut |zone, own_class| {
                found = zone.take_block(order, class, own_class, &self.whole);
                found.is_some()
            });
        }
        if found.is_none() {
            self.free.fetch_add(frames, Ordering::Relaxed);
        }
        found
    }

    /// Puts single frames back, at most a magazine's worth.
    pub(super) fn give(&self, frames: &[u32]) {
        let Some(first) = frames.first() else { return };
        // All bits in which any frame differs from the first. Without a branch, so it is vectorized.
        let differing = frames.iter().fold(0, |bits, frame| bits | (frame ^ first));
        if differing >> self.shift == 0 {
            self.zones[(first >> self.shift) as usize].lock().give(frames, &self.whole);
        } else {
            self.give_sorted(frames);
        }
        self.free.fetch_add(frames.len() as u32, Ordering::Relaxed);
    }

    /// Puts a block back.
    pub(super) fn give_block(&self, first: u32, order: Order) {
        if order < Order::PAGEBLOCK {
            self.zones[(first >> self.shift) as usize].lock().give_block(first, order, &self.whole);
            self.free.fetch_add(order.frames(), Ordering::Relaxed);
        } else {
            let each = Order::PAGEBLOCK.frames();
            let blocks = [first, first + each];
            self.give_huge(&blocks[..(order.frames() / each) as usize]);
        }
    }

    /// Sorts the frames by zone, so that each zone is locked once.
    fn give_sorted(&self, frames: &[u32]) {
        const ZONES: usize = ZONES_MAX as usize;
        let zone_of = |frame: u32| (frame >> self.shift) as usize % ZONES;
        let mut ends = [0; ZONES];
        frames.iter().for_each(|frame| ends[zone_of(*frame)] += 1);
        let mut sum = 0;
        for end in &mut ends {
            (sum, *end) = (sum + *end, sum);
        }
        let mut sorted = [0; MAGAZINE_FRAMES];
        for frame in frames {
            let end = &mut ends[zone_of(*frame)];
            sorted[*end] = *frame;
            *end += 1;
        }
        let mut start = 0;
        for (zone, end) in self.zones.iter().zip(ends) {
            if end > start {
                zone.lock().give(&sorted[start..end], &self.whole);
            }
            start = end;
        }
    }

    /// Counts up to `max` frames as gone: a multiple of `min`, and at most the frames above `floor`.
    fn claim(&self, floor: u32, min: u32, max: u32) -> u32 {
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            let above = free.saturating_sub(floor).min(max);
            let claimed = above - above % min;
            if claimed == 0 {
                return 0;
            }
            match self.free.compare_exchange_weak(free, free - claimed, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return claimed,
                Err(now) => free = now,
            }
        }
    }

    fn search(&self, slot: usize, mut take: impl FnMut(&mut Backing, bool) -> bool) {
        for _ in 0..SEARCHES_MAX {
            if self.search_once(slot, &mut take) {
                return;
            }
        }
    }

    /// Offers the zones to `take`, from the slot's on, until it has enough: first for chunks of its class or of no
    /// class, then for any.
    fn search_once(&self, slot: usize, take: &mut impl FnMut(&mut Backing, bool) -> bool) -> bool {
        let count = self.zones.len();
        let begin = self.zone_of_slot(slot);
        for own_class in [true, false] {
            for step in 0..count {
                let at = (begin + step) % count;
                if take(&mut self.zones[at].lock(), own_class) {
                    if step > 0 {
                        self.at[slot].store(at as u32, Ordering::Relaxed);
                    }
                    return true;
                }
            }
        }
        false
    }

    #[inline]
    fn zone_of_slot(&self, slot: usize) -> usize {
        match self.at[slot].load(Ordering::Relaxed) {
            NO_ZONE => self.begin(slot),
            zone => zone as usize,
        }
    }

    #[cold]
    fn begin(&self, slot: usize) -> usize {
        // Far apart at first, since each slot goes on to the next zone when its own is empty.
        let turn = self.slots_begun.fetch_add(1, Ordering::Relaxed);
        let spread = (turn.reverse_bits() >> (u32::BITS - ZONES_MAX.ilog2())) as usize;
        let zone = spread * self.zones.len() / ZONES_MAX as usize;
        self.at[slot].store(zone as u32, Ordering::Relaxed);
        zone
    }
}
