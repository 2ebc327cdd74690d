//! The server under test.
//!
//! Owns: its addresses and exports, new connections to it.
//! Does not own: starting a server.
//! Invariants: a call waits at most for [`PATIENCE`].

use std::net::SocketAddr;
use std::time::Duration;

use super::failure::Failure;
use crate::connection::{Client, Error};

/// The longest wait for a reply.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The place of the server.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address of NFS.
    pub nfs: SocketAddr,
    /// The address of MOUNT.
    pub mount: SocketAddr,
    /// The path to mount.
    pub export: String,
    /// Further exports that some checks need.
    pub more: More,
}

/// Exports for some checks; a check without its export is left out.
#[derive(Clone, Debug, Default)]
pub struct More {
    /// A read-only export on another file system, with a file `file` and a directory `directory` in it.
    pub read_only: Option<String>,
    /// An export of some megabytes on its own file system, with the files of [`make_links`](super::make_links) in it.
    pub small: Option<String>,
}

impl Target {
    /// Mounts the export.
    pub fn reach(&self) -> Result<(), Failure> {
        let root = connect(self.mount)?.mount(&self.export)?;
        connect(self.nfs)?.getattr(&root)?;
        Ok(())
    }
}

pub(super) fn connect(address: SocketAddr) -> Result<Client, Error> {
    let mut client = Client::connect(address)?;
    client.set_timeout(Some(PATIENCE))?;
    Ok(client)
}
