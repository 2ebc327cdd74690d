//! The state of an open volume in memory.
//!
//! Owns: writes that no batch names yet, the maps of files, segments on their way.
//! Does not own: requests; this state is changed under a short lock.
//! Invariants: the writes of a file are in the order of their calls. The named map of a file is the state after all
//! batches given to the records.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::ObjectVolumeError;
use crate::extents::{ExtentMap, MapChanges};
use crate::format::extent::{Extent, Place, Source};
use crate::format::segment::SegmentWriter;
use crate::format::segment_id::{SEGMENT_BYTES_MAX, SegmentId};
use crate::retry::Upload;
use crate::seams::Sequence;

/// Sizes and times that tests make smaller.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of a segment's runs.
    pub segment_bytes: u64,
    /// A COMMIT of at most so many bytes carries them in its batch.
    pub inline_bytes: u64,
    /// A dead segment is kept so long at least.
    pub dead_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { segment_bytes: u64::from(SEGMENT_BYTES_MAX), inline_bytes: 64 << 10, dead_ns: 600_000_000_000 }
    }
}

/// The bytes of a write that no batch names yet.
#[derive(Clone, Debug)]
pub(crate) enum Unnamed {
    Hole,
    Buffered(Bytes),
    /// In a segment; with its bytes until the PUT is answered.
    Segment(Place, Option<Bytes>),
}

#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) number: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) source: Unnamed,
}

impl Write {
    /// The extent of the write, as reads see it.
    pub(crate) fn extent(&self) -> Option<Extent> {
        let source = match &self.source {
            Unnamed::Hole => return None,
            Unnamed::Buffered(bytes) | Unnamed::Segment(_, Some(bytes)) => Source::Inline(bytes.clone()),
            Unnamed::Segment(place, None) => Source::Segment(*place),
        };
        Some(Extent { start: self.start, end: self.end, source })
    }

