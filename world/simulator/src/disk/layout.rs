//! Positions of files' bytes on the medium.
//!
//! Space is allocated when files are first written, by one of two methods. Delayed: the file gets the aligned chunk
//! around the write at once, as on file systems that delay and preallocate (ext4). Files written side by side then
//! consist of pieces of a chunk. At submission: the file gets exactly the bytes written, in the order of submission, so
//! that interleaved writers fragment their files. Both methods use the next free range after the last one allocated,
//! large enough ones first. A file from before the run lies in one piece. Bytes never written have no position, and a
//! read of them costs nothing on the medium.
//!
//! Owns: the extents of each file, the free ranges.
//! Does not own: the limit on space (`state` counts blocks); names and metadata of a file system, which have no
//! position here (`timing::throttled` has the journal's cost of a sync).
//! Invariants: extents of files do not overlap while there is free space; a full medium shares positions instead of
//! failing, since `state` counts space.

use std::collections::BTreeMap;

use super::timing::Span;

/// Unit of allocation.
const UNIT_BYTES: u64 = 4096;
/// Free ranges that are tried before settling for one that is too small.
const LOOKS_MAX: usize = 64;

/// How space is allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocation {
    /// Allocates a chunk at a time.
    Delayed {
        /// Its size: a multiple of 4096.
        chunk_bytes: u64,
    },
    /// Allocates exactly the bytes written, at submission.
    AtSubmission,
}

#[derive(Clone, Copy)]
struct Extent {
    len: u64,
    position: u64,
}

#[derive(Default)]
struct FileMap {
    /// File offset to extent.
    extents: BTreeMap<u64, Extent>,
}

pub(crate) struct Layout {
    allocation: Allocation,
    files: BTreeMap<u64, FileMap>,
    /// Start to length.
    free: BTreeMap<u64, u64>,
    /// Where the last range given out ends.
    cursor: u64,
    capacity: u64,
}

impl FileMap {
    /// The first part of `offset..end` without a position.
    fn first_hole(&self, offset: u64, end: u64) -> Option<(u64, u64)> {
        let mut at = offset;
        if let Some((start, extent)) = self.extents.range(..=at).next_back() {
            at = at.max(start + extent.len);
        }
        while at < end {
            match self.extents.range(at..).next() {
                Some((start, extent)) if *start == at => at += extent.len,
                Some((start, _)) => return Some((at, end.min(*start))),
                None => return Some((at, end)),
            }
        }
        None
    }

    fn insert(&mut self, offset: u64, extent: Extent) {
        if let Some((_, before)) =
            self.extents.range_mut(..offset).next_back().filter(|(start, before)| {
                *start + before.len == offset && before.position + before.len == extent.position
            })
        {
            before.len += extent.len;
            return;
        }
        self.extents.insert(offset, extent);
    }
}

impl Layout {
    pub(crate) fn new(allocation: Allocation, capacity_bytes: u64) -> Self {
        let capacity = (capacity_bytes / UNIT_BYTES).max(1) * UNIT_BYTES;
        Self { allocation, files: BTreeMap::new(), free: BTreeMap::from([(0, capacity)]), cursor: 0, capacity }
    }

    /// Adds the positions of a range to `spans`, in the order of the file's bytes; adjacent spans become one. Bytes
    /// without a position are omitted.
    pub(crate) fn find(&self, file: u64, offset: u64, len: u64, spans: &mut Vec<Span>) {
        let Some(map) = self.files.get(&file) else { return };
        let end = offset.saturating_add(len);
        let first = map.extents.range(..=offset).next_back().map_or(offset, |(start, _)| *start);
        for (start, extent) in map.extents.range(first..end) {
            let (from, until) = (offset.max(*start), end.min(start + extent.len));
            if from >= until {
                continue;
            }
            let span = Span { position: extent.position + (from - start), len: until - from };
            match spans.last_mut() {
                Some(last) if last.position + last.len == span.position => last.len += span.len,
                _ => spans.push(span),
            }
        }
    }

    /// Allocates space for the parts of a range that have none, before it is written.
    pub(crate) fn allocate(&mut self, file: u64, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        while let Some((from, _)) = self.files.entry(file).or_default().first_hole(offset, end) {
            let (start, until) = match self.allocation {
                Allocation::AtSubmission => (from / UNIT_BYTES * UNIT_BYTES, end.next_multiple_of(UNIT_BYTES)),
                Allocation::Delayed { chunk_bytes } => {
                    let start = from / chunk_bytes * chunk_bytes;
                    (start, start + chunk_bytes)
                }
            };
            self.fill(file, start, until);
        }
    }

