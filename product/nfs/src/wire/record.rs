//! Record marking (RFC 5531, section 11): whole records out of a stream of bytes.
//!
//! Owns: the fragments of a record that has not ended, and the records not yet read.
//! Does not own: the contents of a record.
//! Invariants: a record has at most [`FRAGMENTS_MAX`] fragments. Of a longer record than [`RECORD_BYTES_MAX`] only the
//! beginning up to there is stored, and the rest is thrown away as it comes in. So a client that sends larger WRITEs
//! than announced gets an answer instead of a broken connection. A record that claims more than [`SENT_BYTES_MAX`] is
//! refused before its bytes arrive. A record in one fragment that is not too long is never copied.

use std::collections::VecDeque;
use std::ops::Range;

use afflux_frontend::ProtocolError;
use bytes::{Buf, Bytes, BytesMut};

use crate::limits::WRITE_BYTES_MAX;

/// Most bytes of a record: the largest WRITE, and space for its header (928 bytes at most).
pub const RECORD_BYTES_MAX: usize = WRITE_BYTES_MAX as usize + 4096;
/// Most bytes of a record that are received at all, including those thrown away.
pub(crate) const SENT_BYTES_MAX: usize = 64 << 20;
/// Most fragments of a record, including empty ones.
pub const FRAGMENTS_MAX: u32 = 1024;

/// Bytes of a record mark.
pub(crate) const MARK_BYTES: usize = 4;
const LAST_FRAGMENT: u32 = 1 << 31;
/// Worlds receive into buffers of at most this size, or of the size that a record in them needs.
const BUFFER_BYTES: usize = 256 << 10;
/// Records up to this length are copied to reused memory.
const SHORT_BYTES_MAX: usize = 16 << 10;
/// Bytes that are thrown away are received in pieces of this size.
const UNWANTED_STEP: usize = 64 << 10;

/// The record mark of a reply of `len` bytes in one fragment.
///
/// # Panics
/// When `len` is 2 GiB or more; replies are bounded far below.
pub(crate) fn mark(len: usize) -> u32 {
    assert!(len < LAST_FRAGMENT as usize);
    LAST_FRAGMENT | len as u32
}

/// Several whole records as they were received, each with its mark.
pub(crate) struct Chunk {
    bytes: Bytes,
    /// Upper bound of the memory block that they are a part of.
    memory_bytes: usize,
    at: usize,
    /// Number of records that start at `at` or later.
    records: usize,
}

impl Chunk {
    /// The position of the next record's bytes, without its mark. None after the last.
    pub(crate) fn next_record(&mut self) -> Option<Range<usize>> {
        let rest = self.bytes.get(self.at..)?;
        let (len, _) = fragment(rest)?;
        let start = self.at + MARK_BYTES;
        self.at = start + len;
        self.records -= 1;
        Some(start..self.at)
    }

    /// The bytes of a record.
    pub(crate) fn bytes(&self, record: Range<usize>) -> &[u8] {
        &self.bytes[record]
    }

    /// The bytes of a record, for longer use. They stay in the memory of the received bytes if the record is at least
    /// half of it, so that a small call that waits does not hold a large buffer. Otherwise copies the record. A short
    /// one goes to `buffer`, and reuses its memory if the bytes stored there before are released.
    pub(crate) fn keep(&self, record: Range<usize>, buffer: &mut BytesMut) -> Bytes {
        const WASTE_MAX: usize = 2;
        if record.len() * WASTE_MAX >= self.memory_bytes {
            self.bytes.slice(record)
        } else if record.len() > SHORT_BYTES_MAX {
            Bytes::copy_from_slice(&self.bytes[record])
        } else {
            buffer.clear();
            buffer.extend_from_slice(&self.bytes[record]);
            buffer.split().freeze()
        }
    }

    /// Marks the last record as not looked at.
    pub(crate) fn unread_last(&mut self, record: &Range<usize>) {
        self.at = record.start - MARK_BYTES;
        self.records += 1;
    }

    /// Bytes of records not looked at.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }
}

/// The length of the fragment whose mark starts `bytes`, and whether it is a record's last.
fn fragment(bytes: &[u8]) -> Option<(usize, bool)> {
    let mark = u32::from_be_bytes(*bytes.first_chunk()?);
    Some(((mark & !LAST_FRAGMENT) as usize, mark & LAST_FRAGMENT != 0))
}

/// The reading side of a stream.
#[derive(Default)]
pub(crate) struct Records {
    chunks: VecDeque<Chunk>,
    chunk_bytes: usize,
    chunk_records: usize,
    /// The fragments so far of a record in several, after space for a mark. Empty if there is no such record.
    assembly: BytesMut,
    assembly_fragments: u32,
    /// Bytes of the record in `assembly` that were or will be thrown away.
    cut_bytes: usize,
    /// The rest of a fragment whose beginning is stored, and whether it is the last fragment.
    unwanted: usize,
    unwanted_ends: bool,
}

