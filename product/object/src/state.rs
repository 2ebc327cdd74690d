//! The state of an open volume in memory.
//!
//! Owns: files, the order of their writes, segments from their making to their first name, the bound of memory.
//! Does not own: requests; this state is changed under a short lock.
//! Invariants: a file with unnamed writes, inline bytes or a batch in flight stays in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::control::{Broken, CheckedRule};
use crate::file::{Cut, END, ObjectFile, ObjectWrite, UnnamedContent};
use crate::format::compression::Compression;
use crate::format::extent::{ExtentSource, SEGMENT_BYTES_MAX, SegmentId, StoredExtent};
use crate::format::records::{Body, SHARED_BYTES_MAX};
use crate::retry::OnWay;
use crate::seams::Sequence;

/// Sizes and times that tests make smaller, and the form of new bytes.
#[derive(Clone, Copy, Debug)]
pub struct VolumeLimits {
    /// Most bytes of a segment's runs.
    pub segment_bytes: u64,
    /// A COMMIT of at most so many bytes carries them in its batch.
    pub inline_bytes: u64,
    /// A dead segment is retained so long at least.
    pub dead_ns: u64,
    /// Most changes of a batch. It must be 16 at least.
    pub batch_changes: usize,
    /// A part of a file's map is read from the records with so many extents.
    pub window_extents: usize,
    /// Most extents of a file's map in memory.
    pub map_extents: usize,
    /// Most extents and files in memory, besides those in use.
    pub memory_extents: usize,
    /// A segment with more live bytes is shared no more.
    pub shared_bytes: u64,
    /// How new runs are stored.
    pub compression: Compression,
}

impl Default for VolumeLimits {
    fn default() -> Self {
        Self {
            segment_bytes: u64::from(SEGMENT_BYTES_MAX),
            inline_bytes: 64 << 10,
            dead_ns: 600_000_000_000,
            batch_changes: 4_096,
            window_extents: 4_096,
            map_extents: 16_384,
            memory_extents: 262_144,
            shared_bytes: SHARED_BYTES_MAX,
            compression: Compression::default(),
        }
    }
}

/// A segment whose bytes files still name at other locations.
#[derive(Debug)]
pub(crate) struct Moving {
    pub(crate) segment: SegmentId,
    pub(crate) moves: VecDeque<Move>,
}

/// An extent, and its location after the move.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) ino: u64,
    pub(crate) old: StoredExtent,
    pub(crate) new: StoredExtent,
}

#[derive(Debug, Default)]
pub(crate) struct VolumeState {
    pub(crate) broken: Broken,
    pub(crate) files: BTreeMap<u64, ObjectFile>,
    /// The files of buffered writes, by the ids of these.
    pub(crate) buffered: BTreeMap<u64, u64>,
    pub(crate) uploads: BTreeMap<SegmentId, OnWay>,
    /// Segments that were PUT, and have no record of live bytes. With the bytes of their runs.
    pub(crate) unannounced: VecDeque<(SegmentId, u64)>,
    /// The segments that a batch names for the first time, until it is durable.
    pub(crate) naming: VecDeque<(Sequence, BTreeSet<SegmentId>)>,
    pub(crate) moving: Option<Moving>,
    /// The files with bytes in records, and maybe more files.
    pub(crate) inline_files: BTreeSet<u64>,
    /// These bytes; fewer after the next count.
    pub(crate) inline_bytes: u64,
    /// The time at which this process first saw each dead segment.
    pub(crate) dead_at_ns: BTreeMap<SegmentId, u64>,
    /// Segments of this epoch that were given up. Their PUT may have had its effect.
    pub(crate) given_up: BTreeSet<SegmentId>,
    /// Segments that got further extents since the last scan for dead ones began.
    pub(crate) shared: BTreeSet<SegmentId>,
    /// Segments that compaction leaves alone.
    pub(crate) damaged: BTreeSet<SegmentId>,
    pub(crate) last_write: u64,
    pub(crate) next_segment: u64,
    uses: u64,
    /// Extents and files that came into memory since the last check of all.
    grown: usize,
    /// Counts the times at which files were forgotten.
    forgotten: u64,
    /// No new operations begin.
    pub(crate) is_closing: bool,
    /// No operation is answered any more.
    pub(crate) is_closed: bool,
}

/// The state of a file's records. A scan is valid if it is the same at the end.
pub(crate) type Stamp = (Sequence, u64);

impl VolumeState {
    pub(crate) fn new(broken: Broken) -> Self {
        Self { broken, ..Self::default() }
    }

