//! The record of an extent, and the identity of the segment that it lies in.
//!
//! Owns: its key and value, cuts of it; the name of a segment's object, in both directions.
//! Does not own: the map of a file (`extents`), who may make a segment.
//! Invariants: a cut changes neither the segment nor the run, so checksums of lines stay checkable. An extent lies
//! within its run. The record of an extent in a compressed run has the lengths of the lines that the extent touches.
//! Two identities of segments have two names; a name that is read is the one that would be written.

use std::sync::Arc;

use bytes::Bytes;

use crate::format::compression::{Codec, StoredLines};
use crate::format::line::LINE_BYTES;
use crate::format::{FieldBytes, FormatError, at_least, exactly, in_range};

const IN_SEGMENT: u8 = 1;
const INLINE: u8 = 2;
/// In a run that Zstandard compressed; the next kind is that of LZ4.
const COMPRESSED: u8 = 3;
const KIND_MAX: u8 = COMPRESSED + 1;
const IN_SEGMENT_BYTES: usize = 33;
const INLINE_HEAD_BYTES: usize = 9;
const KEY_BYTES: usize = 17;

/// A part of a run in a segment.
#[derive(Clone, Debug)]
pub(crate) struct SegmentRange {
    pub(crate) segment: SegmentId,
    /// The offset of the run's first line.
    pub(crate) offset: u32,
    /// Bytes of the run before the extent.
    pub(crate) skipped: u32,
    /// Bytes of the whole run. The length of its last line follows from it.
    pub(crate) run: u32,
    /// The lines of a compressed run: at least those that the extent touches.
    pub(crate) stored: Option<Arc<StoredLines>>,
}

/// A run never changes, so its lines follow from its location. Of these lines one may know more than the other.
impl PartialEq for SegmentRange {
    fn eq(&self, other: &Self) -> bool {
        let fields = |place: &Self| (place.segment, place.offset, place.skipped, place.run, place.stored.is_some());
        fields(self) == fields(other)
    }
}

impl Eq for SegmentRange {}

impl SegmentRange {
    /// A run that will lie somewhere in a segment.
    pub(crate) fn unplaced(segment: SegmentId, run: usize) -> Self {
        // A segment's runs are at most 8 MiB.
        Self { segment, offset: 0, skipped: 0, run: run as u32, stored: None }
    }

    /// The numbers of the first line with bytes `skipped..skipped + bytes` of the run, and of the one behind the last.
    pub(crate) fn touched_lines(&self, bytes: u32) -> (u32, u32) {
        (self.skipped / LINE_BYTES, (self.skipped + bytes).div_ceil(LINE_BYTES))
    }
}

/// The bytes of an extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExtentSource {
    Segment(SegmentRange),
    Inline(Bytes),
}

/// Bytes of a file that are stored together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredExtent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) source: ExtentSource,
}

