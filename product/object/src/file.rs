//! A file in memory: its map, its body, and the writes that no batch names yet.
//!
//! Owns: the effect of a write on the size, the parts of a write that one batch names.
//! Does not own: segments, records.
//! Invariants: the writes are in the order of their calls. The map and the body are the state after all batches given
//! to the records. A body in memory is never older than the map.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;

use crate::extents::{ExtentMap, MapChanges};
use crate::format::extent::{ExtentSource, SegmentId, SegmentRange, StoredExtent};
use crate::format::records::Body;
use crate::seams::Sequence;

/// The body of a file as far as memory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyInMemory {
    /// This is the newest.
    Newest(Body),
    /// The newest is the one in the record, or empty without a record.
    AsStored,
    /// The record must be read first: writes change the body in it.
    Unread,
}

/// The end of all files, and of a cut.
pub(crate) const END: u64 = i64::MAX as u64;

/// The content of a write that no batch names yet.
#[derive(Clone, Debug)]
pub(crate) enum UnnamedContent {
    Hole,
    /// Everything behind a new size goes.
    Cut(Cut),
    Buffered(Bytes),
    /// In a segment; with its bytes until the PUT is answered.
    Segment(SegmentRange, Option<Bytes>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) size: u64,
    /// A batch with its record `t` was given to the records.
    pub(crate) is_begun: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ObjectWrite {
    pub(crate) id: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The time of day of the call.
    pub(crate) at_ns: u64,
    pub(crate) content: UnnamedContent,
}

impl ObjectWrite {
    /// The extent of the write, as reads see it.
    pub(crate) fn readable(&self) -> Option<StoredExtent> {
        let bytes = match &self.content {
            UnnamedContent::Buffered(bytes) | UnnamedContent::Segment(_, Some(bytes)) => bytes,
            _ => return self.nameable(),
        };
        Some(StoredExtent { start: self.start, end: self.end, source: ExtentSource::Inline(bytes.clone()) })
    }

    /// The extent of the write, as records name it.
    fn nameable(&self) -> Option<StoredExtent> {
        let source = match &self.content {
            UnnamedContent::Hole | UnnamedContent::Cut(_) => return None,
            UnnamedContent::Buffered(bytes) => ExtentSource::Inline(bytes.clone()),
            UnnamedContent::Segment(place, _) => ExtentSource::Segment(place.clone()),
        };
        Some(StoredExtent { start: self.start, end: self.end, source })
    }

    pub(crate) fn data_bytes(&self) -> u64 {
        match self.content {
            UnnamedContent::Hole | UnnamedContent::Cut(_) => 0,
            UnnamedContent::Buffered(_) | UnnamedContent::Segment(..) => self.end - self.start,
        }
    }

    /// Drops the part before `to`.
    fn advance(&mut self, to: u64) {
        let skip = to - self.start;
        match &mut self.content {
            UnnamedContent::Hole | UnnamedContent::Cut(_) => (),
            UnnamedContent::Buffered(bytes) | UnnamedContent::Segment(_, Some(bytes)) => {
                *bytes = bytes.slice(skip as usize..)
            }
            UnnamedContent::Segment(_, None) => (),
        }
        if let UnnamedContent::Segment(place, _) = &mut self.content {
            place.skipped += skip as u32;
        }
        self.start = to;
    }
}

/// The effect of the unnamed writes on the body.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    /// The size that the last cut sets.
    cut: Option<u64>,
    /// The end of the data since then.
    end: u64,
    changed_ns: u64,
    data_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct ObjectFile {
    pub(crate) map: ExtentMap,
    /// Absent until its record was read.
    pub(crate) body: Option<Body>,
    pub(crate) writes: VecDeque<ObjectWrite>,
    ahead: Ahead,
    /// The newest batch with records of the file.
    pub(crate) last_batch: Sequence,
    /// The bytes of writes that batches name since all of them were durable.
    given_bytes: u64,
    /// All of it goes, with its inode.
    pub(crate) is_reaped: bool,
    /// Counts uses of all files.
    pub(crate) used_at: u64,
}

impl ObjectFile {
    /// The bytes of writes that are not durable, as far as batches before `durable` are.
    pub(crate) fn volatile_bytes(&self, durable: Sequence) -> u64 {
        let unnamed: u64 = self.writes.iter().map(ObjectWrite::data_bytes).sum();
        unnamed + if self.last_batch > durable { self.given_bytes } else { 0 }
    }

