//! The encoding of file attributes in version 3.
//!
//! Owns: `fattr3`, optional attributes, weak cache consistency data, optional handles.
//! Does not own: the reply around them (`wire::reply`), attributes (the volume).
//! Invariants: each has the length that the protocol gives it.

use afflux_volume::{Attributes, Consistency, Timestamp, WccAttributes};

use crate::status::NfsStatus;
use crate::wire::file_type;
use crate::wire::reply::Draft;
use crate::wire::xdr::Writer;

/// Bytes of `fattr3`.
const ATTRIBUTES_BYTES: usize = 84;
/// Bytes of optional attributes that are present.
pub(crate) const POST_OP_BYTES: usize = 4 + ATTRIBUTES_BYTES;

impl Draft {
    /// Writes the results of a call that failed with nothing to add but absent attributes: `flags` of them.
    pub(crate) fn failed(&mut self, status: NfsStatus, flags: usize) {
        let writer = self.status(status);
        for _ in 0..flags {
            writer.bool(false);
        }
    }
}

impl Writer {
    /// `fattr3`.
    pub(crate) fn attributes(&mut self, attributes: &Attributes) {
        let mut bytes = [0; ATTRIBUTES_BYTES];
        let narrow = [
            (0, file_type(attributes.kind)),
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

/// `nfstime3`: 32 bits of seconds (larger values wrap, as in other servers), 32 of nanoseconds.
fn time_words(time: Timestamp) -> u64 {
    u64::from(time.seconds as u32) << 32 | u64::from(time.nanos)
}