    /// Lays a range out in as few pieces as possible. If it is larger than the medium, only that much of it has a
    /// position.
    pub(crate) fn lay_out(&mut self, file: u64, offset: u64, len: u64) {
        let len = len.min(self.capacity);
        let start = offset / UNIT_BYTES * UNIT_BYTES;
        self.fill(file, start, offset.saturating_add(len).div_ceil(UNIT_BYTES).saturating_mul(UNIT_BYTES));
    }

    /// Gives a range of a file this position, which is free. The next allocation looks behind it.
    pub(crate) fn place(&mut self, file: u64, offset: u64, position: u64, len: u64) {
        let before = self.free.range(..=position).next_back().map(|(start, free)| (*start, start + free));
        if let Some((start, end)) = before.filter(|before| before.1 >= position + len) {
            self.free.remove(&start);
            let rests = [(start, position - start), (position + len, end - position - len)];
            self.free.extend(rests.into_iter().filter(|rest| rest.1 > 0));
        }
        self.files.entry(file).or_default().insert(offset, Extent { len, position });
        self.cursor = position + len;
    }

    fn fill(&mut self, file: u64, start: u64, end: u64) {
        while let Some((from, until)) = self.files.entry(file).or_default().first_hole(start, end) {
            let extent = self.take(from, until - from);
            self.files.entry(file).or_default().insert(from, extent);
        }
    }

    /// Up to `len` bytes of free space. A full medium gives space that is in use.
    fn take(&mut self, offset: u64, len: u64) -> Extent {
        let ranges = || self.free.range(self.cursor..).chain(self.free.range(..self.cursor)).take(LOOKS_MAX);
        let found = ranges().find(|range| *range.1 >= len).or_else(|| ranges().max_by_key(|range| *range.1));
        let Some((start, free)) = found.map(|range| (*range.0, *range.1)) else {
            let position = offset % self.capacity;
            return Extent { position, len: len.min(self.capacity - position) };
        };
        self.free.remove(&start);
        let taken = len.min(free);
        if taken < free {
            self.free.insert(start + taken, free - taken);
        }
        self.cursor = start + taken;
        Extent { position: start, len: taken }
    }

    /// Frees the space of a range of a file. Only whole units are freed.
    pub(crate) fn free(&mut self, file: u64, offset: u64, len: u64) {
        let start = offset.div_ceil(UNIT_BYTES).saturating_mul(UNIT_BYTES);
        let end = offset.saturating_add(len) / UNIT_BYTES * UNIT_BYTES;
        let Some(map) = self.files.get_mut(&file) else { return };
        let mut freed = Vec::new();
        while let Some((at, extent)) = map.extents.range(..end).next_back().map(|(at, extent)| (*at, *extent)) {
            if at + extent.len <= start {
                break;
            }
            map.extents.remove(&at);
            let (from, until) = (start.max(at), end.min(at + extent.len));
            if at < from {
                map.extents.insert(at, Extent { len: from - at, position: extent.position });
            }
            if until < at + extent.len {
                let rest = Extent { len: at + extent.len - until, position: extent.position + (until - at) };
                map.extents.insert(until, rest);
            }
            freed.push((extent.position + (from - at), until - from));
            if from == start && at <= start {
                break;
            }
        }
        freed.into_iter().for_each(|(position, len)| self.give_back(position, len));
    }

    /// Frees all space of a file.
    pub(crate) fn remove(&mut self, file: u64) {
        for extent in self.files.remove(&file).into_iter().flat_map(|map| map.extents.into_values()) {
            self.give_back(extent.position, extent.len);
        }
    }

    /// Frees a range and joins it with its free neighbours. Shared space is freed once.
    fn give_back(&mut self, position: u64, len: u64) {
        let (mut start, mut end) = (position, position + len);
        while let Some((at, free)) = self.free.range(..=end).next_back().map(|(at, free)| (*at, *free)) {
            if at + free < start {
                break;
            }
            self.free.remove(&at);
            (start, end) = (start.min(at), end.max(at + free));
        }
        self.free.insert(start, end - start);
    }
}

#[cfg(test)]
mod tests;
