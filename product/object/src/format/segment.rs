//! The bytes of a segment: lines, directory, footer.
//!
//! A run is the bytes of one extent as they were written. It is stored as lines of 65,536 bytes, the last one shorter.
//! The checksum of a line covers its location, so a line of another location does not pass.
//!
//! Owns: the encoding of runs, the check of lines that were fetched, the directory; reading the pieces in which an
//! object's bytes came, one after another.
//! Does not own: the extents that still use a run (`extent`).
//! Invariants: a segment holds at most [`SEGMENT_BYTES_MAX`] bytes of runs. Each byte of the object is under a
//! checksum. No byte of a piece is copied.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::format::extent::{SEGMENT_BYTES_MAX, SegmentId, SegmentRange};
use crate::format::{FieldBytes, FormatError, at_least, exactly, in_range};
use crate::seams::ByteParts;

/// Bytes of a whole line, without its checksum.
pub const LINE_BYTES: u32 = 65_536;
/// Bytes of the footer.
pub const FOOTER_BYTES: usize = 64;
/// Bytes of an entry of the directory.
pub const DIRECTORY_ENTRY_BYTES: usize = 24;

/// No segment's object is longer.
pub(crate) const OBJECT_BYTES_MAX: u64 = 1 << 32;

const CHECKSUM_BYTES: u32 = 4;
const MAGIC: [u8; 8] = *b"AFXSEG01";
/// Zeros in the footer, for later versions.
const RESERVED_BYTES: usize = 32;

/// One run, as the directory lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEntry {
    /// The file that the run was written for.
    pub ino: u64,
    /// The offset in the file.
    pub start: u64,
    /// Bytes of the run.
    pub bytes: u32,
    /// The offset of the run's first line in the segment.
    pub offset: u32,
}

/// Makes the bytes of a segment. It leaves long runs as they are, and copies short ones side by side.
#[derive(Debug)]
pub struct SegmentWriter {
    id: SegmentId,
    parts: Vec<Bytes>,
    /// The bytes behind the last part.
    open: BytesMut,
    length: usize,
    entries: Vec<RunEntry>,
    run_bytes: u64,
}

impl SegmentWriter {
    /// A segment without runs.
    pub fn new(id: SegmentId) -> Self {
        Self { id, parts: Vec::new(), open: BytesMut::new(), length: 0, entries: Vec::new(), run_bytes: 0 }
    }

    /// Appends a run. Returns the offset of its first line.
    ///
    /// # Errors
    /// If the run is empty, or the segment would be too long.
    pub fn push(&mut self, ino: u64, start: u64, mut run: Bytes) -> Result<u32, FormatError> {
        let bytes = run.len() as u64;
        let room = u64::from(SEGMENT_BYTES_MAX) - self.run_bytes;
        in_range("the length of a run", bytes, 1, room)?;
        self.run_bytes += bytes;
        // All runs of a segment hold 8 MiB, and each byte adds at most one checksum.
        let offset = self.length as u32;
        self.entries.push(RunEntry { ino, start, bytes: bytes as u32, offset });
        while !run.is_empty() {
            let line = run.split_to(run.len().min(LINE_BYTES as usize));
            let checksum = crc32c::crc32c_append(line_checksum(self.id, self.length as u32), &line);
            self.append(line);
            self.copy(&checksum.to_be_bytes());
        }
        Ok(offset)
    }

    /// The object's bytes.
    pub fn finish(mut self) -> ByteParts {
        let mut tail = BytesMut::with_capacity(self.entries.len() * DIRECTORY_ENTRY_BYTES + FOOTER_BYTES);
        for entry in &self.entries {
            tail.extend_from_slice(&entry.ino.to_be_bytes());
            tail.extend_from_slice(&entry.start.to_be_bytes());
            tail.extend_from_slice(&entry.bytes.to_be_bytes());
            tail.extend_from_slice(&entry.offset.to_be_bytes());
        }
        tail.extend_from_slice(&MAGIC);
        tail.extend_from_slice(&self.id.epoch.to_be_bytes());
        tail.extend_from_slice(&self.id.number.to_be_bytes());
        tail.extend_from_slice(&(self.length as u32).to_be_bytes());
        tail.extend_from_slice(&(self.entries.len() as u32).to_be_bytes());
        tail.extend_from_slice(&[0; RESERVED_BYTES]);
        let checksum = crc32c::crc32c(&tail);
        tail.extend_from_slice(&checksum.to_be_bytes());
        self.copy(&tail);
        self.parts.push(self.open.freeze());
        ByteParts(self.parts)
    }

