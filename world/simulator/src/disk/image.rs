//! The bytes of one file: sparse pages and a size.
//!
//! An image stores the first bytes of each page: all 4096, or the 16 of a stamp. These are the *backed* bytes. They are
//! numbered without gaps,
//! so that a range of the file is one run of them. Chunks of many pages hold stamps; whole pages have a chunk each. A
//! clone shares its chunks until one of the two images changes them.
//!
//! Owns: the backed bytes, the pages that take up space, the mapping from a file's offset to backed bytes.
//! Does not own: durability (`file` builds it from two images and a log), faults, timing.
//! Invariants: every byte at or past the size is zero, even in pages that take up space. Chunks without bytes, and
//! bytes that are not backed, read as zeros.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Bytes in one page of an image, the unit in which space is counted.
pub(crate) const IMAGE_BLOCK_BYTES: u64 = 4096;
/// Bytes backed of each page if pages are whole.
pub(crate) const WHOLE_PAGES: u64 = IMAGE_BLOCK_BYTES;
/// Bytes backed of each page if only its stamp is stored.
pub(crate) const STAMPS: u64 = afflux_frames::STAMP_BYTES as u64;
/// Pages in a chunk of stamps: 8 KiB.
const CHUNK_PAGES_MAX: u64 = 512;

/// How many backed bytes are before file offset `at`.
pub(crate) fn backed_before(at: u64, backed_bytes: u64) -> u64 {
    at / IMAGE_BLOCK_BYTES * backed_bytes + (at % IMAGE_BLOCK_BYTES).min(backed_bytes)
}

/// How many bytes of a range of the file are backed.
pub(crate) fn backed_len(offset: u64, len: u64, backed_bytes: u64) -> usize {
    (backed_before(offset.saturating_add(len), backed_bytes) - backed_before(offset, backed_bytes)) as usize
}

/// The part of `bytes`, at `offset` of a file, that is backed.
pub(crate) fn backed_of(offset: u64, bytes: &[u8], backed_bytes: u64) -> Vec<u8> {
    if backed_bytes == WHOLE_PAGES {
        return bytes.to_vec();
    }
    let mut backed = Vec::with_capacity(backed_len(offset, bytes.len() as u64, backed_bytes));
    for (start, len) in pieces(offset, bytes.len() as u64, IMAGE_BLOCK_BYTES) {
        let at = (start - offset) as usize;
        backed.extend_from_slice(&bytes[at..at + backed_len(start, len, backed_bytes)]);
    }
    backed
}

/// A range of a file, cut at the multiples of `unit`: offset and length of each piece.
pub(crate) fn pieces(offset: u64, len: u64, unit: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = offset + len;
    let mut at = offset;
    std::iter::from_fn(move || {
        let next = end.min((at / unit + 1) * unit);
        let piece = (at, next - at);
        at = next;
        (piece.1 > 0).then_some(piece)
    })
}

/// Consecutive pages.
#[derive(Clone, Default)]
struct Chunk {
    /// The backed bytes of all its pages; empty until the first write.
    bytes: Vec<u8>,
    /// One bit a page: the page takes up space.
    present: [u64; CHUNK_PAGES_MAX as usize / 64],
}

impl Chunk {
    /// The words of the bitmap that overlap pages `range`: index of the word, and mask of the overlap.
    fn words(range: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
        (range.start / 64..range.end.div_ceil(64)).map(move |word| {
            let (from, to) = (range.start.max(word * 64) % 64, range.end.min(word * 64 + 64) - word * 64);
            let upto = if to == 64 { u64::MAX } else { (1 << to) - 1 };
            (word as usize, upto & !((1 << from) - 1))
        })
    }

    fn count(&self, range: Range<u64>) -> u64 {
        Self::words(range).map(|(word, mask)| u64::from((self.present[word] & mask).count_ones())).sum()
    }

    /// Sets whether pages take up space; returns the number of pages that changed.
    fn mark(&mut self, range: Range<u64>, present: bool) -> u64 {
        let mut changed = 0;
        for (word, mask) in Self::words(range) {
            let before = self.present[word];
            self.present[word] = if present { before | mask } else { before & !mask };
            changed += u64::from((before ^ self.present[word]).count_ones());
        }
        changed
    }

