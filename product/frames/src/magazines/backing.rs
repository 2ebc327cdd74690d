//! The free frames of a zone that are in no magazine: a bit each.
//!
//! Owns: the bits of broken chunks (2 MiB), their counts and classes, which chunks have free frames; the rules by which
//! a chunk is broken and becomes whole again.
//! Does not own: the lock, the set of whole chunks (all zones share it), marks, the contents of magazines.
//! Invariants: a chunk with all 512 frames free is in the set of whole chunks and has no bit here, so that only this
//! set handles blocks of 2 MiB. A chunk with some frames free is in its class's `some`. Free neighbours form a block
//! without any merge.
//!
//! The lowest chunks are used first, so that whole ones are left. Equal calls get equal frames, independent of the
//! order of earlier frees.

use super::index_set::IndexSet;
use crate::sync::SpinLock;
use crate::{Mobility, Order};

/// The fully free chunks of the arena. Locked after a zone.
pub(super) type Whole = SpinLock<IndexSet>;

#[cfg(test)]
mod tests;

const CHUNK_ORDER: u8 = Order::PAGEBLOCK.get();
const CHUNK_FRAMES: u32 = Order::PAGEBLOCK.frames();
const WORDS: usize = CHUNK_FRAMES as usize / 64;
/// Chunks searched for a block before a whole chunk is broken.
const SEARCH_MAX: usize = 32;

pub(super) struct Backing {
    /// The number of its first frame, a multiple of the largest block's size.
    base: u32,
    bits: Box<[[u64; WORDS]]>,
    counts: Box<[u16]>,
    classes: Box<[Mobility]>,
    some: [IndexSet; Mobility::COUNT],
}

impl Backing {
    /// The zone of `frames` from `base` on; its whole chunks are in `whole`. Frames beyond the last whole chunk are
    /// free here.
    pub(super) fn new(base: u32, frames: u32, whole: &Whole) -> Self {
        let chunks = frames.div_ceil(CHUNK_FRAMES);
        let mut backing = Self {
            base,
            bits: vec![[0; WORDS]; chunks as usize].into_boxed_slice(),
            counts: vec![0; chunks as usize].into_boxed_slice(),
            classes: vec![Mobility::Movable; chunks as usize].into_boxed_slice(),
            some: [(); Mobility::COUNT].map(|()| IndexSet::new(chunks)),
        };
        for frame in frames / CHUNK_FRAMES * CHUNK_FRAMES..frames {
            backing.give(&[base + frame], whole);
        }
        backing
    }

    /// Fills `out` with single frames; unless `own_class`, only from other classes' chunks. Returns their number.
    pub(super) fn take(&mut self, class: Mobility, own_class: bool, out: &mut [u32], whole: &Whole) -> usize {
        let mut taken = 0;
        while taken < out.len() {
            let Some(chunk) = self.chunk_for(class, own_class, whole) else { break };
            let mut left = self.counts[chunk as usize];
            for (word, bits) in self.bits[chunk as usize].iter_mut().enumerate() {
                let first = self.base + chunk * CHUNK_FRAMES + word as u32 * 64;
                while *bits != 0 && taken < out.len() {
                    out[taken] = first + bits.trailing_zeros();
                    *bits &= *bits - 1;
                    taken += 1;
                    left -= 1;
                }
            }
            self.counts[chunk as usize] = left;
            if left == 0 {
                self.some[self.classes[chunk as usize].index()].remove(chunk);
            }
        }
        taken
    }

    /// Takes a block of an order below the chunk's; unless `own_class`, only from other classes' chunks.
    pub(super) fn take_block(&mut self, order: Order, class: Mobility, own_class: bool, whole: &Whole) -> Option<u32> {
        let (chunk, at) = self.find_block(order, class, own_class, whole)?;
        set_run(&mut self.bits[chunk as usize], at, order.frames(), false);
        let count = &mut self.counts[chunk as usize];
        *count -= order.frames() as u16;
        if *count == 0 {
            self.some[self.classes[chunk as usize].index()].remove(chunk);
        }
        Some(self.base + chunk * CHUNK_FRAMES + at)
    }

    /// Puts single frames back.
    pub(super) fn give(&mut self, frames: &[u32], whole: &Whole) {
        // Neighbours are put back by the word.
        let (mut word, mut mask) = (usize::MAX, 0);
        for frame in frames {
            let at = frame - self.base;
            if at as usize / 64 != word {
                self.give_word(word, mask, whole);
                (word, mask) = (at as usize / 64, 0);
            }
            mask |= 1 << (at % 64);
        }
        self.give_word(word, mask, whole);
    }

    #[inline]
    fn give_word(&mut self, word: usize, mask: u64, whole: &Whole) {
        if mask != 0 {
            let chunk = word / WORDS;
            self.bits[chunk][word % WORDS] |= mask;
            self.count_up(chunk, mask.count_ones() as u16, whole);
        }
    }

    /// Puts back a block of an order below the chunk's.
    pub(super) fn give_block(&mut self, first: u32, order: Order, whole: &Whole) {
        let chunk = (first - self.base) >> CHUNK_ORDER;
        set_run(&mut self.bits[chunk as usize], first % CHUNK_FRAMES, order.frames(), true);
        self.count_up(chunk as usize, order.frames() as u16, whole);
    }

