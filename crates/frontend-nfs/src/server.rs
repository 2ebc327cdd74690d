//! What all connections share.
//!
//! Owns: which peers are answered, the reply cache, the list of mounts, what each client holds, the sum of the calls
//! counted.
//! Does not own: files (the volume), sockets (the world), what happens on one connection.
//! Invariants: nothing here grows without a bound, and nothing is locked while a call waits.

use std::sync::Arc;

use frontend::{Peer, Recording};
use volume::{Client, KnobId, Platform, Volume, WhichKnob};

use crate::admission::Admission;
use crate::callers::Callers;
use crate::calls::{Calls, Event};
use crate::client_share::Clients;
use crate::connection::Connection;
use crate::knobs::NfsKnob;
use crate::mount::Mounts;
use crate::reply_cache::ReplyCache;

/// An NFSv3 and MOUNT server over one volume.
pub struct Server<P: Platform> {
    pub(crate) volume: Arc<Volume<P>>,
    admission: Admission,
    pub(crate) mounts: Mounts,
    pub(crate) replies: ReplyCache,
    pub(crate) calls: Calls,
    pub(crate) clients: Clients,
    inflight_bytes: KnobId,
    client_bytes: KnobId,
    recording: Arc<Recording>,
}

impl<P: Platform> Server<P> {
    /// A server without connections, which answers the peers that `admission` says.
    ///
    /// # Panics
    /// When the settings of the volume's engine do not have the front end's [`KNOBS`](crate::KNOBS).
    pub fn new(volume: Arc<Volume<P>>, admission: Admission) -> Arc<Self> {
        let inflight_bytes = NfsKnob::InflightBytes.id(volume.engine().settings());
        Arc::new(Self {
            admission,
            mounts: Mounts::default(),
            replies: ReplyCache::default(),
            calls: Calls::new(),
            clients: Clients::default(),
            inflight_bytes,
            client_bytes: NfsKnob::ClientBytes.id(volume.engine().settings()),
            recording: Arc::default(),
            volume,
        })
    }

    /// Where READ, WRITE and COMMIT calls are noted while somebody reads it.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// Most request and reply bytes in progress on one connection.
    pub(crate) fn inflight_bytes_max(&self) -> u64 {
        self.volume.engine().settings().get(self.inflight_bytes)
    }

    /// Most request and reply bytes in progress on all connections of one client.
    pub(crate) fn client_bytes_max(&self) -> u64 {
        self.volume.engine().settings().get(self.client_bytes)
    }

    /// The server's side of a new connection from `peer`. Dropping it drops its calls in progress,
    /// except those that change names or attributes, which are run to their end.
    /// A peer that is not admitted gets a connection too: it is told with each call that it may not.
    pub fn connection(self: &Arc<Self>, peer: impl Into<Peer>) -> Connection<P> {
        let peer = peer.into();
        self.calls.count(Event::Connected);
        // One client, whichever kind of address it comes by.
        let address = peer.address.to_canonical();
        let client = Client::named(&address.to_string());
        let callers = Callers::new(self.admission.standing(&peer), self.admission.anonymous(), client);
        Connection::new(Arc::clone(self), address, callers)
    }

    /// How many calls of each procedure there were, how many were refused and why, and how many
    /// ended with each status other than OK: name and count, in an order that does not change.
    /// A connection's calls are in it once the poll that counted them is over.
    pub fn calls(&self) -> Vec<(&'static str, u64)> {
        self.calls.rows()
    }
}