    /// The bytes of ended writes among them. `is_ended` reports this for a write that is in no segment.
    pub(crate) fn unsynced_bytes(&self, durable: Sequence, is_ended: impl Fn(u64) -> bool) -> u64 {
        let ended = self.writes.iter().filter(|write| match &write.content {
            UnnamedContent::Segment(_, on_way) => on_way.is_none(),
            UnnamedContent::Buffered(_) => is_ended(write.id),
            UnnamedContent::Hole | UnnamedContent::Cut(_) => false,
        });
        let unnamed: u64 = ended.map(ObjectWrite::data_bytes).sum();
        unnamed + if self.last_batch > durable { self.given_bytes } else { 0 }
    }

    /// A batch with records of the file was given to the records. It names so many bytes of writes.
    pub(crate) fn gave(&mut self, batch: Sequence, bytes: u64, durable: Sequence) {
        let earlier = if self.last_batch > durable { self.given_bytes } else { 0 };
        (self.last_batch, self.given_bytes) = (batch, earlier + bytes);
    }

    pub(crate) fn push(&mut self, write: ObjectWrite) {
        self.ahead.data_bytes += write.data_bytes();
        self.ahead.changed_ns = write.at_ns;
        match &write.content {
            UnnamedContent::Cut(cut) => (self.ahead.cut, self.ahead.end) = (Some(cut.size), 0),
            UnnamedContent::Hole => (),
            UnnamedContent::Buffered(_) | UnnamedContent::Segment(..) => self.ahead.end = self.ahead.end.max(write.end),
        }
        self.writes.push_back(write);
    }

    /// The body with all writes. Its used bytes may be too many until a COMMIT.
    pub(crate) fn newest_body(&self) -> Option<Body> {
        let (named, ahead) = (self.body?, &self.ahead);
        if self.writes.is_empty() {
            return Some(named);
        }
        let size = ahead.cut.unwrap_or(named.size).max(ahead.end);
        let used = named.used.saturating_add(ahead.data_bytes).min(size);
        Some(Body { size, used, changed_ns: ahead.changed_ns })
    }

    pub(crate) fn write_mut(&mut self, write_id: u64) -> Option<&mut ObjectWrite> {
        let at = self.writes.binary_search_by_key(&write_id, |write| write.id).ok()?;
        self.writes.get_mut(at)
    }

    pub(crate) fn drop_writes(&mut self) -> VecDeque<ObjectWrite> {
        self.ahead = Ahead::default();
        std::mem::take(&mut self.writes)
    }

    /// The memory that the file takes, in extents.
    pub(crate) fn extents(&self) -> usize {
        1 + self.map.len()
    }

    /// The file may leave the memory.
    pub(crate) fn is_idle(&self, durable: Sequence) -> bool {
        self.writes.is_empty() && self.last_batch <= durable && self.map.inline().next().is_none()
    }

    /// The bytes up to a write that are in no segment, and the segments in flight with writes up to it.
    pub(crate) fn unsent(&self, cut: u64) -> (u64, BTreeSet<SegmentId>) {
        let (mut buffered, mut on_way) = (0, BTreeSet::new());
        for write in self.upto(cut) {
            match &write.content {
                UnnamedContent::Buffered(bytes) => buffered += bytes.len() as u64,
                UnnamedContent::Segment(place, Some(_)) => _ = on_way.insert(place.segment),
                _ => (),
            }
        }
        (buffered, on_way)
    }

    /// The writes up to an id.
    pub(crate) fn upto(&self, cut: u64) -> impl Iterator<Item = &ObjectWrite> {
        self.writes.iter().take_while(move |write| write.id <= cut)
    }

    /// Moves the first write, or its part up to `to`, into the map and the body.
    pub(crate) fn name(&mut self, ino: u64, to: u64, changes: &mut MapChanges) {
        let (Some(write), Some(body)) = (self.writes.front_mut(), &mut self.body) else { return };
        let extent = (to > write.start).then(|| write.nameable()).flatten().map(|extent| extent.part(write.start, to));
        self.map.replace(ino, (write.start, to), extent, changes);
        if !matches!(write.content, UnnamedContent::Cut(Cut { is_begun: true, .. })) {
            body.changed_ns = write.at_ns;
        }
        match &mut write.content {
            UnnamedContent::Cut(cut) => (body.size, cut.is_begun) = (cut.size, true),
            UnnamedContent::Hole => (),
            UnnamedContent::Buffered(_) | UnnamedContent::Segment(..) => {
                body.size = body.size.max(to);
                self.ahead.data_bytes -= to - write.start;
            }
        }
        body.used = body.used.saturating_add_signed(std::mem::take(&mut changes.used));
        if to < write.end {
            write.advance(to);
        } else {
            self.writes.pop_front();
        }
        if self.writes.is_empty() {
            self.ahead = Ahead::default();
        }
    }
}
