//! The replies of one poll, and the count of bytes that were handed out but not sent.
//!
//! Owns: one buffer for the headers of all replies of a poll, the order of data between them, the buffers that came
//! back, and the count of reply bytes that the world still holds.
//! Does not own: the contents of replies.
//! Invariants: a reply's bytes count from the moment when it is written until the world has released the headers of its
//! poll, and the copied data behind them; that release wakes a connection that waits for quota. Pages of the cache do
//! not count for longer: the engine bounds them. At most [`BUFFERS_POOLED`] buffers are pooled, none larger than
//! [`POOLED_BYTES_MAX`]. So a connection in use allocates nothing to answer short calls, and a silent one holds little.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use afflux_frontend::{Lent, LentBytes, Output, Segment};
use bytes::Bytes;
use futures_util::task::AtomicWaker;

use crate::status::NfsStatus;
use crate::wire::record::MARK_BYTES;
use crate::wire::reply::{Data, Draft, Reply};
use crate::wire::xdr::Writer;

/// Records of this length or more are handed out as they are; shorter ones are copied into the buffer.
const COPY_BYTES_MAX: usize = 4096;
const BUFFER_BYTES_MIN: usize = 1024;
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Two: one is being sent while the next is written.
const BUFFERS_POOLED: usize = 2;
const POOLED_BYTES_MAX: usize = 16 << 10;

/// Reply bytes that the world holds.
#[derive(Default)]
pub(crate) struct Outstanding {
    bytes: AtomicU64,
    waker: AtomicWaker,
}

impl Outstanding {
    /// Number of these bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Registers the task to wake when the number falls.
    pub(crate) fn wake_when_fewer(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
    }
}

/// The buffer of one poll, lent to the world in parts.
struct Sent {
    buffer: Vec<u8>,
    reply_bytes: u64,
    /// Parts that the world has not released, plus one while they are handed out.
    parts: AtomicUsize,
    outstanding: Arc<Outstanding>,
}

impl Lent for Sent {
    fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    fn given_back(&self) {
        if self.parts.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.outstanding.bytes.fetch_sub(self.reply_bytes, Ordering::AcqRel);
            self.outstanding.waker.wake();
        }
    }
}

/// Hands out a part of a buffer.
fn lend(buffer: &Arc<Sent>, range: Range<usize>) -> Segment {
    buffer.parts.fetch_add(1, Ordering::Relaxed);
    Segment::Lent(LentBytes::new(Arc::clone(buffer) as _, range))
}

/// Copied data behind the last headers of a poll. Its bytes count until the world has released them.
struct LastBytes {
    bytes: Bytes,
    /// A part of the headers' buffer, so that the buffer is not given back before.
    _headers: Segment,
}

impl AsRef<[u8]> for LastBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Replies that wait for the end of the poll.
#[derive(Default)]
pub(crate) struct Batch {
    /// The replies without their data. Whole records are appended here.
    pub(crate) writer: Writer,
    /// Segments, each with its position in the buffer.
    inserts: Vec<(usize, Segment)>,
    insert_bytes: usize,
    /// Bytes that the last poll wrote: the best guess for the next.
    capacity: usize,
    /// Buffers that were handed out; a buffer without another owner is used again.
    pooled: Vec<Arc<Sent>>,
    outstanding: Arc<Outstanding>,
}

impl Batch {
    /// Reserves memory for the replies of a poll. This waits for the first reply, since an idle connection should have
    /// no buffer.
    pub(crate) fn begin(&mut self) {
        if self.writer.len() > 0 {
            return;
        }
        if self.writer.capacity() == 0
            && let Some(back) = self.pooled.iter_mut().find_map(Arc::get_mut)
        {
            self.writer = Writer::reusing(std::mem::take(&mut back.buffer));
        }
        self.writer.reserve(self.capacity);
    }

    /// The buffer to hand out now: one that came back, or a new one.
    fn sent(&mut self, buffer: Vec<u8>, reply_bytes: u64) -> Arc<Sent> {
        let may_keep = buffer.capacity() <= POOLED_BYTES_MAX;
        let back = self.pooled.iter().position(|pooled| Arc::strong_count(pooled) == 1);
        if let Some(at) = back.filter(|_| may_keep)
            && let Some(sent) = Arc::get_mut(&mut self.pooled[at])
        {
            (sent.buffer, sent.reply_bytes, *sent.parts.get_mut()) = (buffer, reply_bytes, 1);
            return Arc::clone(&self.pooled[at]);
        }
        let outstanding = Arc::clone(&self.outstanding);
        let sent = Arc::new(Sent { buffer, reply_bytes, parts: AtomicUsize::new(1), outstanding });
        if may_keep && self.pooled.len() < BUFFERS_POOLED {
            self.pooled.push(Arc::clone(&sent));
        }
        sent
    }