    #[inline]
    fn count_up(&mut self, chunk: usize, frames: u16, whole: &Whole) {
        let before = self.counts[chunk];
        self.counts[chunk] = before + frames;
        if before == 0 || before + frames == CHUNK_FRAMES as u16 {
            self.note_count(chunk, whole);
        }
    }

    /// Updates the sets: the chunk now has a free frame, or all of its frames are free.
    fn note_count(&mut self, chunk: usize, whole: &Whole) {
        let some = &mut self.some[self.classes[chunk].index()];
        if self.counts[chunk] < CHUNK_FRAMES as u16 {
            some.insert(chunk as u32);
        } else {
            some.remove(chunk as u32);
            self.counts[chunk] = 0;
            self.bits[chunk] = [0; WORDS];
            whole.lock().insert((self.base >> CHUNK_ORDER) + chunk as u32);
        }
    }

    /// Breaks a whole chunk of this zone for a class.
    fn break_chunk(&mut self, class: Mobility, whole: &Whole) -> Option<u32> {
        let first = self.base >> CHUNK_ORDER;
        let mut whole = whole.lock();
        let found = whole.next(first).filter(|found| *found < first + self.counts.len() as u32)?;
        whole.remove(found);
        drop(whole);
        let chunk = found - first;
        self.bits[chunk as usize] = [u64::MAX; WORDS];
        self.counts[chunk as usize] = CHUNK_FRAMES as u16;
        self.classes[chunk as usize] = class;
        self.some[class.index()].insert(chunk);
        Some(chunk)
    }

    /// A chunk to take single frames from: broken ones first, then whole ones, then other classes'.
    fn chunk_for(&mut self, class: Mobility, own_class: bool, whole: &Whole) -> Option<u32> {
        if !own_class {
            return class.fallbacks().into_iter().find_map(|other| self.some[other.index()].first());
        }
        self.some[class.index()].first().or_else(|| self.break_chunk(class, whole))
    }

    fn find_block(&mut self, order: Order, class: Mobility, own_class: bool, whole: &Whole) -> Option<(u32, u32)> {
        if !own_class {
            return class.fallbacks().into_iter().find_map(|other| self.search(order, other, usize::MAX));
        }
        if let Some(found) = self.search(order, class, SEARCH_MAX) {
            return Some(found);
        }
        if let Some(chunk) = self.break_chunk(class, whole) {
            return Some((chunk, 0));
        }
        self.search(order, class, usize::MAX)
    }

    /// A block in one of the first broken chunks of a class.
    fn search(&self, order: Order, class: Mobility, chunks_max: usize) -> Option<(u32, u32)> {
        let some = &self.some[class.index()];
        let mut from = 0;
        for _ in 0..chunks_max {
            let chunk = some.next(from)?;
            from = chunk + 1;
            let enough = u32::from(self.counts[chunk as usize]) >= order.frames();
            if enough && let Some(at) = find_run(&self.bits[chunk as usize], order) {
                return Some((chunk, at));
            }
        }
        None
    }
}

/// Takes two adjacent whole chunks, the first with an even number: a block of the largest order.
pub(super) fn take_pair(whole: &mut IndexSet) -> Option<u32> {
    let mut from = 0;
    loop {
        let chunk = whole.next(from)?;
        if chunk.is_multiple_of(2) && whole.next(chunk + 1) == Some(chunk + 1) {
            whole.remove(chunk);
            whole.remove(chunk + 1);
            return Some(chunk);
        }
        from = chunk + 1;
    }
}

fn set_run(words: &mut [u64; WORDS], at: u32, frames: u32, free: bool) {
    if frames < 64 {
        let mask = ((1 << frames) - 1) << (at % 64);
        let word = &mut words[at as usize / 64];
        *word = if free { *word | mask } else { *word & !mask };
    } else {
        words[at as usize / 64..(at + frames) as usize / 64].fill(if free { u64::MAX } else { 0 });
    }
}

/// The first aligned run of free frames of an order below the chunk's.
fn find_run(words: &[u64; WORDS], order: Order) -> Option<u32> {
    if order.frames() >= 64 {
        let run = order.frames() as usize / 64;
        let at = words.chunks_exact(run).position(|words| words.iter().all(|word| *word == u64::MAX))?;
        return Some(at as u32 * order.frames());
    }
    words.iter().enumerate().find_map(|(at, word)| {
        let starts = run_starts(*word, order.get());
        (starts != 0).then(|| at as u32 * 64 + starts.trailing_zeros())
    })
}

/// The bits at which an aligned run of 2^order set bits starts; the order is below 6.
fn run_starts(word: u64, order: u8) -> u64 {
    /// By order, a bit at each multiple of its size.
    const ALIGNED: [u64; 6] = [
        u64::MAX,
        0x5555_5555_5555_5555,
        0x1111_1111_1111_1111,
        0x0101_0101_0101_0101,
        0x0001_0001_0001_0001,
        0x0000_0001_0000_0001,
    ];
    let runs = (0..order).fold(word, |runs, step| runs & runs >> (1 << step));
    runs & ALIGNED[usize::from(order)]
}