impl Records {
    /// Takes all whole fragments from the front of `input`.
    pub(crate) fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        if !self.try_discard(input) {
            return Ok(());
        }
        let (mut whole, mut records) = (0, 0);
        while let Some((len, last)) = fragment(&input[whole..]) {
            self.check(len, last)?;
            let wanted = self.wanted(len);
            if wanted < len {
                self.take(input, whole, records);
                (whole, records) = (0, 0);
                if input.len() < MARK_BYTES + wanted {
                    break;
                }
                let fragment = input.split_to(MARK_BYTES + wanted);
                self.assemble(&fragment[MARK_BYTES..], false);
                (self.unwanted, self.unwanted_ends) = (len - wanted, last);
                self.cut_bytes += len - wanted;
                if !self.try_discard(input) {
                    return Ok(());
                }
                continue;
            }
            let end = whole + MARK_BYTES + len;
            if input.len() < end {
                break;
            }
            if last && self.assembly.is_empty() {
                (whole, records) = (end, records + 1);
                continue;
            }
            self.take(input, whole, records);
            let fragment = input.split_to(MARK_BYTES + len);
            self.assemble(&fragment[MARK_BYTES..], last);
            (whole, records) = (0, 0);
        }
        self.take(input, whole, records);
        Ok(())
    }

    /// Takes the whole records of one fragment at the front of `piece`, without copying them.
    pub(crate) fn receive_shared(&mut self, piece: &mut Bytes) -> Result<(), ProtocolError> {
        let (mut whole, mut records, memory_bytes) = (0, 0, piece.len());
        while self.assembly_fragments == 0
            && let Some((len, last)) = fragment(&piece[whole..])
        {
            self.check(len, last)?;
            let end = whole + MARK_BYTES + len;
            if !last || self.wanted(len) < len || piece.len() < end {
                break;
            }
            (whole, records) = (end, records + 1);
        }
        self.push(piece.split_to(whole), records, memory_bytes);
        Ok(())
    }

    /// Bytes so far of a record in several fragments.
    fn assembled(&self) -> usize {
        self.assembly.len().saturating_sub(MARK_BYTES)
    }

    /// How many of the next `len` bytes of the record are stored.
    fn wanted(&self, len: usize) -> usize {
        len.min(RECORD_BYTES_MAX - self.assembled())
    }

    /// Throws away the received part of the unwanted rest of a fragment. False if more of it is to come.
    fn try_discard(&mut self, input: &mut BytesMut) -> bool {
        let count = self.unwanted.min(input.len());
        input.advance(count);
        self.unwanted -= count;
        if self.unwanted == 0 && std::mem::take(&mut self.unwanted_ends) {
            self.assemble(&[], true);
        }
        self.unwanted == 0
    }

    /// Checks a fragment's claimed length before its bytes arrive.
    fn check(&self, len: usize, last: bool) -> Result<(), ProtocolError> {
        let total = self.assembled() + self.cut_bytes + len;
        if total > SENT_BYTES_MAX {
            let reason = format!("a record of {total} bytes or more; at most {SENT_BYTES_MAX} are received");
            return Err(ProtocolError { reason });
        }
        if last && total == 0 {
            return Err(ProtocolError { reason: "a record of 0 bytes".into() });
        }
        if self.assembly_fragments >= FRAGMENTS_MAX {
            let reason = format!("a record in more than {FRAGMENTS_MAX} fragments");
            return Err(ProtocolError { reason });
        }
        Ok(())
    }

    fn assemble(&mut self, fragment: &[u8], last: bool) {
        if self.assembly.is_empty() {
            self.assembly.extend_from_slice(&[0; MARK_BYTES]);
        }
        self.assembly.extend_from_slice(fragment);
        self.assembly_fragments += 1;
        if last {
            let mut record = std::mem::take(&mut self.assembly);
            (self.assembly_fragments, self.cut_bytes) = (0, 0);
            let mark = mark(record.len() - MARK_BYTES);
            record[..MARK_BYTES].copy_from_slice(&mark.to_be_bytes());
            let memory_bytes = record.capacity();
            self.push(record.freeze(), 1, memory_bytes);
        }
    }

    fn push(&mut self, bytes: Bytes, records: usize, memory_bytes: usize) {
        if records > 0 {
            self.chunk_bytes += bytes.len();
            self.chunk_records += records;
            self.chunks.push_back(Chunk { bytes, memory_bytes, at: 0, records });
        }
    }

    /// Takes `records` records, of `whole` bytes in all, off the front of the received bytes.
    fn take(&mut self, input: &mut BytesMut, whole: usize, records: usize) {
        if whole == 0 {
            // There is only a piece of a record; splitting it off would cost more than looking at it again.
            return;
        }
        self.push(input.split_to(whole).freeze(), records, whole.max(BUFFER_BYTES));
    }

    /// Takes the records that were received first.
    pub(crate) fn pop(&mut self) -> Option<Chunk> {
        let chunk = self.chunks.pop_front()?;
        self.chunk_bytes -= chunk.remaining();
        self.chunk_records -= chunk.records;
        Some(chunk)
    }

    /// Puts back the rest of a chunk that was just taken.
    pub(crate) fn put_back(&mut self, mut chunk: Chunk) {
        const WASTE_MAX: usize = 2;
        if chunk.records > 0 {
            if chunk.remaining() * WASTE_MAX < chunk.bytes.len() {
                // Waiting records do not hold the memory of finished ones.
                chunk.bytes = Bytes::copy_from_slice(&chunk.bytes[chunk.at..]);
                (chunk.at, chunk.memory_bytes) = (0, chunk.bytes.len());
            }
            self.chunk_bytes += chunk.remaining();
            self.chunk_records += chunk.records;
            self.chunks.push_front(chunk);
        }
    }

    /// Bytes of records not yet looked at, and of a record that has not ended.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.chunk_bytes + self.assembly.len()
    }

    /// Records not yet looked at.
    pub(crate) fn waiting(&self) -> usize {
        self.chunk_records
    }

    /// Number of bytes that the fragment at the front of `input` still lacks; only those of the mark if the mark is
    /// incomplete.
    pub(crate) fn lacking(&self, input: &[u8]) -> usize {
        match fragment(input) {
            _ if self.unwanted > 0 => self.unwanted.min(UNWANTED_STEP),
            None => MARK_BYTES - input.len(),
            Some((len, _)) => (MARK_BYTES + self.wanted(len)).saturating_sub(input.len()),
        }
    }
}

#[cfg(test)]
mod tests;
