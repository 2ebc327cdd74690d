//! What all connections share.
//!
//! Owns: which peers are answered, the reply cache, the list of mounts, what each client holds, the sum of the calls
//! counted, how many workers wait for calls.
//! Does not own: files (the volume), sockets (the world), what happens on one connection.
//! Invariants: nothing here grows without a bound, and nothing is locked while a call waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use afflux_frontend::{Peer, Recording};
use afflux_volume::{Client, KnobId, Platform, Volume, WhichKnob};

use crate::admission::Admission;
use crate::callers::Callers;
use crate::calls::{Calls, Event};
use crate::client_share::Clients;
use crate::connection::Connection;
use crate::knobs::NfsKnob;
use crate::mount::Mounts;
use crate::reply_cache::ReplyCache;
use crate::workers::Spares;

/// An NFSv3 and MOUNT server over one volume.
pub struct Server<P: Platform> {
    pub(crate) volume: Arc<Volume<P>>,
    admission: RwLock<Admission>,
    /// How often `admission` was changed.
    admission_changes: AtomicU64,
    pub(crate) mounts: Mounts,
    pub(crate) replies: ReplyCache,
    pub(crate) calls: Calls,
    pub(crate) clients: Clients,
    pub(crate) spare_workers: Arc<Spares>,
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
            admission: RwLock::new(admission),
            admission_changes: AtomicU64::new(0),
            mounts: Mounts::default(),
            replies: ReplyCache::new(volume.hash_key()),
            calls: Calls::new(),
            clients: Clients::default(),
            spare_workers: Arc::default(),
            inflight_bytes,
            client_bytes: NfsKnob::ClientBytes.id(volume.engine().settings()),
            recording: Arc::default(),
            volume,
        })
    }

    /// From now on answers the peers that `admission` says: on connections that are open from their next call on.
    /// Calls that have begun are carried out as they began.
    pub fn admit(&self, admission: Admission) {
        *self.admission.write().unwrap_or_else(PoisonError::into_inner) = admission;
        self.admission_changes.fetch_add(1, Ordering::Release);
    }

    /// How often that was changed: whoever has callers of another count asks for them again.
    pub(crate) fn admission_changes(&self) -> u64 {
        self.admission_changes.load(Ordering::Acquire)
    }

    /// The callers of a peer, as it is answered now.
    pub(crate) fn callers(&self, peer: &Peer) -> Callers {
        // One client, whichever kind of address it comes by.
        let client = Client::named(&peer.address.to_canonical().to_string());
        let admission = self.admission.read().unwrap_or_else(PoisonError::into_inner);
        Callers::new(admission.standing(peer), admission.anonymous(), client)
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
        Connection::new(Arc::clone(self), peer)
    }

    /// How many calls of each procedure there were, how many were refused and why, and how many
    /// ended with each status other than OK: name and count, in an order that does not change.
    /// A connection's calls are in it once the poll that counted them is over.
    pub fn calls(&self) -> Vec<(&'static str, u64)> {
        self.calls.rows()
    }
}
