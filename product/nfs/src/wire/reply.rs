//! A reply while it is being written.
//!
//! Owns: the status, the positions of file bytes between the results, the record's mark.
//! Does not own: a procedure's answer; the header before its results (`rpc`).
//! Invariants: a reply is one whole record. Its mark is patched when the length is known. The bytes of one READ take no
//! memory of the reply; a compound's further READs do.

use afflux_volume::{PinnedPages, ReadBytes};
use bytes::Bytes;

use crate::status::NfsStatus;
use crate::wire::record;
use crate::wire::rpc::{self, Refusal};
use crate::wire::xdr::Writer;

/// Capacity for most replies: two handles or one with all its attributes and consistency data.
const REPLY_BYTES_USUAL: usize = 384;

/// File bytes in a reply.
pub(crate) enum Data {
    /// In page frames.
    Pages(PinnedPages),
    /// In memory of their own.
    Copied(Bytes),
}

impl Data {
    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Pages(pages) => pages.len(),
            Self::Copied(bytes) => bytes.len(),
        }
    }

    fn copy(&self, into: &mut Vec<u8>) {
        match self {
            Self::Pages(pages) => pages.slices().for_each(|slice| into.extend_from_slice(slice)),
            Self::Copied(bytes) => into.extend_from_slice(bytes),
        }
    }
}

impl From<ReadBytes> for Data {
    fn from(bytes: ReadBytes) -> Self {
        match bytes {
            ReadBytes::Pages(pages) => Self::Pages(pages),
            ReadBytes::Copied(bytes) => Self::Copied(bytes),
        }
    }
}

/// File bytes between the results, each run with its position in the reply's own bytes.
#[derive(Default)]
pub(crate) struct DataRuns {
    first: Option<(usize, Data)>,
    more: Vec<(usize, Data)>,
    bytes: usize,
}

impl DataRuns {
    #[inline]
    fn push(&mut self, at: usize, data: Data) {
        self.bytes += data.len();
        match self.first {
            None => self.first = Some((at, data)),
            Some(_) => self.more.push((at, data)),
        }
    }

    /// Number of bytes of all runs.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    fn truncate(&mut self, count: usize) {
        if count >= self.count() {
            return;
        }
        self.more.truncate(count.saturating_sub(1));
        if count == 0 {
            self.first = None;
        }
        self.bytes = self.iter().map(|(_, data)| data.len()).sum();
    }

    fn iter(&self) -> impl Iterator<Item = &(usize, Data)> {
        self.first.iter().chain(&self.more)
    }

    /// Passes on the runs, in their order. Most replies have none, or one.
    #[inline]
    pub(crate) fn hand_over(self, mut to: impl FnMut(usize, Data)) {
        let Some((at, data)) = self.first else { return };
        to(at, data);
        self.more.into_iter().for_each(|(at, data)| to(at, data));
    }

    /// The runs, in their order.
    #[inline]
    pub(crate) fn into_runs(self) -> impl Iterator<Item = (usize, Data)> {
        self.first.into_iter().chain(self.more)
    }
}

/// A finished reply: a whole record, without the data between its bytes.
pub(crate) struct Reply {
    pub(crate) record: Vec<u8>,
    pub(crate) data: DataRuns,
    pub(crate) status: NfsStatus,
}

/// A reply being written.
pub(crate) struct Draft {
    pub(crate) writer: Writer,
    /// Where it starts: others of a batch may be before it.
    start: usize,
    status: NfsStatus,
    data: DataRuns,
}

/// A position in a reply to which it may be rolled back.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mark {
    /// Bytes of the reply itself before it.
    bytes: usize,
    runs: usize,
}

impl Draft {
    /// The reply to an accepted call, up to its results, in a buffer that is empty or was used before.
    pub(crate) fn accepted(xid: u32, buffer: Vec<u8>) -> Self {
        let mut writer = Writer::reusing(buffer);
        writer.reserve(REPLY_BYTES_USUAL);
        Self::after(writer, xid)
    }

    /// As [`Draft::accepted`], after the replies written before.
    #[inline]
    pub(crate) fn after(mut writer: Writer, xid: u32) -> Self {
        let start = writer.len();
        writer.accept(xid);
        Self { writer, start, status: NfsStatus::Ok, data: DataRuns::default() }
    }

    /// Writes the status, which every NFS procedure's results but those of NULL start with.
    #[inline]
    pub(crate) fn status(&mut self, status: NfsStatus) -> &mut Writer {
        self.status = status;
        self.writer.u32(status.code());
        &mut self.writer
    }

    /// Begins the results of a compound with this tag. Returns the position of the number of its operations.
    #[inline]
    pub(crate) fn begin_compound(&mut self, tag: &[u8]) -> Mark {
        if tag.is_empty() {
            self.writer.words([NfsStatus::Ok.code(), 0, 0]);
        } else {
            self.writer.u32(NfsStatus::Ok.code());
            self.writer.opaque(tag);
            self.writer.u32(0);
        }
        Mark { bytes: self.writer.len() - self.start - 4, runs: 0 }
    }

