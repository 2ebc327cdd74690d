//! Open files and directories.
//!
//! Owns: the number of each, its object, and the client that pays for its reads and writes.
//! Does not own: the objects (the volume).
//! Invariants: an open file holds its object, so all calls by its number go on after the object's last name. It is
//! closed by the kernel alone, and lets go of the object then.

use afflux_volume::{Client, Held, Platform};

/// An open file.
pub(crate) struct OpenFile<P: Platform> {
    pub(crate) inode: Held<P>,
    /// The node that was opened.
    pub(crate) node: u64,
    /// The process that opened it.
    pub(crate) client: Client,
}
