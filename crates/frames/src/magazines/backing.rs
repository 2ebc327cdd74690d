//! The free frames of a zone that are in no magazine: a bit each.
//!
//! Owns: the bits, how many each 2 MiB chunk has, its mobility class, which chunks have any or all.
//! Does not own: the lock, the marks, what is in magazines.
//! Invariants: a chunk is in `whole` exactly while all its 512 frames are here, in its class's `some`
//! while some are. Neighbours that are free are one block by that alone: there is nothing to merge.
//!
//! The lowest chunks are used first, so that whole ones are left; of equal calls equal frames come,
//! whatever the order of earlier frees.

use super::index_set::IndexSet;
use crate::{Mobility, Order};

#[cfg(test)]
mod tests;

const CHUNK_ORDER: u8 = Order::PAGEBLOCK.get();
const CHUNK_FRAMES: u32 = Order::PAGEBLOCK.frames();
const WORDS: usize = CHUNK_FRAMES as usize / 64;
/// Chunks searched for a block before a whole chunk is broken.
const SEARCH_MAX: usize = 32;

pub(super) struct Backing {
    /// The number of its first frame, a multiple of the largest block's.
    base: u32,
    bits: Box<[[u64; WORDS]]>,
    counts: Box<[u16]>,
    classes: Box<[Mobility]>,
    whole: IndexSet,
    some: [IndexSet; Mobility::COUNT],
    free_frames: u32,
}

impl Backing {
    /// All of `frames` from `base` on.
    pub(super) fn new(base: u32, frames: u32) -> Self {
        let chunks = frames.div_ceil(CHUNK_FRAMES);
        let mut backing = Self {
            base,
            bits: vec![[0; WORDS]; chunks as usize].into_boxed_slice(),
            counts: vec![0; chunks as usize].into_boxed_slice(),
            classes: vec![Mobility::Movable; chunks as usize].into_boxed_slice(),
            whole: IndexSet::new(chunks),
            some: [(); Mobility::COUNT].map(|()| IndexSet::new(chunks)),
            free_frames: 0,
        };
        for chunk in 0..frames / CHUNK_FRAMES {
            backing.give_block(base + chunk * CHUNK_FRAMES, Order::PAGEBLOCK);
        }
        for frame in frames / CHUNK_FRAMES * CHUNK_FRAMES..frames {
            backing.give(&[base + frame]);
        }
        backing
    }

    #[cfg(test)]
    pub(super) fn free_frames(&self) -> u32 {
        self.free_frames
    }

    /// Fills `out` with single frames, of other classes' chunks only unless `own_class`; returns how many.
    pub(super) fn take(&mut self, class: Mobility, own_class: bool, out: &mut [u32]) -> usize {
        let mut taken = 0;
        while taken < out.len() {
            let Some(chunk) = self.chunk_for(class, own_class) else { break };
            let before = self.counts[chunk as usize];
            let mut left = before;
            for (word, bits) in self.bits[chunk as usize].iter_mut().enumerate() {
                let first = self.base + chunk * CHUNK_FRAMES + word as u32 * 64;
                while *bits != 0 && taken < out.len() {
                    out[taken] = first + bits.trailing_zeros();
                    *bits &= *bits - 1;
                    taken += 1;
                    left -= 1;
                }
            }
            self.recount(chunk, before, left);
        }
        taken
    }

    /// Takes a block; of other classes' chunks only unless `own_class`.
    pub(super) fn take_block(&mut self, order: Order, class: Mobility, own_class: bool) -> Option<u32> {
        if order.get() > CHUNK_ORDER {
            return self.take_pair();
        }
        if order.get() == CHUNK_ORDER {
            let chunk = self.whole.first()?;
            self.classes[chunk as usize] = class;
            self.clear(chunk, 0, order);
            return Some(self.base + chunk * CHUNK_FRAMES);
        }
        let (chunk, at) = self.find_block(order, class, own_class)?;
        self.clear(chunk, at, order);
        Some(self.base + chunk * CHUNK_FRAMES + at)
    }

    /// Puts single frames back.
    pub(super) fn give(&mut self, frames: &[u32]) {
        // Neighbours are put back by the word.
        let (mut word, mut mask) = (usize::MAX, 0);
        for frame in frames {
            let at = frame - self.base;
            if at as usize / 64 != word {
                self.give_word(word, mask);
                (word, mask) = (at as usize / 64, 0);
            }
            mask |= 1 << (at % 64);
        }
        self.give_word(word, mask);
        self.free_frames += frames.len() as u32;
    }

