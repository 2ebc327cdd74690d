//! The rescue of live bytes from segments that are mostly garbage, and stored bytes that move to another segment.
//!
//! Owns: the choice of segments, the reading of their live bytes; the PUT of inline bytes as a segment, the change of
//! records after a move.
//! Does not own: the time for it (`collect`).
//! Invariants: a damaged segment is left alone, so its other bytes stay readable where they are. A move changes no byte
//! of a file. It renames only extents that are still as they were read, under the state's lock, and after the PUT of
//! the new segment was answered. One move is under way at a time; a dropped one is carried on.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;

use crate::control::CheckedRule;
use crate::error::{ObjectVolumeError, refused};
use crate::extents::MapChanges;
use crate::format::extent::{ExtentSource, SegmentId, SegmentRange, StoredExtent};
use crate::format::records::{SegmentBytes, SegmentRecord};
use crate::format::segment::{OBJECT_BYTES_MAX, check_lines, directory, lines, part};
use crate::open::ObjectVolume;
use crate::retry::{SegmentRun, until_answered, yield_once};
use crate::seams::{Clock, ObjectError, Objects, RecordDatabase, RecordsError, Sequence};
use crate::state::{Move, Moving, VolumeLimits, VolumeState};

/// Most segments that one compaction reads.
const VICTIMS_MAX: usize = 16;

/// So many bytes are decompressed without a pause, or those of one extent.
const BYTES_TOGETHER: usize = 512 << 10;

/// A file's extent with its bytes.
type Rescued = Vec<(u64, StoredExtent, Bytes)>;

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Moves the live bytes of some segments that are less than half alive into one. Returns the bytes.
    ///
    /// # Errors
    /// If a later writer took over, the store refuses, or records are damaged.
    pub async fn compact(&self) -> Result<u64, ObjectVolumeError> {
        self.finish_move().await?;
        let (mut rescued, mut bytes) = (Rescued::new(), 0);
        for (segment, live) in self.victims().await? {
            if bytes + live > self.limits.segment_bytes {
                break;
            }
            match self.rescue(segment).await {
                // The files that the segment names have given its bytes up. Only files that share the bytes use them.
                Ok(extents) if extents.is_empty() => _ = self.state().damaged.insert(segment),
                Ok(extents) => rescued.extend(extents),
                Err(ObjectVolumeError::Damaged(_) | ObjectVolumeError::Missing(_)) => {
                    self.state().damaged.insert(segment);
                }
                Err(error) => return Err(error),
            }
            // A dead byte never lives again, so these are no more than the scan found.
            bytes = rescued.iter().map(|(_, extent, _)| extent.bytes()).sum();
        }
        if rescued.is_empty() || !self.state().begin_move(self.records.epoch(), rescued)? {
            return Ok(0);
        }
        self.finish_move().await?;
        Ok(bytes)
    }

    /// The segments with the most garbage, and their live bytes.
    async fn victims(&self) -> Result<Vec<(SegmentId, u64)>, ObjectVolumeError> {
        let waiting = self.waiting();
        let (mut from, end) = SegmentRecord::Live.keys();
        let mut victims = BTreeSet::new();
        while from < end {
            let (found, next) = self.segments(SegmentRecord::Live, from).await?;
            for (segment, sum) in found {
                let SegmentBytes { all, live } = SegmentBytes::of(sum);
                if live > 0 && 2 * live < all && !waiting.contains(&segment) && !self.state().damaged.contains(&segment)
                {
                    victims.insert((all - live, segment, live));
                }
                if victims.len() > VICTIMS_MAX {
                    victims.pop_first();
                }
            }
            from = next;
        }
        Ok(victims.into_iter().rev().map(|(_, segment, live)| (segment, live)).collect())
    }

    /// Reads the extents of a segment that files still have.
    async fn rescue(&self, segment: SegmentId) -> Result<Rescued, ObjectVolumeError> {
        let name = segment.name();
        let object = match until_answered(&self.clock, || self.objects.get(&name, 0..OBJECT_BYTES_MAX)).await {
            Err(ObjectError::Missing) => return Err(ObjectVolumeError::Missing(segment)),
            object => object.map_err(refused)?.joined(),
        };
        let (mut rescued, mut without_pause) = (Vec::new(), 0);
        for entry in directory(segment, &object)? {
            let end = entry.start + u64::from(entry.bytes);
            for extent in self.named(entry.ino, entry.start, end).await? {
                let ExtentSource::Segment(place) = &extent.source else { continue };
                if (place.segment, place.offset) == (segment, entry.offset) {
                    let lines = lines(place, extent.bytes() as u32);
                    let bytes = Bytes::from(check_lines(place, extent.bytes() as u32, &part(&object, &lines))?);
                    without_pause += bytes.len();
                    if without_pause >= BYTES_TOGETHER {
                        yield_once().await;
                        without_pause = 0;
                    }
                    rescued.push((entry.ino, extent, bytes));
                }
            }
        }
        Ok(rescued)
    }

    async fn named(&self, ino: u64, start: u64, end: u64) -> Result<Vec<StoredExtent>, ObjectVolumeError> {
        loop {
            self.load(ino, start, end).await?;
            let mut state = self.state();
            let map = &state.file(ino).map;
            if map.gap(start, end).is_none() {
                return Ok(map.within(start, end));
            }
        }
    }
}

