//! The bytes of a segment: lines, directory, footer.
//!
//! A run is the bytes of one extent as they were written. It is cut into lines of 65,536 bytes, the last one shorter.
//! A stored line is these bytes, or their compressed form, and a checksum. The checksum covers the stored bytes and the
//! line's location, so a line of another location does not pass, and no damaged byte is decompressed. The first format
//! of a segment has raw runs only. A segment with a compressed run has the second one: behind the entries of its
//! directory follow the codec of each run and the lengths of its lines.
//!
//! Owns: the encoding of runs, the check of lines that were fetched, the directory; reading the pieces in which an
//! object's bytes came, one after another.
//! Does not own: the extents that still use a run (`extent`), the choice and the form of compressed lines
//! (`compression`).
//! Invariants: a segment holds at most [`SEGMENT_BYTES_MAX`] bytes of runs. Each byte of the object is under a
//! checksum. No byte of a raw line is copied, unless the line is short.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::format::compression::{Codec, CompressedRun, Decoder, StoredLines};
use crate::format::extent::{SEGMENT_BYTES_MAX, SegmentId, SegmentRange};
use crate::format::line::{CHECKSUM_BYTES, LINE_BYTES, StoredLine, line_bytes};
use crate::format::{FieldBytes, FormatError, at_least, exactly, in_range};
use crate::seams::ByteParts;

/// Bytes of the footer.
pub const FOOTER_BYTES: usize = 64;
/// Bytes of an entry of the directory.
pub const DIRECTORY_ENTRY_BYTES: usize = 24;

/// No segment's object is longer.
pub(crate) const OBJECT_BYTES_MAX: u64 = 1 << 32;

const MAGIC: [u8; 8] = *b"AFXSEG01";
/// Some of its runs are compressed.
const MAGIC_COMPRESSED: [u8; 8] = *b"AFXSEG02";
/// The codec of a raw run.
const RAW: u8 = 0;
/// Zeros in the footer, for later versions.
const RESERVED_BYTES: usize = 32;

/// One run, as the directory lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEntry {
    /// The file that the run was written for.
    pub ino: u64,
    /// The offset in the file.
    pub start: u64,
    /// Bytes of the run.
    pub bytes: u32,
    /// The offset of the run's first line in the segment.
    pub offset: u32,
    /// All its lines, if the run is compressed.
    pub(crate) stored: Option<Arc<StoredLines>>,
}