    pub(crate) fn file(&mut self, ino: u64) -> &mut ObjectFile {
        self.uses += 1;
        let file = self.files.entry(ino).or_insert_with(|| {
            self.grown += 1;
            ObjectFile::default()
        });
        file.used_at = self.uses;
        file
    }

    /// A new file: no record has anything of it.
    pub(crate) fn begin_file(&mut self, ino: u64, limits: &VolumeLimits, durable: Sequence) {
        let file = self.file(ino);
        file.body = Some(Body::default());
        file.map.learn(0, Vec::new(), true);
        self.trim(limits, durable);
    }

    pub(crate) fn stamp(&mut self, ino: u64) -> Stamp {
        (self.file(ino).last_batch, self.forgotten)
    }

    /// Adds a write. Returns its id.
    pub(crate) fn take(&mut self, ino: u64, start: u64, end: u64, at_ns: u64, content: UnnamedContent) -> u64 {
        self.last_write += 1;
        let id = self.last_write;
        if matches!(content, UnnamedContent::Buffered(_)) {
            self.buffered.insert(id, ino);
        }
        self.file(ino).push(ObjectWrite { id, start, end, at_ns, content });
        id
    }

    /// Drops a file's writes, and cuts it to nothing. Returns the id of the cut.
    pub(crate) fn drop_file(&mut self, ino: u64) -> u64 {
        let file = self.file(ino);
        file.is_reaped = true;
        for write in file.drop_writes() {
            self.buffered.remove(&write.id);
            if let UnnamedContent::Segment(place, Some(_)) = write.content {
                self.give_up(place.segment, ino);
            }
        }
        self.take(ino, 0, END, 0, UnnamedContent::Cut(Cut { size: 0, is_begun: false }))
    }

    /// Takes the extents that a scan found from `from` on, unless the records of the file changed since the stamp. If
    /// the map is too large, all but a range of it goes.
    pub(crate) fn learn(
        &mut self,
        ino: u64,
        from: u64,
        kept: (u64, u64),
        stamp: Stamp,
        extents: Vec<StoredExtent>,
        limits: &VolumeLimits,
    ) {
        if self.stamp(ino) != stamp && !self.broken.is(CheckedRule::ReadAgain) {
            return;
        }
        let is_all = extents.len() < limits.window_extents;
        self.grown += extents.len();
        for extent in extents.iter().filter(|extent| matches!(extent.source, ExtentSource::Inline(_))) {
            self.inline_files.insert(ino);
            self.inline_bytes += extent.bytes();
        }
        let map = &mut self.file(ino).map;
        if map.len() + extents.len() > limits.map_extents {
            map.forget_all_but(kept.0, kept.1);
        }
        map.learn(from, extents, is_all);
    }

    /// Forgets the files that nobody used for the longest time, if memory is full. The last used one stays.
    pub(crate) fn trim(&mut self, limits: &VolumeLimits, durable: Sequence) {
        if self.grown <= limits.memory_extents / 2 {
            return;
        }
        self.grown = 0;
        let mut all: usize = self.files.values().map(ObjectFile::extents).sum();
        let idle = self.files.iter().filter(|(_, file)| file.used_at < self.uses && file.is_idle(durable));
        let mut idle: Vec<_> = idle.map(|(ino, file)| (file.used_at, *ino)).collect();
        idle.sort_unstable();
        for (_, ino) in idle {
            if all <= limits.memory_extents / 2 {
                break;
            }
            all -= self.forget(ino);
        }
    }

    /// Forgets all files. Nothing in them waits to be written.
    pub(crate) fn forget_all(&mut self) {
        self.forgotten += 1;
        self.files.clear();
        self.inline_files.clear();
        self.inline_bytes = 0;
    }

    /// Returns the memory that the file took, in extents.
    pub(crate) fn forget(&mut self, ino: u64) -> usize {
        self.forgotten += 1;
        self.files.remove(&ino).map_or(0, |file| file.extents())
    }

    /// The segments that a live extent may need although no durable record names them: an extent in memory waits for
    /// its name, or the batch with the name is not durable.
    pub(crate) fn waiting(&self, durable: Sequence) -> BTreeSet<SegmentId> {
        let mut waiting: BTreeSet<SegmentId> = self.uploads.keys().copied().collect();
        waiting.extend(self.moving.as_ref().map(|moving| moving.segment));
        let naming = self.naming.iter().filter(|(sequence, _)| *sequence > durable);
        waiting.extend(naming.flat_map(|(_, segments)| segments));
        for write in self.files.values().flat_map(|file| &file.writes) {
            if let UnnamedContent::Segment(place, _) = &write.content {
                waiting.insert(place.segment);
            }
        }
        waiting
    }
}

#[cfg(test)]
mod tests;