/// Changes of a batch for one renamed extent.
const CHANGES: usize = 4;

impl VolumeState {
    /// Begins to move these extents, which have these bytes. False if a move is under way.
    pub(crate) fn begin_move(
        &mut self,
        epoch: u32,
        extents: Vec<(u64, StoredExtent, Bytes)>,
    ) -> Result<bool, ObjectVolumeError> {
        if self.moving.is_some() {
            return Ok(false);
        }
        let segment = self.new_segment(epoch)?;
        let (mut runs, mut moves) = (Vec::new(), VecDeque::new());
        for (ino, old, bytes) in extents {
            let place = SegmentRange::unplaced(segment, bytes.len());
            runs.push(SegmentRun { ino, start: old.start, bytes });
            let new = StoredExtent { source: ExtentSource::Segment(place), ..old };
            moves.push_back(Move { ino, old, new });
        }
        self.begin_upload(segment, runs, false, Vec::new());
        self.moving = Some(Moving { segment, moves });
        Ok(true)
    }

    /// Begins to move inline bytes. False if there are none.
    fn begin_pack(&mut self, epoch: u32, limits: &VolumeLimits) -> Result<bool, ObjectVolumeError> {
        if self.moving.is_some() {
            return Ok(true);
        }
        let (mut extents, mut bytes) = (Vec::new(), 0);
        for ino in &self.inline_files {
            for extent in self.files.get(ino).into_iter().flat_map(|file| file.map.inline()) {
                let ExtentSource::Inline(inline) = &extent.source else { continue };
                bytes += extent.bytes();
                if bytes > limits.segment_bytes {
                    break;
                }
                extents.push((*ino, extent.clone(), inline.clone()));
            }
        }
        let is_some = !extents.is_empty();
        if is_some {
            self.begin_move(epoch, extents)?;
        }
        Ok(is_some)
    }

    /// Counts the inline bytes, and returns whether it is time to move them.
    pub(crate) fn check_inline_full(&mut self, limits: &VolumeLimits) -> bool {
        if self.inline_bytes < limits.segment_bytes && self.inline_files.len() < limits.map_extents {
            return false;
        }
        let Self { files, inline_files, inline_bytes, .. } = self;
        inline_files.retain(|ino| files.get(ino).is_some_and(|file| file.map.inline().next().is_some()));
        let extents = inline_files.iter().filter_map(|ino| files.get(ino)).flat_map(|file| file.map.inline());
        *inline_bytes = extents.map(StoredExtent::bytes).sum();
        *inline_bytes >= limits.segment_bytes || inline_files.len() >= limits.map_extents
    }