    fn segment_on_its_way(&self) -> Option<SegmentId> {
        match &self.source {
            Unnamed::Segment(place, Some(_)) => Some(place.segment),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct File {
    /// Absent until the file's records were read.
    pub(crate) named: Option<ExtentMap>,
    pub(crate) writes: VecDeque<Write>,
    /// The newest batch with records of the file.
    pub(crate) last_batch: Sequence,
}

impl File {
    /// The bytes up to a write that are not in a segment.
    pub(crate) fn buffered_bytes(&self, cut: u64) -> u64 {
        let upto = self.writes.iter().take_while(|write| write.number <= cut);
        upto.filter(|write| matches!(write.source, Unnamed::Buffered(_))).map(|write| write.end - write.start).sum()
    }

    /// The segments on their way with writes up to `cut`.
    pub(crate) fn on_their_way(&self, cut: u64) -> BTreeSet<SegmentId> {
        let upto = self.writes.iter().take_while(|write| write.number <= cut);
        upto.filter_map(Write::segment_on_its_way).collect()
    }
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) files: BTreeMap<u64, File>,
    pub(crate) uploads: BTreeMap<SegmentId, Arc<Upload>>,
    /// Segments that were PUT, and have no record of live bytes.
    pub(crate) unannounced: Vec<SegmentId>,
    /// The segments that a batch names for the first time, until it is durable.
    pub(crate) naming: VecDeque<(Sequence, BTreeSet<SegmentId>)>,
    /// The time at which this process first saw each dead segment.
    pub(crate) dead_at_ns: BTreeMap<SegmentId, u64>,
    pub(crate) last_write: u64,
    pub(crate) next_segment: u64,
    /// No new operations begin.
    pub(crate) is_closing: bool,
    /// No operation is answered any more.
    pub(crate) is_closed: bool,
}

impl State {
    /// Gives the chosen buffered writes their places in new segments.
    pub(crate) fn seal(
        &mut self,
        epoch: u32,
        limits: &Limits,
        is_chosen: impl Fn(u64) -> bool,
    ) -> Result<(), ObjectVolumeError> {
        let mut buffered: Vec<(u64, &mut Write)> = Vec::new();
        for (ino, file) in &mut self.files {
            let writes = file.writes.iter_mut().filter(|write| matches!(write.source, Unnamed::Buffered(_)));
            let writes = writes.filter(|write| is_chosen(write.number));
            buffered.extend(writes.map(|write| (*ino, write)));
        }
        buffered.sort_by_key(|(_, write)| write.number);
        let mut open: Option<(SegmentId, SegmentWriter, u64)> = None;
        for (ino, write) in buffered {
            let Unnamed::Buffered(bytes) = &write.source else { continue };
            let length = bytes.len() as u64;
            if let Some((segment, writer, _)) = open.take_if(|(_, _, used)| *used + length > limits.segment_bytes) {
                self.uploads.insert(segment, Upload::new(segment, writer.finish()));
            }
            if open.is_none() {
                let segment = SegmentId::new(epoch, self.next_segment)?;
                self.next_segment += 1;
                open = Some((segment, SegmentWriter::new(segment), 0));
            }
            let Some((segment, writer, used)) = &mut open else { continue };
            let offset = writer.push(ino, write.start, bytes)?;
            *used += length;
            let place = Place { segment: *segment, offset, skipped: 0, run: length as u32 };
            write.source = Unnamed::Segment(place, Some(bytes.clone()));
        }
        if let Some((segment, writer, _)) = open {
            self.uploads.insert(segment, Upload::new(segment, writer.finish()));
        }
        Ok(())
    }

    /// The segments on their way with bytes of these writes.
    pub(crate) fn segments_of(&self, numbers: &BTreeSet<u64>) -> BTreeSet<SegmentId> {
        let writes = self.files.values().flat_map(|file| &file.writes);
        let chosen = writes.filter(|write| numbers.contains(&write.number));
        chosen.filter_map(Write::segment_on_its_way).collect()
    }

    /// Notes that the PUT of a segment was answered.
    pub(crate) fn uploaded(&mut self, segment: SegmentId) {
        if self.uploads.remove(&segment).is_none() {
            return;
        }
        self.unannounced.push(segment);
        for write in self.files.values_mut().flat_map(|file| &mut file.writes) {
            match &mut write.source {
                Unnamed::Segment(place, bytes) if place.segment == segment => *bytes = None,
                _ => (),
            }
        }
    }

    /// Moves the writes of a file up to `cut` into its named map. Returns the changes of records, and the segments that
    /// they name for the first time.
    pub(crate) fn name(&mut self, ino: u64, cut: u64) -> (MapChanges, BTreeSet<SegmentId>) {
        let (mut changes, mut segments) = (MapChanges::default(), BTreeSet::new());
        for segment in self.unannounced.drain(..) {
            changes.announce(segment);
        }
        let file = self.files.entry(ino).or_default();
        while let Some(write) = file.writes.pop_front_if(|write| write.number <= cut) {
            let extent = match &write.source {
                Unnamed::Segment(place, _) => {
                    segments.insert(place.segment);
                    Some(Extent { start: write.start, end: write.end, source: Source::Segment(*place) })
                }
                Unnamed::Hole | Unnamed::Buffered(_) => write.extent(),
            };
            let named = file.named.get_or_insert_default();
            named.replace(ino, (write.start, write.end), extent, &mut changes);
        }
        (changes, segments)
    }

    /// The segments that a live extent may need although no durable record names them: an extent in memory waits for its
    /// name, or the batch with the name is not durable.
    pub(crate) fn waiting(&self, durable: Sequence) -> BTreeSet<SegmentId> {
        let mut waiting: BTreeSet<SegmentId> = self.uploads.keys().copied().collect();
        let naming = self.naming.iter().filter(|(sequence, _)| *sequence > durable);
        waiting.extend(naming.flat_map(|(_, segments)| segments));
        for write in self.files.values().flat_map(|file| &file.writes) {
            if let Unnamed::Segment(place, _) = &write.source {
                waiting.insert(place.segment);
            }
        }
        waiting
    }
}
