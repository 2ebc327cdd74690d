//! What all connections share.
//!
//! Owns: the reply cache, the list of mounts, the sum of the calls counted.
//! Does not own: files (the volume), sockets (the world), what happens on one connection.
//! Invariants: nothing here grows without a bound, and nothing is locked while a call waits.

use std::net::IpAddr;
use std::sync::Arc;

use volume::{Platform, Volume};

use crate::calls::{Calls, Event};
use crate::connection::Connection;
use crate::mount::Mounts;
use crate::reply_cache::ReplyCache;

/// An NFSv3 and MOUNT server over one volume.
pub struct Server<P: Platform> {
    pub(crate) volume: Arc<Volume<P>>,
    pub(crate) mounts: Mounts,
    pub(crate) replies: ReplyCache,
    pub(crate) calls: Calls,
}

impl<P: Platform> Server<P> {
    /// A server without connections.
    pub fn new(volume: Arc<Volume<P>>) -> Arc<Self> {
        Arc::new(Self { volume, mounts: Mounts::default(), replies: ReplyCache::default(), calls: Calls::new() })
    }

    /// The server's side of a new connection from `peer`. Dropping it drops its calls in progress,
    /// except those that change names or attributes, which are run to their end.
    pub fn connection(self: &Arc<Self>, peer: IpAddr) -> Connection<P> {
        self.calls.count(Event::Connected);
        // One client, whichever kind of address it comes by.
        Connection::new(Arc::clone(self), peer.to_canonical())
    }

    /// How many calls of each procedure there were, how many were refused and why, and how many
    /// ended with each status other than OK: name and count, in an order that does not change.
    /// A connection's calls are in it once the poll that counted them is over.
    pub fn calls(&self) -> Vec<(&'static str, u64)> {
        self.calls.rows()
    }
}
