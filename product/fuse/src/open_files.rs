//! Open files and directories.
//!
//! Owns: the number of each, its object, and the client that pays for its reads and writes.
//! Does not own: the objects (the volume).
//! Invariants: an open file holds its object, so all calls by its number go on after the object's last name. It is
//! closed by the kernel alone, and lets go of the object then.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use afflux_volume::{Client, Held, Platform};

/// The meaning of an open file's number.
pub(crate) enum Opened<P: Platform> {
    /// The file.
    File(Arc<OpenFile<P>>),
    /// A file of an earlier server that had no name any more: it ended with that server.
    Lost,
}

/// An open file.
pub(crate) struct OpenFile<P: Platform> {
    pub(crate) inode: Held<P>,
    /// The node that was opened.
    pub(crate) node: u64,
    /// The process that opened it.
    pub(crate) client: Client,
    /// Bytes that it was told are accepted may be lost, and its next sync has to tell.
    pub(crate) owes_error: AtomicBool,
}