impl RunEntry {
    /// The whole run.
    pub(crate) fn place(&self, segment: SegmentId) -> SegmentRange {
        SegmentRange { segment, offset: self.offset, skipped: 0, run: self.bytes, stored: self.stored.clone() }
    }
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
        let offset = self.begin_run(ino, start, run.len(), None)?;
        while !run.is_empty() {
            self.push_line(run.split_to(run.len().min(LINE_BYTES as usize)));
        }
        Ok(offset)
    }

    /// As [`Self::push`]: a run of so many bytes in its compressed form.
    pub(crate) fn push_compressed(
        &mut self,
        ino: u64,
        start: u64,
        bytes: usize,
        run: CompressedRun,
    ) -> Result<u32, FormatError> {
        let offset = self.begin_run(ino, start, bytes, Some(run.stored))?;
        run.lines.into_iter().for_each(|line| self.push_line(line));
        Ok(offset)
    }

    fn begin_run(
        &mut self,
        ino: u64,
        start: u64,
        bytes: usize,
        stored: Option<Arc<StoredLines>>,
    ) -> Result<u32, FormatError> {
        let room = u64::from(SEGMENT_BYTES_MAX) - self.run_bytes;
        self.run_bytes += in_range("the length of a run", bytes as u64, 1, room)?;
        // All runs of a segment hold 8 MiB, and each byte adds at most one checksum.
        let offset = self.length as u32;
        self.entries.push(RunEntry { ino, start, bytes: bytes as u32, offset, stored });
        Ok(offset)
    }

    fn push_line(&mut self, line: Bytes) {
        let checksum = crc32c::crc32c_append(line_checksum(self.id, self.length as u32), &line);
        self.append(line);
        self.copy(&checksum.to_be_bytes());
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
        let is_compressed = self.entries.iter().any(|entry| entry.stored.is_some());
        if is_compressed {
            self.entries.iter().for_each(|entry| encode_lines(entry, &mut tail));
        }
        tail.extend_from_slice(if is_compressed { &MAGIC_COMPRESSED } else { &MAGIC });
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

/// The codec of a run and the lengths of its lines.
fn encode_lines(entry: &RunEntry, tail: &mut BytesMut) {
    let Some(stored) = &entry.stored else { return tail.extend_from_slice(&[RAW]) };
    let mut value = vec![stored.codec.code()];
    stored.encode(0, entry.bytes.div_ceil(LINE_BYTES), &mut value);
    tail.extend_from_slice(&value);
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
    if found != MAGIC && found != MAGIC_COMPRESSED {
        return Err(FormatError::Magic { field: "the footer of a segment", found, expected: MAGIC });
    }
    let (epoch, number, start, entries) = (fields.u32(), fields.u64(), fields.u32(), fields.u32());
    in_range("the epoch in a footer", u64::from(epoch), u64::from(id.epoch), u64::from(id.epoch))?;
    in_range("the number in a footer", number, id.number, id.number)?;
    in_range("the place of a directory", u64::from(start), 0, footer as u64)?;
    let start = start as usize;
    let most = ((footer - start) / DIRECTORY_ENTRY_BYTES) as u64;
    in_range("the entries of a directory", u64::from(entries), 0, most)?;
    let heads = entries as usize * DIRECTORY_ENTRY_BYTES;
    let checked = object.len() - CHECKSUM_BYTES as usize;
    let stored = FieldBytes(&object[checked..]).u32();
    let computed = crc32c::crc32c(&object[start..checked]);
    if stored != computed {
        return Err(FormatError::Checksum { field: "the directory", offset: start as u64, stored, computed });
    }
    let (heads, mut forms) = object[start..footer].split_at(heads);
    let mut form = |bytes| if found == MAGIC { Ok(None) } else { decode_lines(bytes, &mut forms) };
    let entries = heads.chunks_exact(DIRECTORY_ENTRY_BYTES).map(|entry| decode_entry(entry, &mut form, start));
    let entries = entries.collect::<Result<_, _>>()?;
    exactly("the end of a directory", forms, 0)?;
    Ok(entries)
}

fn decode_entry(
    entry: &[u8],
    form: &mut impl FnMut(u32) -> Result<Option<Arc<StoredLines>>, FormatError>,
    directory: usize,
) -> Result<RunEntry, FormatError> {
    let mut fields = FieldBytes(entry);
    let (ino, start, bytes, offset) = (fields.u64(), fields.u64(), fields.u32(), fields.u32());
    in_range("the length of a run", u64::from(bytes), 1, u64::from(SEGMENT_BYTES_MAX))?;
    let stored = form(bytes)?;
    let length = stored.as_ref().map_or_else(|| stored_bytes(bytes), |stored| stored.end());
    in_range("the end of a run", u64::from(offset) + length, 1, directory as u64)?;
    Ok(RunEntry { ino, start, bytes, offset, stored })
}

/// Takes the form of a run of so many bytes from the front.
fn decode_lines(bytes: u32, forms: &mut &[u8]) -> Result<Option<Arc<StoredLines>>, FormatError> {
    at_least("the codec of a run", forms.len(), 1)?;
    let mut fields = FieldBytes(forms);
    let (codec, lines) = (fields.u8(), bytes.div_ceil(LINE_BYTES));
    if codec == RAW {
        *forms = fields.rest();
        return Ok(None);
    }
    at_least("the lengths of lines", fields.rest().len(), StoredLines::encoded_bytes(0, lines))?;
    let stored = StoredLines::decode(Codec::of(codec)?, bytes, (0, lines), &mut fields)?;
    *forms = fields.rest();
    Ok(Some(Arc::new(stored)))
}

/// Bytes of a raw run with its checksums.
pub(crate) fn stored_bytes(run: u32) -> u64 {
    u64::from(run) + u64::from(run.div_ceil(LINE_BYTES)) * u64::from(CHECKSUM_BYTES)
}

/// The lines with bytes `skipped..skipped + bytes` of a run.
pub(crate) fn stored_lines(place: &SegmentRange, bytes: u32) -> impl Iterator<Item = StoredLine> + '_ {
    let (first, end) = place.touched_lines(bytes);
    let raw = move |number: u32| {
        let offset = u64::from(place.offset) + u64::from(number) * u64::from(LINE_BYTES + CHECKSUM_BYTES);
        let length = line_bytes(place.run, number);
        StoredLine { offset, stored: length, length }
    };
    let compressed = place.stored.iter().flat_map(move |stored| stored.from(first, place.run, place.offset));
    let raw = (first..end).filter(|_| place.stored.is_none()).map(raw);
    compressed.take((end - first) as usize).chain(raw)
}