    /// Renames extents that moved to a segment, with one batch. The PUT of the segment was answered.
    fn rename(
        &mut self,
        segment: SegmentId,
        limits: &VolumeLimits,
        records: &impl RecordDatabase,
        is_blind: bool,
    ) -> Result<Renamed, RecordsError> {
        let Some(moving) = self.moving.as_mut().filter(|moving| moving.segment == segment) else {
            return Ok(Renamed::All);
        };
        let (mut changes, mut inos) = (MapChanges::default(), BTreeSet::new());
        while let Some(step) = moving.moves.pop_front() {
            let (ino, old) = (step.ino, &step.old);
            let map = &mut self.files.entry(ino).or_default().map;
            if map.gap(old.start, old.end).is_some() {
                let load = Renamed::Unknown(ino, old.start, old.end);
                moving.moves.push_front(step);
                if inos.is_empty() {
                    return Ok(load);
                }
                break;
            }
            let current = map.within(old.start, old.end);
            let is_same =
                |extent: &StoredExtent| is_blind || extent.source == old.part(extent.start, extent.end).source;
            let mut current = current.iter().filter(|extent| is_same(extent));
            let full = current.find(|extent| {
                if changes.len() + CHANGES > limits.batch_changes {
                    return true;
                }
                map.replace(
                    ino,
                    (extent.start, extent.end),
                    Some(step.new.part(extent.start, extent.end)),
                    &mut changes,
                );
                inos.insert(ino);
                false
            });
            if let Some(extent) = full {
                let (old, new) = (old.part(extent.start, old.end), step.new.part(extent.start, old.end));
                moving.moves.push_front(Move { ino, old, new });
                break;
            }
        }
        if moving.moves.is_empty() {
            self.moving = None;
        }
        if inos.is_empty() {
            return Ok(Renamed::All);
        }
        let sequence = records.apply(changes.into_batch()).inspect_err(|_| self.is_closed = true)?;
        self.naming.push_back((sequence, BTreeSet::from([segment])));
        for ino in inos {
            self.file(ino).gave(sequence, 0, records.durable_through());
        }
        Ok(Renamed::Some(sequence))
    }
}

enum Renamed {
    /// The map of a file must be read from here to before there.
    Unknown(u64, u64, u64),
    /// A batch was given to the records.
    Some(Sequence),
    All,
}

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Moves inline bytes of small COMMITs from records to segments. The caller runs it before the database flushes its
    /// memtable, so moved bytes never reach the tree.
    ///
    /// # Errors
    /// If a later writer took over, or the store refuses.
    pub async fn pack(&self) -> Result<(), ObjectVolumeError> {
        let mut rounds = 1 + self.begin()?.inline_bytes / self.limits.segment_bytes;
        while rounds > 0 {
            self.finish_move().await?;
            if !self.begin()?.begin_pack(self.records.epoch(), &self.limits)? {
                break;
            }
            rounds -= 1;
        }
        self.finish_move().await
    }

    /// Carries the move on that is under way.
    pub(crate) async fn finish_move(&self) -> Result<(), ObjectVolumeError> {
        let mut last = Sequence::default();
        loop {
            let segment = self.state().moving.as_ref().map(|moving| moving.segment);
            let Some(segment) = segment else { break };
            if !self.broken.is(CheckedRule::RenameAfterPut) {
                self.upload(segment).await?;
            }
            let is_blind = self.broken.is(CheckedRule::RenameSameOnly);
            let renamed = self.state().rename(segment, &self.limits, &self.records, is_blind)?;
            match renamed {
                Renamed::Unknown(ino, start, end) => self.load(ino, start, end).await?,
                Renamed::Some(sequence) => last = sequence,
                Renamed::All => (),
            }
        }
        Ok(self.records.durable(last).await?)
    }
}