    fn is_empty(&self) -> bool {
        self.present.iter().all(|word| *word == 0)
    }
}

#[derive(Clone)]
pub(crate) struct Image {
    backed_bytes: u64,
    chunk_pages: u64,
    chunks: BTreeMap<u64, Arc<Chunk>>,
    blocks: u64,
    size: u64,
}

impl Image {
    /// An empty file that stores this many bytes of each page.
    pub(crate) fn new(backed_bytes: u64) -> Self {
        let chunk_pages = if backed_bytes == WHOLE_PAGES { 1 } else { CHUNK_PAGES_MAX };
        Self { backed_bytes, chunk_pages, chunks: BTreeMap::new(), blocks: 0, size: 0 }
    }

    pub(crate) fn backed_bytes(&self) -> u64 {
        self.backed_bytes
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Pages that take up space.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The chunks that overlap a range.
    pub(crate) fn chunks_of(&self, offset: u64, len: u64) -> Range<u64> {
        let chunk_bytes = self.chunk_pages * IMAGE_BLOCK_BYTES;
        offset / chunk_bytes..offset.saturating_add(len).div_ceil(chunk_bytes)
    }

    /// The pages of a chunk that overlap a range of file pages, counted from the chunk's first.
    fn pages_in(&self, chunk: u64, pages: &Range<u64>) -> Range<u64> {
        let first = chunk * self.chunk_pages;
        pages.start.max(first) - first..(pages.end.max(first) - first).min(self.chunk_pages)
    }

    /// The backed bytes of a chunk inside a range, counted from the chunk's first, and their start among the range's
    /// backed bytes.
    fn bytes_in(&self, chunk: u64, offset: u64, len: u64) -> (Range<usize>, usize) {
        let chunk_backed = self.chunk_pages * self.backed_bytes;
        let first = chunk * chunk_backed;
        let from = backed_before(offset, self.backed_bytes);
        let to = backed_before(offset.saturating_add(len), self.backed_bytes);
        let range = (from.max(first) - first) as usize..((to - first).min(chunk_backed)) as usize;
        (range, (first.max(from) - from) as usize)
    }

    /// Pages that `offset..offset + len` would newly occupy.
    pub(crate) fn blocks_missing(&self, offset: u64, len: u64) -> u64 {
        let pages = offset / IMAGE_BLOCK_BYTES..offset.saturating_add(len).div_ceil(IMAGE_BLOCK_BYTES);
        if len == 0 {
            return 0;
        }
        let there = self.chunks.range(self.chunks_of(offset, len));
        let taken: u64 = there.map(|(index, chunk)| chunk.count(self.pages_in(*index, &pages))).sum();
        pages.end - pages.start - taken
    }

    /// The first offset at or after `from` in a page that takes up space.
    pub(crate) fn next_data(&self, from: u64) -> Option<u64> {
        let pages = from / IMAGE_BLOCK_BYTES..self.size.div_ceil(IMAGE_BLOCK_BYTES);
        let page = self.chunks.range(pages.start / self.chunk_pages..).find_map(|(index, chunk)| {
            let page = self.pages_in(*index, &pages).find(|page| chunk.count(*page..*page + 1) > 0)?;
            Some(index * self.chunk_pages + page)
        })?;
        Some((page * IMAGE_BLOCK_BYTES).max(from)).filter(|at| *at < self.size)
    }

    /// The first offset at or after `from` in a page that takes up no space, or the end.
    pub(crate) fn next_hole(&self, from: u64) -> Option<u64> {
        let pages = from / IMAGE_BLOCK_BYTES..self.size.div_ceil(IMAGE_BLOCK_BYTES);
        let hole = pages.clone().find(|page| self.blocks_missing(page * IMAGE_BLOCK_BYTES, 1) > 0).unwrap_or(pages.end);
        (from < self.size).then(|| (hole * IMAGE_BLOCK_BYTES).clamp(from, self.size))
    }

    /// The backed bytes of a range.
    pub(crate) fn read_backed(&self, offset: u64, len: u64) -> Vec<u8> {
        let mut backed = vec![0; backed_len(offset, len, self.backed_bytes)];
        for (index, chunk) in self.chunks.range(self.chunks_of(offset, len)) {
            if !chunk.bytes.is_empty() {
                let (range, at) = self.bytes_in(*index, offset, len);
                backed[at..at + range.len()].copy_from_slice(&chunk.bytes[range]);
            }
        }
        backed
    }

    /// All bytes of a range.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let backed = self.read_backed(offset, into.len() as u64);
        if self.backed_bytes == WHOLE_PAGES {
            return into.copy_from_slice(&backed);
        }
        into.fill(0);
        let mut backed = &backed[..];
        for (start, len) in pieces(offset, into.len() as u64, IMAGE_BLOCK_BYTES) {
            let (first, rest) = backed.split_at(backed_len(start, len, self.backed_bytes));
            into[(start - offset) as usize..][..first.len()].copy_from_slice(first);
            backed = rest;
        }
    }