    /// Appends a line: a whole one as a part of its own, which needs no copy.
    fn append(&mut self, line: Bytes) {
        if line.len() < LINE_BYTES as usize {
            return self.copy(&line);
        }
        self.length += line.len();
        let between = self.open.split().freeze();
        self.parts.extend([between, line].into_iter().filter(|part| !part.is_empty()));
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        self.open.extend_from_slice(bytes);
    }
}

/// The beginning of a line's checksum.
fn line_checksum(id: SegmentId, offset: u32) -> u32 {
    let place = crc32c::crc32c(&id.epoch.to_be_bytes());
    let place = crc32c::crc32c_append(place, &id.number.to_be_bytes());
    crc32c::crc32c_append(place, &offset.to_be_bytes())
}

/// The runs of a segment, from the whole object.
///
/// # Errors
/// If the object is not this segment, or its directory or footer is damaged.
pub fn directory(id: SegmentId, object: &[u8]) -> Result<Vec<RunEntry>, FormatError> {
    let most = usize::MAX;
    let short = || FormatError::Length { field: "a segment", found: object.len(), least: FOOTER_BYTES, most };
    let footer = object.len().checked_sub(FOOTER_BYTES).ok_or_else(short)?;
    let mut fields = FieldBytes(&object[footer..]);
    let found = fields.take::<8>();
    if found != MAGIC {
        return Err(FormatError::Magic { field: "the footer of a segment", found, expected: MAGIC });
    }
    let (epoch, number, start, entries) = (fields.u32(), fields.u64(), fields.u32(), fields.u32());
    in_range("the epoch in a footer", u64::from(epoch), u64::from(id.epoch), u64::from(id.epoch))?;
    in_range("the number in a footer", number, id.number, id.number)?;
    in_range("the place of a directory", u64::from(start), 0, footer as u64)?;
    let start = start as usize;
    let expected = ((footer - start) / DIRECTORY_ENTRY_BYTES) as u64;
    in_range("the entries of a directory", u64::from(entries), expected, expected)?;
    exactly("a directory", &object[start..footer], entries as usize * DIRECTORY_ENTRY_BYTES)?;
    let checked = object.len() - CHECKSUM_BYTES as usize;
    let stored = FieldBytes(&object[checked..]).u32();
    let computed = crc32c::crc32c(&object[start..checked]);
    if stored != computed {
        return Err(FormatError::Checksum { field: "the directory", offset: start as u64, stored, computed });
    }
    object[start..footer].chunks_exact(DIRECTORY_ENTRY_BYTES).map(|entry| decode_entry(entry, start)).collect()
}

fn decode_entry(entry: &[u8], directory: usize) -> Result<RunEntry, FormatError> {
    let mut fields = FieldBytes(entry);
    let entry = RunEntry { ino: fields.u64(), start: fields.u64(), bytes: fields.u32(), offset: fields.u32() };
    in_range("the length of a run", u64::from(entry.bytes), 1, u64::from(SEGMENT_BYTES_MAX))?;
    let end = u64::from(entry.offset) + stored_bytes(entry.bytes);
    in_range("the end of a run", end, 1, directory as u64)?;
    Ok(entry)
}

/// Bytes of a run with its checksums.
pub(crate) fn stored_bytes(run: u32) -> u64 {
    u64::from(run) + u64::from(run.div_ceil(LINE_BYTES)) * u64::from(CHECKSUM_BYTES)
}

/// The part of the object that holds all lines with bytes `skipped..skipped + bytes` of a run.
pub(crate) fn lines(place: &SegmentRange, bytes: u32) -> Range<u64> {
    let whole = u64::from(LINE_BYTES + CHECKSUM_BYTES);
    let first = u64::from(place.skipped / LINE_BYTES);
    let end = u64::from((place.skipped + bytes).div_ceil(LINE_BYTES)) * whole;
    let offset = u64::from(place.offset);
    offset + first * whole..offset + end.min(stored_bytes(place.run))
}