    /// Has the results start with another status.
    pub(crate) fn restate(&mut self, status: NfsStatus) {
        self.status = status;
        let at = self.results_at();
        self.writer.patch_u32(at, status.code());
    }

    fn results_at(&self) -> usize {
        self.start + record::MARK_BYTES + rpc::ACCEPTED_BYTES
    }

    /// Where it starts: others of a batch may be before it.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// The status that was written last.
    #[inline]
    pub(crate) fn written(&self) -> NfsStatus {
        self.status
    }

    /// Notes the status of a call whose results have it in another form.
    pub(crate) fn note(&mut self, status: NfsStatus) {
        self.status = status;
    }

    /// Puts `data`, whose length has been written, and its padding behind the bytes written so far.
    #[inline]
    pub(crate) fn data(&mut self, data: Data) {
        let len = data.len();
        if len > 0 {
            self.data.push(self.writer.len() - self.start, data);
        }
        self.writer.pad(len);
    }

    /// The position behind the bytes written so far.
    pub(crate) fn mark(&self) -> Mark {
        Mark { bytes: self.writer.len() - self.start, runs: self.data.count() }
    }

    /// Takes back the bytes written after a mark.
    pub(crate) fn back_to(&mut self, mark: Mark) {
        self.writer.truncate(self.start + mark.bytes);
        self.data.truncate(mark.runs);
    }

    /// The bytes written after a mark, without data.
    pub(crate) fn since(&self, mark: Mark) -> &[u8] {
        self.writer.since(self.start + mark.bytes)
    }

    /// Overwrites the word behind a mark.
    pub(crate) fn patch(&mut self, mark: Mark, value: u32) {
        self.writer.patch_u32(self.start + mark.bytes, value);
    }

    /// Number of bytes so far of the record, its mark not counted.
    pub(crate) fn bytes(&self) -> usize {
        self.writer.len() - self.start - record::MARK_BYTES + self.data.bytes()
    }

    /// Appends the results, data and all, to memory that caches them for a repetition.
    pub(crate) fn copy_results(&self, into: &mut Vec<u8>) {
        let mut from = self.results_at();
        for (at, data) in self.data.iter() {
            into.extend_from_slice(self.writer.between(from, self.start + at));
            data.copy(into);
            from = self.start + at;
        }
        into.extend_from_slice(self.writer.since(from));
    }

    /// Has the results of an earlier reply to the same call.
    pub(crate) fn replace_results(&mut self, results: &[u8], status: NfsStatus) {
        self.writer.truncate(self.results_at());
        self.data.truncate(0);
        self.writer.raw(results);
        self.status = status;
    }

    /// Moves the reply to a buffer of its own. Returns the writer with the replies before it, too.
    pub(crate) fn moved(mut self, buffer: Vec<u8>) -> (Writer, Self) {
        let mut writer = Writer::reusing(buffer);
        writer.reserve(REPLY_BYTES_USUAL);
        writer.raw(self.writer.since(self.start));
        self.writer.truncate(self.start);
        (self.writer, Self { writer, start: 0, status: self.status, data: self.data })
    }

    /// The reply, and the data that follow it.
    pub(crate) fn finish(self) -> Reply {
        let (writer, status, data) = self.end();
        Reply { record: writer.into_bytes(), data, status }
    }

    /// The writer with the reply's mark, the status, and the data that follow.
    #[inline]
    pub(crate) fn end(mut self) -> (Writer, NfsStatus, DataRuns) {
        self.writer.end_record(self.start, self.data.bytes());
        (self.writer, self.status, self.data)
    }

    /// Takes back the reply; returns the writer with the replies before it.
    pub(crate) fn given_up(mut self) -> Writer {
        self.writer.truncate(self.start);
        self.writer
    }
}

impl Writer {
    /// Starts a record with the header of an accepted call's reply.
    #[inline]
    pub(crate) fn accept(&mut self, xid: u32) {
        let mut bytes = [0; record::MARK_BYTES + rpc::ACCEPTED_BYTES];
        bytes[record::MARK_BYTES..].copy_from_slice(&rpc::accepted(xid));
        self.raw(&bytes);
    }

    /// Writes the whole record that refuses a call.
    pub(crate) fn refuse(&mut self, xid: u32, refusal: Refusal) {
        let start = self.len();
        self.u32(0);
        rpc::write_refusal(self, xid, refusal);
        self.end_record(start, 0);
    }

    /// Writes the whole record that asks the client to begin TLS.
    pub(crate) fn start_tls(&mut self, xid: u32) {
        let start = self.len();
        self.u32(0);
        rpc::write_start_tls(self, xid);
        self.end_record(start, 0);
    }

    /// Patches the mark of the record that starts at `start`; `data_bytes` bytes of data go between its own.
    pub(crate) fn end_record(&mut self, start: usize, data_bytes: usize) {
        let len = self.len() - start - record::MARK_BYTES + data_bytes;
        self.patch_u32(start, record::mark(len));
    }
}