    /// Stores the backed bytes of a range and grows the file to include it.
    pub(crate) fn write_backed(&mut self, offset: u64, len: u64, backed: &[u8]) {
        if len == 0 {
            return;
        }
        self.size = self.size.max(offset + len);
        let pages = offset / IMAGE_BLOCK_BYTES..(offset + len).div_ceil(IMAGE_BLOCK_BYTES);
        let chunk_backed = (self.chunk_pages * self.backed_bytes) as usize;
        for index in self.chunks_of(offset, len) {
            let (marked, (range, at)) = (self.pages_in(index, &pages), self.bytes_in(index, offset, len));
            let chunk = Arc::make_mut(self.chunks.entry(index).or_default());
            if chunk.bytes.is_empty() {
                chunk.bytes = vec![0; chunk_backed];
            }
            chunk.bytes[range.clone()].copy_from_slice(&backed[at..at + range.len()]);
            self.blocks += chunk.mark(marked, true);
        }
    }

    pub(crate) fn set_size(&mut self, size: u64) {
        if size < self.size {
            self.clear(size, u64::MAX - size, size.div_ceil(IMAGE_BLOCK_BYTES)..u64::MAX / IMAGE_BLOCK_BYTES);
        }
        self.size = size;
    }

    /// Zeroes a range without changing the size; whole pages no longer take up space.
    pub(crate) fn punch(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        self.clear(offset, len, offset.div_ceil(IMAGE_BLOCK_BYTES)..end / IMAGE_BLOCK_BYTES);
    }

    /// Zeroes a range; the pages in `freed` no longer take up space.
    fn clear(&mut self, offset: u64, len: u64, freed: Range<u64>) {
        let indexes: Vec<u64> = self.chunks.range(self.chunks_of(offset, len)).map(|(index, _)| *index).collect();
        for index in indexes {
            let (range, _) = self.bytes_in(index, offset, len);
            let pages = self.pages_in(index, &freed);
            let Some(chunk) = self.chunks.get_mut(&index) else { continue };
            let chunk = Arc::make_mut(chunk);
            if !chunk.bytes.is_empty() {
                chunk.bytes[range].fill(0);
            }
            self.blocks -= if pages.is_empty() { 0 } else { chunk.mark(pages, false) };
            if chunk.is_empty() {
                self.chunks.remove(&index);
            }
        }
    }

    /// Makes the range take up space.
    pub(crate) fn reserve(&mut self, offset: u64, len: u64) {
        let pages = offset / IMAGE_BLOCK_BYTES..offset.saturating_add(len).div_ceil(IMAGE_BLOCK_BYTES);
        for index in if len > 0 { self.chunks_of(offset, len) } else { 0..0 } {
            let marked = self.pages_in(index, &pages);
            self.blocks += Arc::make_mut(self.chunks.entry(index).or_default()).mark(marked, true);
        }
    }

    /// Shares a chunk of another image of the same kind.
    pub(crate) fn share_chunk(&mut self, index: u64, from: &Self) {
        let pages = 0..self.chunk_pages;
        if let Some(old) = self.chunks.remove(&index) {
            self.blocks -= old.count(pages.clone());
        }
        if let Some(chunk) = from.chunks.get(&index) {
            self.blocks += chunk.count(pages);
            self.chunks.insert(index, Arc::clone(chunk));
        }
    }

    /// Grows to `size` unless it is larger.
    pub(crate) fn grow(&mut self, size: u64) {
        self.size = self.size.max(size);
    }
}

#[cfg(test)]
mod tests;
