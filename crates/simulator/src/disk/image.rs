//! The bytes of one file: sparse blocks and a size.
//!
//! Owns: the blocks, which of them take up space.
//! Does not own: durability (two images and a log make that, `file`), faults, timing.
//! Invariants: every byte at or past the size is zero, in blocks that exist too.

use std::collections::BTreeMap;

/// Bytes in one block of an image: what space is counted in.
pub(crate) const IMAGE_BLOCK_BYTES: u64 = 4096;

type Block = Box<[u8; IMAGE_BLOCK_BYTES as usize]>;

#[derive(Clone, Default)]
pub(crate) struct Image {
    blocks: BTreeMap<u64, Block>,
    size: u64,
}

impl Image {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Blocks that take up space.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Blocks that `offset..offset + len` would newly take up.
    pub(crate) fn blocks_missing(&self, offset: u64, len: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let (first, last) = (offset / IMAGE_BLOCK_BYTES, (offset + len - 1) / IMAGE_BLOCK_BYTES);
        last - first + 1 - self.blocks.range(first..=last).count() as u64
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        into.fill(0);
        if into.is_empty() {
            return;
        }
        let end = offset + into.len() as u64;
        let (first, last) = (offset / IMAGE_BLOCK_BYTES, (end - 1) / IMAGE_BLOCK_BYTES);
        for (index, block) in self.blocks.range(first..=last) {
            let start = index * IMAGE_BLOCK_BYTES;
            let (from, to) = (offset.max(start), end.min(start + IMAGE_BLOCK_BYTES));
            into[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&block[(from - start) as usize..(to - start) as usize]);
        }
    }

    /// Puts bytes in place and makes the file at least so large that it has them.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.size = self.size.max(offset + bytes.len() as u64);
        let mut at = 0;
        while at < bytes.len() {
            let position = offset + at as u64;
            let inside = (position % IMAGE_BLOCK_BYTES) as usize;
            let count = (bytes.len() - at).min(IMAGE_BLOCK_BYTES as usize - inside);
            self.block(position / IMAGE_BLOCK_BYTES)[inside..inside + count].copy_from_slice(&bytes[at..at + count]);
            at += count;
        }
    }

    fn block(&mut self, index: u64) -> &mut Block {
        self.blocks.entry(index).or_insert_with(|| Box::new([0; IMAGE_BLOCK_BYTES as usize]))
    }

    pub(crate) fn set_size(&mut self, size: u64) {
        if size < self.size {
            drop(self.blocks.split_off(&size.div_ceil(IMAGE_BLOCK_BYTES)));
            if let Some(block) = self.blocks.get_mut(&(size / IMAGE_BLOCK_BYTES)) {
                block[(size % IMAGE_BLOCK_BYTES) as usize..].fill(0);
            }
        }
        self.size = size;
    }

    /// Zeroes a range without a change of size; whole blocks stop taking up space.
    pub(crate) fn punch(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let touched: Vec<u64> = self
            .blocks
            .range(offset / IMAGE_BLOCK_BYTES..end.div_ceil(IMAGE_BLOCK_BYTES))
            .map(|(index, _)| *index)
            .collect();
        for index in touched {
            let start = index * IMAGE_BLOCK_BYTES;
            let (from, to) = (offset.max(start), end.min(start + IMAGE_BLOCK_BYTES));
            if to - from == IMAGE_BLOCK_BYTES {
                self.blocks.remove(&index);
            } else if let Some(block) = self.blocks.get_mut(&index) {
                block[(from - start) as usize..(to - start) as usize].fill(0);
            }
        }
    }

    /// Makes the range take up space.
    pub(crate) fn reserve(&mut self, offset: u64, len: u64) {
        if len > 0 {
            for index in offset / IMAGE_BLOCK_BYTES..=(offset + len - 1) / IMAGE_BLOCK_BYTES {
                self.block(index);
            }
        }
    }
}