    #[inline]
    fn give_word(&mut self, word: usize, mask: u64) {
        if mask == 0 {
            return;
        }
        let chunk = word / WORDS;
        self.bits[chunk][word % WORDS] |= mask;
        let count = self.counts[chunk] + mask.count_ones() as u16;
        let begun = self.counts[chunk] == 0;
        self.counts[chunk] = count;
        if begun || count == CHUNK_FRAMES as u16 {
            self.reset(chunk as u32, count);
        }
    }

    /// Puts a block back.
    pub(super) fn give_block(&mut self, first: u32, order: Order) {
        let first = first - self.base;
        for start in (first..first + order.frames()).step_by(CHUNK_FRAMES as usize) {
            let frames = order.frames().min(CHUNK_FRAMES);
            let chunk = start >> CHUNK_ORDER;
            set_run(&mut self.bits[chunk as usize], start % CHUNK_FRAMES, frames, true);
            let before = self.counts[chunk as usize];
            self.recount(chunk, before, before + frames as u16);
        }
    }

    /// A chunk to take single frames from: begun ones first, then whole ones, then other classes'.
    fn chunk_for(&mut self, class: Mobility, own_class: bool) -> Option<u32> {
        if let Some(chunk) = self.some[class.index()].first() {
            return Some(chunk);
        }
        if let Some(chunk) = self.whole.first() {
            self.classes[chunk as usize] = class;
            return Some(chunk);
        }
        if own_class {
            return None;
        }
        class.fallbacks().into_iter().find_map(|other| self.some[other.index()].first())
    }

    fn find_block(&mut self, order: Order, class: Mobility, own_class: bool) -> Option<(u32, u32)> {
        if let Some(found) = self.search(order, class, SEARCH_MAX) {
            return Some(found);
        }
        if let Some(chunk) = self.whole.first() {
            self.classes[chunk as usize] = class;
            return Some((chunk, 0));
        }
        if own_class {
            return self.search(order, class, usize::MAX);
        }
        class.fallbacks().into_iter().find_map(|other| self.search(order, other, usize::MAX))
    }

    /// A block in one of the first begun chunks of a class.
    fn search(&self, order: Order, class: Mobility, chunks_max: usize) -> Option<(u32, u32)> {
        let some = &self.some[class.index()];
        let mut from = 0;
        for _ in 0..chunks_max {
            let chunk = some.next(from)?;
            from = chunk + 1;
            if u32::from(self.counts[chunk as usize]) >= order.frames() {
                if let Some(at) = find_run(&self.bits[chunk as usize], order) {
                    return Some((chunk, at));
                }
            }
        }
        None
    }

    /// Two whole chunks side by side, from an even one on.
    fn take_pair(&mut self) -> Option<u32> {
        let mut from = 0;
        loop {
            let chunk = self.whole.next(from)?;
            if chunk.is_multiple_of(2) && self.counts.len() as u32 > chunk + 1 && self.whole.contains(chunk + 1) {
                self.clear(chunk, 0, Order::PAGEBLOCK);
                self.clear(chunk + 1, 0, Order::PAGEBLOCK);
                return Some(self.base + chunk * CHUNK_FRAMES);
            }
            from = chunk + 1;
        }
    }

    fn clear(&mut self, chunk: u32, at: u32, order: Order) {
        set_run(&mut self.bits[chunk as usize], at, order.frames(), false);
        let before = self.counts[chunk as usize];
        self.recount(chunk, before, before - order.frames() as u16);
    }

    /// Stores a chunk's count and moves it to the set where it belongs.
    #[inline]
    fn recount(&mut self, chunk: u32, before: u16, after: u16) {
        self.counts[chunk as usize] = after;
        self.free_frames = self.free_frames + u32::from(after) - u32::from(before);
        if before == 0 || after == 0 || before == CHUNK_FRAMES as u16 || after == CHUNK_FRAMES as u16 {
            self.reset(chunk, after);
        }
    }

    fn reset(&mut self, chunk: u32, count: u16) {
        let class = self.classes[chunk as usize].index();
        let whole = count == CHUNK_FRAMES as u16;
        if whole {
            self.whole.insert(chunk)
        } else {
            self.whole.remove(chunk)
        }
        if count > 0 && !whole { self.some[class].insert(chunk) } else { self.some[class].remove(chunk) }
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
