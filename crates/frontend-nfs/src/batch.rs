//! The replies of one poll, and how much of what was handed out has not been sent.
//!
//! Owns: one buffer for the headers of all replies of a poll, the order of data between them, and
//! the count of reply bytes that the world still holds.
//! Does not own: what replies say.
//! Invariants: bytes of a reply are counted from when it is written until the world has let go of the
//! headers of its poll; when they are let go, a connection that waits for room is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use frontend::{Output, Segment};
use futures_util::task::AtomicWaker;

use crate::record::MARK_BYTES;
use crate::reply::{Data, Reply};
use crate::xdr::Writer;

/// Reply records from this length on are handed out as they are; shorter ones are copied together.
const COPY_BYTES_MAX: usize = 4096;
const BUFFER_BYTES_MIN: usize = 1024;
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Reply bytes that the world holds.
#[derive(Default)]
pub(crate) struct Outstanding {
    bytes: AtomicU64,
    waker: AtomicWaker,
}

impl Outstanding {
    /// How many bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whom to wake when they become fewer.
    pub(crate) fn wake_when_fewer(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
    }
}

/// The buffer of one poll, as the owner of the segments cut from it.
struct Sent {
    buffer: Vec<u8>,
    reply_bytes: u64,
    outstanding: Arc<Outstanding>,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.outstanding.bytes.fetch_sub(self.reply_bytes, Ordering::AcqRel);
        self.outstanding.waker.wake();
    }
}

/// Replies that wait for the end of the poll.
#[derive(Default)]
pub(crate) struct Batch {
    /// The replies but for their data. Whole records are appended here.
    pub(crate) writer: Writer,
    /// What goes between the bytes before and those after a place in the buffer.
    inserts: Vec<(usize, Segment)>,
    insert_bytes: usize,
    /// What the last poll wrote: the best guess at what the next will.
    capacity: usize,
    outstanding: Arc<Outstanding>,
}

impl Batch {
    /// Makes room for the replies of a poll. Not before there is one: an idle connection has no buffer.
    pub(crate) fn begin(&mut self) {
        if self.writer.len() == 0 {
            self.writer.reserve(self.capacity);
        }
    }

    /// How many bytes the replies are.
    pub(crate) fn len(&self) -> usize {
        self.writer.len() + self.insert_bytes
    }

    /// What the world holds of earlier batches.
    pub(crate) fn outstanding(&self) -> &Arc<Outstanding> {
        &self.outstanding
    }

    /// Appends the data of a READ, and its padding.
    pub(crate) fn data(&mut self, data: Data) {
        let len = data.len();
        match data {
            Data::Copied(bytes) if len < COPY_BYTES_MAX => self.writer.raw(&bytes),
            Data::Copied(bytes) => self.insert(Segment::Bytes(bytes)),
            Data::Pages(pages) => self.insert(Segment::Pages(pages)),
        }
        self.writer.pad(len);
    }

    fn insert(&mut self, segment: Segment) {
        if !segment.is_empty() {
            self.insert_bytes += segment.len();
            self.inserts.push((self.writer.len(), segment));
        }
    }

    /// Appends a reply that was written elsewhere.
    pub(crate) fn reply(&mut self, reply: Reply) {
        self.record(Bytes::from(reply.record));
        if let Some(data) = reply.data {
            self.data(data);
        }
    }

    /// Appends bytes of a reply that were written elsewhere.
    pub(crate) fn record(&mut self, record: Bytes) {
        if record.len() < COPY_BYTES_MAX {
            self.writer.raw(&record);
        } else {
            // Its mark goes before it, into the buffer that says how much the world still holds.
            self.writer.raw(&record[..MARK_BYTES]);
            self.insert(Segment::Bytes(record.slice(MARK_BYTES..)));
        }
    }

    /// Moves everything to `output`. The bytes count as outstanding from here on.
    pub(crate) fn hand_out(&mut self, output: &mut dyn Output) {
        if self.len() == 0 {
            return;
        }
        let reply_bytes = self.len() as u64;
        self.capacity = self.writer.len().clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        let buffer = std::mem::take(&mut self.writer).into_bytes();
        self.outstanding.bytes.fetch_add(reply_bytes, Ordering::AcqRel);
        let outstanding = Arc::clone(&self.outstanding);
        let headers = Bytes::from_owner(Sent { buffer, reply_bytes, outstanding });
        let mut from = 0;
        for (at, segment) in self.inserts.drain(..) {
            if at > from {
                output.push(Segment::Bytes(headers.slice(from..at)));
                from = at;
            }
            output.push(segment);
        }
        if from < headers.len() {
            output.push(Segment::Bytes(headers.slice(from..)));
        }
        self.insert_bytes = 0;
        // Records carry their own lengths: those of one poll leave together.
        output.end_reply();
    }
}

#[cfg(test)]
mod tests;