    /// Number of bytes of the replies.
    pub(crate) fn len(&self) -> usize {
        self.writer.len() + self.insert_bytes
    }

    /// The bytes of earlier batches that the world holds.
    pub(crate) fn outstanding(&self) -> &Arc<Outstanding> {
        &self.outstanding
    }

    /// Begins a reply to the call `xid`. Until it is ended or given up, nothing else is written.
    pub(crate) fn draft(&mut self, xid: u32) -> Draft {
        Draft::after(std::mem::take(&mut self.writer), xid)
    }

    /// Ends a reply. Returns its status.
    pub(crate) fn end(&mut self, draft: Draft) -> NfsStatus {
        let start = draft.start();
        let (writer, status, runs) = draft.end();
        self.writer = writer;
        runs.hand_over(|at, data| {
            let segment = match data {
                Data::Copied(bytes) => Segment::Bytes(bytes),
                Data::Pages(pages) => Segment::Pages(pages),
            };
            self.insert(start + at, segment);
        });
        status
    }

    /// Moves a reply that was begun, and that has to wait, to a buffer of its own.
    pub(crate) fn moved(&mut self, draft: Draft, buffer: Vec<u8>) -> Draft {
        let (writer, draft) = draft.moved(buffer);
        self.writer = writer;
        draft
    }

    /// Takes back a reply that was begun.
    pub(crate) fn give_up(&mut self, draft: Draft) {
        self.writer = draft.given_up();
    }

    /// Appends the data of a READ.
    fn data(&mut self, data: Data) {
        match data {
            Data::Copied(bytes) if bytes.len() < COPY_BYTES_MAX => self.writer.raw(&bytes),
            Data::Copied(bytes) => self.insert(self.writer.len(), Segment::Bytes(bytes)),
            Data::Pages(pages) => self.insert(self.writer.len(), Segment::Pages(pages)),
        }
    }

    /// Puts a segment at its position, which is behind all others.
    fn insert(&mut self, at: usize, segment: Segment) {
        if !segment.is_empty() {
            self.insert_bytes += segment.len();
            self.inserts.push((at, segment));
        }
    }

    /// Appends a finished reply. Returns the buffer in which it was written, if that is free and small.
    pub(crate) fn reply(&mut self, reply: Reply) -> Vec<u8> {
        let Reply { record, data, .. } = reply;
        if record.len() < COPY_BYTES_MAX {
            let mut from = 0;
            for (at, data) in data.into_runs() {
                self.writer.raw(&record[from..at]);
                self.data(data);
                from = at;
            }
            self.writer.raw(&record[from..]);
            return if record.capacity() <= COPY_BYTES_MAX { record } else { Vec::new() };
        }
        if data.is_empty() {
            self.record(Bytes::from(record));
            return Vec::new();
        }
        // A long compound with data.
        let record = Bytes::from(record);
        self.writer.raw(&record[..MARK_BYTES]);
        let mut from = MARK_BYTES;
        for (at, data) in data.into_runs() {
            self.insert(self.writer.len(), Segment::Bytes(record.slice(from..at)));
            self.data(data);
            from = at;
        }
        self.insert(self.writer.len(), Segment::Bytes(record.slice(from..)));
        Vec::new()
    }

    /// Appends a finished reply's bytes.
    pub(crate) fn record(&mut self, record: Bytes) {
        if record.len() < COPY_BYTES_MAX {
            self.writer.raw(&record);
        } else {
            // Its mark goes into the batch's buffer; the release of that buffer ends the count of the record's bytes.
            self.writer.raw(&record[..MARK_BYTES]);
            self.insert(self.writer.len(), Segment::Bytes(record.slice(MARK_BYTES..)));
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
        let headers = self.sent(buffer, reply_bytes);
        let mut from = 0;
        for (at, segment) in self.inserts.drain(..) {
            if at > from {
                output.push(lend(&headers, from..at));
                from = at;
            }
            let is_last = from == headers.buffer.len();
            output.push(match segment {
                Segment::Bytes(bytes) if is_last => {
                    let _headers = lend(&headers, from..from);
                    Segment::Bytes(Bytes::from_owner(LastBytes { bytes, _headers }))
                }
                segment => segment,
            });
        }
        if from < headers.buffer.len() {
            output.push(lend(&headers, from..headers.buffer.len()));
        }
        headers.given_back();
        self.insert_bytes = 0;
        // Records carry their own lengths, so that all records of a poll can leave together.
        output.end_reply();
    }
}

#[cfg(test)]
mod tests;
