//! Open files and directories.
//!
//! Owns: the number of each, its object, and the client that pays for its reads and writes.
//! Does not own: the objects (the volume).
//! Invariants: an open file keeps its object in memory, and is closed by the kernel alone.

use std::sync::Arc;

use afflux_volume::{Client, Inode, Platform};

/// An open file.
pub(crate) struct OpenFile<P: Platform> {
    // An object without a name takes no writes yet (`Stale`): the volume's held objects go in here.
    pub(crate) inode: Arc<Inode<P>>,
    /// The node that was opened.
    pub(crate) node: u64,
    /// The process that opened it.
    pub(crate) client: Client,
}

impl<P: Platform> Clone for OpenFile<P> {
    fn clone(&self) -> Self {
        Self { inode: Arc::clone(&self.inode), node: self.node, client: self.client.clone() }
    }
}
