//! The compression of runs, line by line.
//!
//! Each line is compressed by itself, so a read of one byte decompresses one line. The lengths of the stored lines are
//! in the record of each extent ([`StoredLines`]): two bytes for each line that the extent touches. A reader with the
//! record therefore finds a line without another request, and a cut of an extent carries what it needs. Alternatives
//! were an index in each segment, which costs a random read a second GET, and a record of its own for each segment,
//! which costs it a second lookup in the database.
//!
//! A run that would shrink by less than a sixteenth is stored raw: its lines have arithmetic positions, and no byte of
//! it is copied. The first lines decide early, so bytes without redundancy cost little time.
//!
//! Owns: the choice of a codec, its calls; the lengths of lines, the rule when a run is compressed at all.
//! Does not own: checksums, which are over the stored bytes (`segment`), the record (`extent`).
//! Invariants: decompression makes exactly the bytes of the line, or fails; it never writes beyond them
//! (`damaged_lines_make_no_byte_too_many`). The same bytes have the same stored form, on each machine.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::format::line::{CHECKSUM_BYTES, LINE_BYTES, StoredLine, line_bytes};
use crate::format::{FieldBytes, FormatError, in_range};

/// How new runs are stored. Each run has its own form, and all of them can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As they were written.
    None,
    /// By LZ4: the fastest.
    Lz4,
    /// By Zstandard of this level.
    Zstd(i32),
}

impl Compression {
    /// The level of Zstandard without another wish.
    pub const ZSTD_LEVEL: i32 = 3;
    /// The permitted levels of Zstandard.
    pub const ZSTD_LEVELS: (i32, i32) = (1, 19);
}

impl Default for Compression {
    fn default() -> Self {
        Self::Zstd(Self::ZSTD_LEVEL)
    }
}

/// The form of compressed lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// A Zstandard frame without the length of its content.
    Zstd,
    /// A block of LZ4.
    Lz4,
}

impl Codec {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Zstd => 1,
            Self::Lz4 => 2,
        }
    }

    pub(crate) fn of(code: u8) -> Result<Self, FormatError> {
        match in_range("the codec of a run", u64::from(code), 1, 2)? {
            1 => Ok(Self::Zstd),
            _ => Ok(Self::Lz4),
        }
    }
}

/// Where the lines of a compressed run lie: some of them in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredLines {
    pub(crate) codec: Codec,
    /// The number of the first line in the run.
    first: u32,
    /// Stored bytes of the run before it.
    before: u32,
    /// The lengths of the lines without their checksums, each less one.
    lengths: Box<[u16]>,
}

impl StoredLines {
    /// Stored bytes from the first to before this line, with checksums.
    fn bytes_before(&self, line: u32) -> u64 {
        self.lengths[..(line - self.first) as usize].iter().map(|length| stored_bytes(*length)).sum()
    }

    /// The lines from `first` on, of a run of these bytes at this offset of the segment.
    pub(crate) fn from(&self, first: u32, run: u32, offset: u32) -> impl Iterator<Item = StoredLine> + '_ {
        let mut offset = u64::from(offset) + u64::from(self.before) + self.bytes_before(first);
        let lengths = self.lengths[(first - self.first) as usize..].iter();
        lengths.zip(first..).map(move |(length, number)| {
            let line = StoredLine { offset, stored: u32::from(*length) + 1, length: line_bytes(run, number) };
            offset = line.end();
            line
        })
    }

    /// All stored bytes of the lines up to the last one here.
    pub(crate) fn end(&self) -> u64 {
        u64::from(self.before) + self.lengths.iter().map(|length| stored_bytes(*length)).sum::<u64>()
    }

    /// Appends the lines from `first` to before `end`, as [`Self::decode`] takes them.
    pub(crate) fn encode(&self, first: u32, end: u32, value: &mut Vec<u8>) {
        // A segment's runs have at most 8 MiB.
        let before = u64::from(self.before) + self.bytes_before(first);
        value.extend_from_slice(&(before as u32).to_be_bytes());
        for length in &self.lengths[(first - self.first) as usize..(end - self.first) as usize] {
            value.extend_from_slice(&length.to_be_bytes());
        }
    }

    /// Bytes of [`Self::encode`].
    pub(crate) fn encoded_bytes(first: u32, end: u32) -> usize {
        4 + 2 * (end - first) as usize
    }

    /// The lines from `first` to before `end` of a run. The caller checked the length of the fields.
    pub(crate) fn decode(
        codec: Codec,
        run: u32,
        (first, end): (u32, u32),
        fields: &mut FieldBytes<'_>,
    ) -> Result<Self, FormatError> {
        let before = fields.u32();
        in_range("the stored bytes before a line", u64::from(before), 0, raw_bytes(first))?;
        let lengths = (first..end).map(|number| {
            let length = u16::from_be_bytes(fields.take());
            let most = u64::from(line_bytes(run, number)) - 1;
            Ok(in_range("the stored length of a line", u64::from(length), 0, most)? as u16)
        });
        Ok(Self { codec, first, before, lengths: lengths.collect::<Result<_, FormatError>>()? })
    }
}

fn stored_bytes(length: u16) -> u64 {
    u64::from(length) + 1 + u64::from(CHECKSUM_BYTES)
}

/// The most stored bytes of so many whole lines.
fn raw_bytes(lines: u32) -> u64 {
    u64::from(lines) * u64::from(LINE_BYTES + CHECKSUM_BYTES)
}

