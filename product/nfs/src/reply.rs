//! A reply while it is being written, and the encoding of file attributes.
//!
//! Owns: the encoding of `fattr3`, of optional attributes, of weak cache consistency data and handles.
//! Does not own: a procedure's answer; the header before its results (`rpc`).
//! Invariants: a reply is one whole record. Its mark is patched when the length is known.

use afflux_volume::PinnedPages;
use afflux_volume::{Attributes, Consistency, Kind, ReadBytes, Timestamp, WccAttributes};
use bytes::Bytes;

use crate::record;
use crate::rpc::{self, Refusal};
use crate::status::Status;
use crate::xdr::{Writer, padding};

/// Bytes of `fattr3`.
const ATTRIBUTES_BYTES: usize = 84;
/// Bytes of optional attributes that are present.
pub(crate) const POST_OP_BYTES: usize = 4 + ATTRIBUTES_BYTES;
/// Room for most replies: two handles or one with all its attributes and consistency data.
const REPLY_BYTES_USUAL: usize = 384;

/// File bytes at the end of a READ's reply.
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
}

impl From<ReadBytes> for Data {
    fn from(bytes: ReadBytes) -> Self {
        match bytes {
            ReadBytes::Pages(pages) => Self::Pages(pages),
            ReadBytes::Copied(bytes) => Self::Copied(bytes),
        }
    }
}

/// A finished reply: a whole record, without the data that follows it and the padding.
pub(crate) struct Reply {
    pub(crate) record: Vec<u8>,
    pub(crate) data: Option<Data>,
    pub(crate) status: Status,
}

/// A reply being written.
pub(crate) struct Draft {
    pub(crate) writer: Writer,
    /// Where it starts: others of a batch may be before it.
    start: usize,
    status: Status,
    data: Option<Data>,
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
        Self { writer, start, status: Status::Ok, data: None }
    }

    /// Writes the status, which every NFS procedure's results but those of NULL start with.
    #[inline]
    pub(crate) fn status(&mut self, status: Status) -> &mut Writer {
        self.status = status;
        self.writer.u32(status.code());
        &mut self.writer
    }

    /// Has the results start with the status that stands in for the one written, if the procedure may not return that.
    pub(crate) fn permit(&mut self, procedure: u32) {
        self.status = self.status.permitted(procedure);
        let at = self.start + record::MARK_BYTES + rpc::ACCEPTED_BYTES;
        self.writer.patch_u32(at, self.status.code());
    }

    /// The status that was written last.
    #[inline]
    pub(crate) fn written(&self) -> Status {
        self.status
    }

    /// Notes the status of a call whose results have it in another form.
    pub(crate) fn note(&mut self, status: Status) {
        self.status = status;
    }

    /// Puts `data`, whose length has been written, after the results.
    #[inline]
    pub(crate) fn data(&mut self, data: Data) {
        self.data = Some(data);
    }

    /// Writes the results of a call that failed with nothing to add but absent attributes: `flags` of them.
    pub(crate) fn failed(&mut self, status: Status, flags: usize) {
        let writer = self.status(status);
        for _ in 0..flags {
            writer.bool(false);
        }
    }

    /// The reply, and the data that follow it.
    pub(crate) fn finish(self) -> Reply {
        let (writer, status, data) = self.end();
        Reply { record: writer.into_bytes(), data, status }
    }

    /// The writer with the reply's mark, the status, and the data that follow.
    #[inline]
    pub(crate) fn end(mut self) -> (Writer, Status, Option<Data>) {
        self.writer.end_record(self.start, self.data.as_ref().map_or(0, Data::len));
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

    /// Patches the mark of the record that starts at `start`; `data_bytes` bytes of data and their padding follow it.
    pub(crate) fn end_record(&mut self, start: usize, data_bytes: usize) {
        let len = self.len() - start - record::MARK_BYTES + data_bytes + padding(data_bytes);
        self.patch_u32(start, record::mark(len));
    }

    /// `fattr3`.
    pub(crate) fn attributes(&mut self, attributes: &Attributes) {
        let mut bytes = [0; ATTRIBUTES_BYTES];
        let narrow = [
            (0, kind_code(attributes.kind)),
            (4, attributes.mode),
            (8, attributes.links),
            (12, attributes.uid),
            (16, attributes.gid),
            (36, attributes.device_major),
            (40, attributes.device_minor),
        ];
        for (at, value) in narrow {
            bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        let wide = [
            (20, attributes.size),
            (28, attributes.used),
            (44, attributes.fsid),
            (52, attributes.fileid),
            (60, time_words(attributes.atime)),
            (68, time_words(attributes.mtime)),
            (76, time_words(attributes.ctime)),
        ];
        for (at, value) in wide {
            bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
        }
        self.raw(&bytes);
    }

    /// `post_op_attr`.
    pub(crate) fn post_op(&mut self, attributes: Option<&Attributes>) {
        self.bool(attributes.is_some());
        if let Some(attributes) = attributes {
            self.attributes(attributes);
        }
    }

    fn pre_op(&mut self, before: Option<&WccAttributes>) {
        self.bool(before.is_some());
        if let Some(before) = before {
            self.u64(before.size);
            self.u64(time_words(before.mtime));
            self.u64(time_words(before.ctime));
        }
    }

    /// `wcc_data`.
    pub(crate) fn consistency(&mut self, consistency: &Consistency) {
        self.pre_op(consistency.before.as_ref());
        self.post_op(consistency.after.as_ref());
    }

    /// `post_op_fh3` with a handle.
    pub(crate) fn post_op_handle(&mut self, handle: &[u8]) {
        self.bool(true);
        self.opaque(handle);
    }
}

fn kind_code(kind: Kind) -> u32 {
    match kind {
        Kind::Regular => 1,
        Kind::Directory => 2,
        Kind::BlockDevice => 3,
        Kind::CharDevice => 4,
        Kind::Symlink => 5,
        Kind::Socket => 6,
        Kind::Fifo => 7,
    }
}

/// `nfstime3`: 32 bits of seconds (larger values wrap, as in other servers), 32 of nanoseconds.
fn time_words(time: Timestamp) -> u64 {
    u64::from(time.seconds as u32) << 32 | u64::from(time.nanos)
}