impl StoredExtent {
    /// The part between `start` and `end`, which lie in the extent.
    pub(crate) fn part(&self, start: u64, end: u64) -> Self {
        debug_assert!(self.start <= start && start < end && end <= self.end);
        // An extent is no longer than a run.
        let skip = (start - self.start) as u32;
        let source = match &self.source {
            ExtentSource::Segment(place) => {
                ExtentSource::Segment(SegmentRange { skipped: place.skipped + skip, ..place.clone() })
            }
            ExtentSource::Inline(bytes) => {
                ExtentSource::Inline(bytes.slice(skip as usize..(end - self.start) as usize))
            }
        };
        Self { start, end, source }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// The segment that has its bytes.
    pub(crate) fn segment(&self) -> Option<SegmentId> {
        match &self.source {
            ExtentSource::Segment(place) => Some(place.segment),
            ExtentSource::Inline(_) => None,
        }
    }

    pub(crate) fn key(ino: u64, end: u64) -> Vec<u8> {
        let mut key = vec![b'x'];
        key.extend_from_slice(&ino.to_be_bytes());
        key.extend_from_slice(&end.to_be_bytes());
        key
    }

    /// All keys of a file.
    pub(crate) fn keys(ino: u64) -> (Vec<u8>, Vec<u8>) {
        let mut after = Self::key(ino, u64::MAX);
        after.push(0);
        (Self::key(ino, 0), after)
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(IN_SEGMENT_BYTES);
        value.push(match &self.source {
            ExtentSource::Segment(SegmentRange { stored: Some(stored), .. }) => COMPRESSED - 1 + stored.codec.code(),
            ExtentSource::Segment(_) => IN_SEGMENT,
            ExtentSource::Inline(_) => INLINE,
        });
        value.extend_from_slice(&self.start.to_be_bytes());
        match &self.source {
            ExtentSource::Segment(place) => {
                value.extend_from_slice(&place.segment.epoch.to_be_bytes());
                value.extend_from_slice(&place.segment.number.to_be_bytes());
                value.extend_from_slice(&place.offset.to_be_bytes());
                value.extend_from_slice(&place.skipped.to_be_bytes());
                value.extend_from_slice(&place.run.to_be_bytes());
                if let Some(stored) = &place.stored {
                    let (first, end) = place.touched_lines(self.bytes() as u32);
                    stored.encode(first, end, &mut value);
                }
            }
            ExtentSource::Inline(bytes) => value.extend_from_slice(bytes),
        }
        value
    }

    /// The file and the extent of a record.
    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<(u64, Self), FormatError> {
        exactly("the key of an extent", key, KEY_BYTES)?;
        let mut fields = FieldBytes(&key[1..]);
        let (ino, end) = (fields.u64(), fields.u64());
        in_range("the end of an extent", end, 1, i64::MAX as u64)?;
        if value.len() < INLINE_HEAD_BYTES {
            let most = INLINE_HEAD_BYTES + SEGMENT_BYTES_MAX as usize;
            return Err(FormatError::Length { field: "an extent", found: value.len(), least: INLINE_HEAD_BYTES, most });
        }
        let mut fields = FieldBytes(value);
        let (kind, start) = (fields.u8(), fields.u64());
        in_range("the kind of an extent", u64::from(kind), u64::from(IN_SEGMENT), u64::from(KIND_MAX))?;
        in_range("the start of an extent", start, end.saturating_sub(u64::from(SEGMENT_BYTES_MAX)), end - 1)?;
        if kind == INLINE {
            exactly("inline bytes", fields.rest(), (end - start) as usize)?;
            let source = ExtentSource::Inline(Bytes::copy_from_slice(fields.rest()));
            return Ok((ino, Self { start, end, source }));
        }
        at_least("an extent in a segment", value.len(), IN_SEGMENT_BYTES)?;
        let segment = SegmentId::new(fields.u32(), fields.u64())?;
        let (offset, skipped, run) = (fields.u32(), fields.u32(), fields.u32());
        in_range("the length of a run", u64::from(run), 1, u64::from(SEGMENT_BYTES_MAX))?;
        in_range("the skipped bytes of a run", u64::from(skipped), 0, u64::from(run) - 1)?;
        in_range("the end of an extent in its run", u64::from(skipped) + end - start, 1, u64::from(run))?;
        let mut place = SegmentRange { segment, offset, skipped, run, stored: None };
        if kind == IN_SEGMENT {
            exactly("an extent in a segment", value, IN_SEGMENT_BYTES)?;
        } else {
            let (first, end) = place.touched_lines((end - start) as u32);
            exactly("the lengths of lines", fields.rest(), StoredLines::encoded_bytes(first, end))?;
            let codec = Codec::of(kind + 1 - COMPRESSED)?;
            place.stored = Some(Arc::new(StoredLines::decode(codec, run, (first, end), &mut fields)?));
        }
        Ok((ino, Self { start, end, source: ExtentSource::Segment(place) }))
    }
}

/// The largest epoch: it has 24 bits.
pub const EPOCH_MAX: u32 = (1 << 24) - 1;
/// Most bytes of all runs of a segment.
pub const SEGMENT_BYTES_MAX: u32 = 8 << 20;
/// Most segments of an epoch: a number has 40 bits.
pub const SEGMENT_NUMBER_MAX: u64 = (1 << 40) - 1;

/// A segment: the epoch of its writer, and its number in that epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId {
    /// The epoch of the only writer that makes this segment.
    pub epoch: u32,
    /// Counts the segments of an epoch.
    pub number: u64,
}

impl SegmentId {
    /// All segments have names that begin so.
    pub const FOLDER: &'static str = "data/";

    /// A segment within the limits of the format.
    ///
    /// # Errors
    /// If the epoch or the number is out of range.
    pub fn new(epoch: u32, number: u64) -> Result<Self, FormatError> {
        in_range("the epoch of a segment", u64::from(epoch), 1, u64::from(EPOCH_MAX))?;
        in_range("the number of a segment", number, 0, SEGMENT_NUMBER_MAX)?;
        Ok(Self { epoch, number })
    }

    /// The name of its object. The number's last byte comes first, so that names spread over prefixes.
    pub fn name(self) -> String {
        format!("{}{:02x}/{:06x}-{:010x}", Self::FOLDER, self.number % 256, self.epoch, self.number)
    }

    /// The segment of an object's name.
    ///
    /// # Errors
    /// If no segment has this name.
    pub fn parse(name: &str) -> Result<Self, FormatError> {
        let digits = || {
            let (_, last) = name.rsplit_once('/')?;
            let (epoch, number) = last.split_once('-')?;
            Some((u32::from_str_radix(epoch, 16).ok()?, u64::from_str_radix(number, 16).ok()?))
        };
        let refused = || FormatError::Name { name: name.to_owned() };
        let (epoch, number) = digits().ok_or_else(refused)?;
        let id = Self::new(epoch, number)?;
        if id.name() == name { Ok(id) } else { Err(refused()) }
    }
}
