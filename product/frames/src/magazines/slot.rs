//! The middle lists: a slot's magazines, which any thread without frames may empty.
//!
//! Owns: up to 256 single frames a class and 64 blocks of 2 MiB, last in first out.
//! Does not own: the lock around them.
//! Invariants: the caller makes room before it gives frames beyond the capacity.

use crate::Mobility;

/// Most single frames of a class in a magazine.
pub(super) const MAGAZINE_FRAMES: usize = 256;
/// Most frames that move between a magazine and the backing at a time.
pub(super) const BATCH_MAX: usize = MAGAZINE_FRAMES / 2;
/// Most 2 MiB blocks in a slot; half of them move at a time.
pub(super) const HUGE_BLOCKS: usize = 64;

/// A stack of a fixed capacity.
#[derive(Debug)]
pub(super) struct Magazine {
    len: usize,
    frames: Box<[u32]>,
}

impl Magazine {
    fn new(capacity: usize) -> Self {
        Self { len: 0, frames: vec![0; capacity].into_boxed_slice() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn capacity(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn pop(&mut self) -> Option<u32> {
        self.len = self.len.checked_sub(1)?;
        self.frames.get(self.len).copied()
    }

    pub(super) fn push(&mut self, frame: u32) {
        self.frames[self.len] = frame;
        self.len += 1;
    }

    /// Takes the last frames, as many as fit in `out`.
    pub(super) fn pop_into(&mut self, out: &mut [u32]) -> usize {
        let count = self.len.min(out.len());
        out[..count].copy_from_slice(&self.frames[self.len - count..self.len]);
        self.len -= count;
        count
    }

    pub(super) fn extend(&mut self, frames: &[u32]) {
        self.frames[self.len..self.len + frames.len()].copy_from_slice(frames);
        self.len += frames.len();
    }

    /// Removes the `count` frames that have been there longest.
    pub(super) fn take_oldest<R>(&mut self, count: usize, take: impl FnOnce(&[u32]) -> R) -> R {
        let result = take(&self.frames[..count]);
        self.frames.copy_within(count..self.len, 0);
        self.len -= count;
        result
    }
}

/// A slot's lists, behind its lock.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) singles: [Magazine; Mobility::COUNT],
    pub(super) huge: Magazine,
}

impl Slot {
    /// A slot with room for `singles` frames of each class, and `huge` blocks of 2 MiB.
    pub(super) fn new(singles: usize, huge: usize) -> Self {
        Self { singles: [(); Mobility::COUNT].map(|()| Magazine::new(singles)), huge: Magazine::new(huge) }
    }

    /// The number of frames here.
    pub(super) fn frames(&self) -> u32 {
        let singles: usize = self.singles.iter().map(Magazine::len).sum();
        singles as u32 + self.huge.len() as u32 * crate::Order::PAGEBLOCK.frames()
    }

    /// Bytes of its lists, without the slot itself.
    #[cfg(test)]
    pub(super) fn list_bytes(&self) -> usize {
        let singles: usize = self.singles.iter().map(Magazine::capacity).sum();
        (singles + self.huge.capacity()) * size_of::<u32>()
    }
}
