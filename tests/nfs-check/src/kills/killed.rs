//! The seam between a round and the part that kills its server.
//!
//! Owns: the address of a server, the facts of a kill.
//! Does not own: the kill (`processes`, or the caller), the steps around it (`round`).
//! Invariants: at the end of a kill a successor has been started.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The address of a server, and its export.
#[derive(Clone, Debug)]
pub struct Server {
    /// Of NFS.
    pub nfs: SocketAddr,
    /// Of MOUNT.
    pub mount: SocketAddr,
    /// The export.
    pub path: String,
}

/// A kill. A successor has been started since.
pub(super) struct Killed {
    pub(super) at: Instant,
    /// Time between the end and the start that this program took for its own looks.
    pub(super) aside: Duration,
    /// The files at that time, in order, if they can be seen.
    pub(super) on_disk: Option<Vec<Vec<u8>>>,
}

pub(super) type Kill<'a> = dyn FnMut() -> Result<Killed, Failure> + 'a;