/// Checks the lines that were fetched from `lines(place, bytes)`, and returns the extent's bytes.
pub(crate) fn check_lines(place: &SegmentRange, bytes: u32, fetched: &Bytes) -> Result<Vec<u8>, FormatError> {
    let mut payload = Vec::with_capacity(bytes as usize);
    copy_lines(place, bytes, Pieces::behind(std::slice::from_ref(fetched), 0), |_, bytes| {
        payload.extend_from_slice(bytes);
    })?;
    Ok(payload)
}

/// Checks the lines at the front of the fetched bytes. Calls `copy` with the extent's bytes and their offset in the
/// extent, line by line and each after its check.
pub(crate) fn copy_lines(
    place: &SegmentRange,
    bytes: u32,
    mut fetched: Pieces<'_>,
    mut copy: impl FnMut(usize, &[u8]),
) -> Result<(), FormatError> {
    let span = lines(place, bytes);
    let (length, whole) = ((span.end - span.start) as usize, (LINE_BYTES + CHECKSUM_BYTES) as usize);
    at_least("the lines of a run", fetched.remaining(), length)?;
    // The extent's part of the lines.
    let from = (place.skipped % LINE_BYTES) as usize;
    let wanted = from..from + bytes as usize;
    let mut at = 0;
    for start in (0..length).step_by(whole) {
        let line_bytes = whole.min(length - start) - CHECKSUM_BYTES as usize;
        let mut line = fetched.clone();
        check_line(place.segment, span.start + start as u64, line_bytes, &mut fetched)?;
        line.take(line_bytes, |piece| {
            let part = wanted.start.max(at)..wanted.end.min(at + piece.len());
            if !part.is_empty() {
                copy(part.start - wanted.start, &piece[part.start - at..part.end - at]);
            }
            at += piece.len();
        });
    }
    Ok(())
}

/// Compares the next line with the checksum behind it.
fn check_line(id: SegmentId, offset: u64, bytes: usize, fetched: &mut Pieces<'_>) -> Result<(), FormatError> {
    let mut computed = line_checksum(id, offset as u32);
    fetched.take(bytes, |piece| computed = crc32c::crc32c_append(computed, piece));
    let (mut stored, mut at) = ([0; CHECKSUM_BYTES as usize], 0);
    fetched.take(stored.len(), |piece| {
        stored[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    });
    let stored = u32::from_be_bytes(stored);
    if stored == computed { Ok(()) } else { Err(FormatError::Checksum { field: "a line", offset, stored, computed }) }
}

/// A position in the bytes. It moves to the end as they are taken.
#[derive(Clone, Debug)]
pub(crate) struct Pieces<'a> {
    pieces: &'a [Bytes],
    /// Bytes of the first piece that were taken.
    taken: usize,
}

impl<'a> Pieces<'a> {
    /// The bytes behind the first `skipped` ones.
    pub(crate) fn behind(mut pieces: &'a [Bytes], mut skipped: usize) -> Self {
        while let Some((first, rest)) = pieces.split_first().filter(|(first, _)| first.len() <= skipped) {
            skipped -= first.len();
            pieces = rest;
        }
        Self { pieces, taken: skipped }
    }

    /// How many bytes remain.
    pub(crate) fn remaining(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum::<usize>().saturating_sub(self.taken)
    }

    /// Calls `each` with the next `count` bytes, piece by piece; with fewer if fewer remain.
    pub(crate) fn take(&mut self, mut count: usize, mut each: impl FnMut(&'a [u8])) {
        while count > 0
            && let Some((first, rest)) = self.pieces.split_first()
        {
            let remaining = first.get(self.taken..).unwrap_or_default();
            let here = remaining.len().min(count);
            if here > 0 {
                each(&remaining[..here]);
            }
            count -= here;
            if here == remaining.len() {
                (self.pieces, self.taken) = (rest, 0);
            } else {
                self.taken += here;
            }
        }
    }
}