/// A run as it is stored: its lines, each shorter than raw or raw.
#[derive(Debug)]
pub(crate) struct CompressedRun {
    pub(crate) lines: Vec<Bytes>,
    pub(crate) stored: Arc<StoredLines>,
}

/// So many lines decide whether a run is worth it.
const SAMPLE_LINES: usize = 2;

/// Compresses the lines of one run.
pub(crate) struct RunCompressor {
    codec: Codec,
    run: Bytes,
    at: usize,
    lines: Vec<Bytes>,
    stored: usize,
}

impl RunCompressor {
    /// Nothing if new runs stay as they are.
    pub(crate) fn new(compression: Compression, run: Bytes) -> Option<Self> {
        let codec = match compression {
            Compression::None => return None,
            Compression::Lz4 => Codec::Lz4,
            Compression::Zstd(_) => Codec::Zstd,
        };
        Some(Self { codec, run, at: 0, lines: Vec::new(), stored: 0 })
    }

    /// Compresses the next line. Returns whether another one follows: not behind the last, and not if the run is not
    /// worth it.
    pub(crate) fn step(&mut self, coder: &mut Coder) -> bool {
        let line = self.run.slice(self.at..self.run.len().min(self.at + LINE_BYTES as usize));
        self.at += line.len();
        let stored = coder.compress(self.codec, &line).map_or(line, Bytes::from);
        self.stored += stored.len();
        self.lines.push(stored);
        self.at < self.run.len() && (self.lines.len() != SAMPLE_LINES || self.is_worth_it())
    }

    /// It shrinks by a sixteenth at least.
    fn is_worth_it(&self) -> bool {
        self.stored <= self.at - self.at / 16
    }

    /// The compressed run, if it is worth it.
    pub(crate) fn finish(self) -> Option<CompressedRun> {
        if self.at < self.run.len() || !self.is_worth_it() || self.stored == self.at {
            return None;
        }
        let lengths = self.lines.iter().map(|line| (line.len() - 1) as u16).collect();
        let stored = Arc::new(StoredLines { codec: self.codec, first: 0, before: 0, lengths });
        Some(CompressedRun { lines: self.lines, stored })
    }
}

/// The compressor's state, which runs share.
pub(crate) struct Coder {
    level: i32,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    buffer: Vec<u8>,
}

impl Coder {
    pub(crate) fn new(compression: Compression) -> Self {
        let level = if let Compression::Zstd(level) = compression { level } else { 0 };
        Self { level, zstd: None, buffer: Vec::new() }
    }

    /// The line if it becomes shorter.
    fn compress(&mut self, codec: Codec, line: &[u8]) -> Option<Vec<u8>> {
        let Self { level, zstd, buffer } = self;
        buffer.resize(lz4_flex::block::get_maximum_output_size(LINE_BYTES as usize), 0);
        let length = match codec {
            Codec::Lz4 => lz4_flex::block::compress_into(line, buffer).ok()?,
            Codec::Zstd => {
                if zstd.is_none() {
                    *zstd = Some(new_zstd(*level)?);
                }
                // The buffer is as long as the line: a longer result is an error, and the line stays raw.
                zstd.as_mut()?.compress_to_buffer(line, &mut buffer[..line.len()]).ok()?
            }
        };
        (length < line.len()).then(|| buffer[..length].to_vec())
    }
}

/// A compressor of lines. Its frames do not name the length of the line, which readers know.
fn new_zstd(level: i32) -> Option<zstd::bulk::Compressor<'static>> {
    let mut zstd = zstd::bulk::Compressor::new(level).ok()?;
    zstd.include_contentsize(false).ok()?;
    Some(zstd)
}

impl fmt::Debug for Coder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coder").field("level", &self.level).finish_non_exhaustive()
    }
}

/// Decompresses lines, one after another.
#[derive(Default)]
pub(crate) struct Decoder {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    /// A stored line whose pieces are apart.
    stored: Vec<u8>,
    line: Vec<u8>,
}

impl Decoder {
    /// The bytes of a compressed line, which come in pieces.
    pub(crate) fn decompress<'a>(
        &'a mut self,
        codec: Codec,
        line: &StoredLine,
        pieces: &[&[u8]],
    ) -> Result<&'a [u8], FormatError> {
        let Self { zstd, stored, line: into } = self;
        let bytes = match pieces {
            [whole] => whole,
            pieces => {
                stored.clear();
                pieces.iter().for_each(|piece| stored.extend_from_slice(piece));
                &stored[..]
            }
        };
        into.resize(LINE_BYTES as usize, 0);
        let length = line.length as usize;
        let found = decompress(codec, zstd, bytes, &mut into[..length]);
        let refused = FormatError::Compressed { offset: line.offset, length: line.length };
        if found == Some(length) { Ok(&into[..length]) } else { Err(refused) }
    }
}

/// The number of decompressed bytes, if they fit.
fn decompress(
    codec: Codec,
    zstd: &mut Option<zstd::bulk::Decompressor<'static>>,
    bytes: &[u8],
    into: &mut [u8],
) -> Option<usize> {
    match codec {
        Codec::Lz4 => lz4_flex::block::decompress_into(bytes, into).ok(),
        Codec::Zstd => {
            if zstd.is_none() {
                *zstd = zstd::bulk::Decompressor::new().ok();
            }
            zstd.as_mut()?.decompress_to_buffer(bytes, into).ok()
        }
    }
}