/// The part of the object that holds all these lines.
pub(crate) fn lines(place: &SegmentRange, bytes: u32) -> Range<u64> {
    let mut lines = stored_lines(place, bytes);
    let Some(first) = lines.next() else { return 0..0 };
    first.offset..lines.last().unwrap_or(first).end()
}

/// The part of a whole object in these bounds, or less if the object ends before.
pub(crate) fn part(object: &Bytes, bounds: &Range<u64>) -> Bytes {
    let within = |at: u64| at.min(object.len() as u64) as usize;
    object.slice(within(bounds.start)..within(bounds.end))
}

/// Checks the lines that were fetched from `lines(place, bytes)`, and returns the extent's bytes.
pub(crate) fn check_lines(place: &SegmentRange, bytes: u32, fetched: &Bytes) -> Result<Vec<u8>, FormatError> {
    let mut payload = Vec::with_capacity(bytes as usize);
    let mut reader = LineReader::new(place, bytes, Pieces::behind(std::slice::from_ref(fetched), 0));
    let mut decoder = Decoder::default();
    while reader.next(&mut decoder, |_, bytes| payload.extend_from_slice(bytes))? {}
    Ok(payload)
}

/// Reads the lines of an extent from the front of the fetched bytes, one after another.
pub(crate) struct LineReader<'a, I> {
    place: &'a SegmentRange,
    lines: I,
    fetched: Pieces<'a>,
    /// The extent's part of the lines.
    wanted: Range<usize>,
    /// Bytes of the lines before.
    at: usize,
}

impl<'a> LineReader<'a, ()> {
    pub(crate) fn new(
        place: &'a SegmentRange,
        bytes: u32,
        fetched: Pieces<'a>,
    ) -> LineReader<'a, impl Iterator<Item = StoredLine> + 'a> {
        let from = (place.skipped % LINE_BYTES) as usize;
        let lines = stored_lines(place, bytes);
        LineReader { place, lines, fetched, wanted: from..from + bytes as usize, at: 0 }
    }
}

impl<I: Iterator<Item = StoredLine>> LineReader<'_, I> {
    /// Checks the next line, and calls `copy` with the extent's bytes in it and their offset in the extent. False if
    /// there was no line.
    pub(crate) fn next(
        &mut self,
        decoder: &mut Decoder,
        mut copy: impl FnMut(usize, &[u8]),
    ) -> Result<bool, FormatError> {
        let Some(line) = self.lines.next() else { return Ok(false) };
        at_least("the lines of a run", self.fetched.remaining(), (line.stored + CHECKSUM_BYTES) as usize)?;
        let (mut stored, wanted) = (self.fetched.clone(), self.wanted.clone());
        check_line(self.place.segment, &line, &mut self.fetched)?;
        let mut at = self.at;
        let mut copy_part = |piece: &[u8]| {
            let part = wanted.start.max(at)..wanted.end.min(at + piece.len());
            if !part.is_empty() {
                copy(part.start - wanted.start, &piece[part.start - at..part.end - at]);
            }
            at += piece.len();
        };
        match &self.place.stored {
            Some(form) if line.stored < line.length => {
                let mut pieces = Vec::new();
                stored.take(line.stored as usize, |piece| pieces.push(piece));
                copy_part(decoder.decompress(form.codec, &line, &pieces)?);
            }
            _ => stored.take(line.stored as usize, copy_part),
        }
        self.at += line.length as usize;
        Ok(true)
    }
}

/// Compares the next line with the checksum behind it.
fn check_line(id: SegmentId, line: &StoredLine, fetched: &mut Pieces<'_>) -> Result<(), FormatError> {
    // An object has less than 2^32 bytes.
    let mut computed = line_checksum(id, line.offset as u32);
    fetched.take(line.stored as usize, |piece| computed = crc32c::crc32c_append(computed, piece));
    let (mut stored, mut at) = ([0; CHECKSUM_BYTES as usize], 0);
    fetched.take(stored.len(), |piece| {
        stored[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    });
    let (stored, offset) = (u32::from_be_bytes(stored), line.offset);
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
