//! The state that all connections share.
//!
//! Owns: the rules of admission, the reply cache, the list of mounts, each client's sum of memory, the sum of the calls
//! counted, the number of spare workers.
//! Does not own: files (the volume), sockets (the world), the state of one connection.
//! Invariants: everything here is bounded, and no lock is held while a call waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use afflux_frontend::{
    ByteBounds, CallJournal, CountedRow, EntryForm, EntryOwner, HostUsers, Parties, Peer, PersistedWords, Recording,
};
use afflux_volume::{Client, KnobId, Platform, Volume, WhichKnob};

use crate::call_gate::CallGate;
use crate::calls::Calls;
use crate::limits::NfsKnob;
use crate::v3::reply_cache::ReplyCache;
use crate::v3::side_protocols::Mounts;
use crate::v4::LEASE_NS;
use crate::v4::Service;
use crate::v4::client_info::{ClientId, ClientInfo, ClientStateInfo};
use crate::v4::service::ClientMemory;
use crate::wire::admission::{AdmittedPeers, Callers, CertifiedUser, PeerRights};
use crate::workers::Spares;

/// Connections of one party that may be full at the same time. More connections divide the same memory: a client that
/// opens many must not take the memory of others.
const FULL_CONNECTIONS: u64 = 4;
/// The form of a persisted reply of version 3: the value is the wall clock's time at the call's beginning. A change's
/// longest reply, CREATE's, has 308 bytes.
const REPLY_FORM: EntryForm = EntryForm {
    words: 64,
    age: |_, begun_ns| begun_ns,
    owner: |[_, _, owner]| EntryOwner { party: owner >> 32, user: owner & u64::from(u32::MAX), slot: None },
};

/// Which calls go through TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsUse {
    /// Those of clients that ask for it.
    Offered,
    /// All. Before TLS, a client gets an answer to nothing but its question for it.
    Required,
    /// All. A client of another machine whose certificate names a user has the rights of that user of this host,
    /// whatever its calls claim.
    CertificateUsers,
}

/// An NFSv3 and MOUNT server over one volume.
pub struct Server<P: Platform> {
    pub(crate) volume: Arc<Volume<P>>,
    admission: RwLock<AdmittedPeers>,
    /// Number of changes of `admission`.
    admission_changes: AtomicU64,
    pub(crate) mounts: Mounts,
    /// Holds calls back while the clients of an earlier server come back.
    pub(crate) gate: Arc<CallGate>,
    /// Version 4, if it is offered.
    pub(crate) version_4: OnceLock<Arc<Service<P>>>,
    /// Clients may use TLS, or must.
    tls: OnceLock<TlsUse>,
    pub(crate) replies: ReplyCache,
    /// Replies for a later server, if it has the memory.
    pub(crate) persisted_replies: Option<Arc<CallJournal>>,
    pub(crate) calls: Calls,
    pub(crate) parties: Parties,
    pub(crate) spare_workers: Arc<Spares>,
    inflight_bytes: KnobId,
    recording: Arc<Recording>,
}

impl<P: Platform> Server<P> {
    /// A server without connections, which answers the peers that `admission` allows.
    ///
    /// # Panics
    /// When the settings of the volume's engine do not have the front end's [`KNOBS`](crate::KNOBS).
    pub fn new(volume: Arc<Volume<P>>, admission: AdmittedPeers) -> Arc<Self> {
        Self::keeping(volume, admission, None)
    }

    /// [`Server::new`], with memory that a later server finds. A client that repeats a call after a kill gets the
    /// call's first reply from there, if the call changes something.
    ///
    /// # Panics
    /// As [`Server::new`].
    pub fn keeping(volume: Arc<Volume<P>>, admission: AdmittedPeers, words: Option<PersistedWords>) -> Arc<Self> {
        let journal = |words: PersistedWords| {
            let all = 0..(*words).as_ref().len();
            CallJournal::new(words, all, REPLY_FORM)
        };
        let inflight_bytes = NfsKnob::InflightBytes.id(volume.engine().settings());
        Arc::new(Self {
            admission: RwLock::new(admission),
            admission_changes: AtomicU64::new(0),
            mounts: Mounts::default(),
            gate: Arc::default(),
            version_4: OnceLock::new(),
            tls: OnceLock::new(),
            replies: ReplyCache::new(volume.hash_key()),
            persisted_replies: words.map(journal),
            calls: Calls::new(),
            parties: Parties::default(),
            spare_workers: Arc::default(),
            inflight_bytes,
            recording: Arc::default(),
            volume,
        })
    }

    /// Offers versions 4.1 and 4.2 beside version 3, to the clients inherited from an earlier server, too. To be called
    /// once, before the first connection. No call of any version is answered before these clients have their open files
    /// again ([`Server::recovered`]).
    pub fn offer_version_4(&self, memory: ClientMemory) {
        let host_users = self.host_users();
        self.version_4.get_or_init(|| Service::begin(&self.volume, memory, &self.gate, &self.recording, host_users));
    }

    /// The users that the host knows, if calls are carried out as some of them.
    pub(crate) fn host_users(&self) -> Option<Arc<dyn HostUsers>> {
        self.admission.read().unwrap_or_else(PoisonError::into_inner).host_users()
    }

    /// Lets clients of version 4 have delegations for reading. Such a client reads a file from its own cache without
    /// asking, until the server recalls the delegation before another's change. A change waits for the return, a lease
    /// at most. To be called before [`Server::offer_version_4`], and only if every change of the volume's files comes
    /// through this process.
    pub fn offer_delegations(&self) {
        self.volume.delegations().turn_on(LEASE_NS);
    }

    /// Waits until the clients of an earlier server have their open files and locks again. Another front end over the
    /// same volume begins after that: its callers must respect the locks of clients.
    pub fn recovered(&self) -> impl Future<Output = ()> + Send + '_ {
        self.gate.opened()
    }

    /// Lets clients that ask for TLS begin it. To be called once, before the first connection, by a world that knows
    /// TLS.
    pub fn offer_tls(&self, how: TlsUse) {
        self.tls.get_or_init(|| how);
    }

    pub(crate) fn tls(&self) -> Option<TlsUse> {
        self.tls.get().copied()
    }

    /// Numbers of clients, sessions and opens of version 4; none if it is not offered.
    pub fn held_by_version_4(&self) -> Option<(usize, usize, usize)> {
        self.version_4.get().map(|service| service.held())
    }

    /// The number of an earlier server's clients that others wait for.
    pub fn missing_clients(&self) -> usize {
        self.version_4.get().map_or(0, |service| service.missing())
    }

    /// The clients of version 4, by number.
    pub fn clients(&self) -> Vec<ClientInfo> {
        self.version_4.get().map(|service| service.clients()).unwrap_or_default()
    }

    /// The opens and locks of a client of version 4: the first `most`, and the number of the others.
    pub fn states_of(&self, client: ClientId, most: usize) -> (Vec<ClientStateInfo<P>>, usize) {
        self.version_4.get().map(|service| service.states_of(client, most)).unwrap_or_default()
    }

    /// Ends a client of version 4, as if it were dead. False if there is none.
    pub fn try_end_client(&self, client: ClientId) -> bool {
        self.version_4.get().is_some_and(|service| service.try_end_client(client.0))
    }

    /// From now on, answers the peers that `admission` allows; open connections follow with their next call. The
    /// callers of calls that have begun stay the same.
    pub fn admit(&self, admission: AdmittedPeers) {
        *self.admission.write().unwrap_or_else(PoisonError::into_inner) = admission;
        self.admission_changes.fetch_add(1, Ordering::Release);
    }

    /// Number of changes of the admission. A connection whose callers have another number asks for them again.
    pub(crate) fn admission_changes(&self) -> u64 {
        self.admission_changes.load(Ordering::Acquire)
    }

    /// Whether any call of a peer is answered under the current admission, after TLS if that is required.
    pub(crate) fn is_admitted(&self, peer: &Peer) -> bool {
        let admission = self.admission.read().unwrap_or_else(PoisonError::into_inner);
        admission.standing(peer) != PeerRights::Refused
    }

    /// The callers of a peer under the current admission. None is answered before TLS if that is required. The user
    /// that a certificate names counts more than a claim.
    pub(crate) fn callers(&self, peer: &Peer, is_secured: bool, certified: Option<CertifiedUser>) -> Callers {
        // The canonical form makes one client of both kinds of address.
        let client = Client::named(&peer.address.to_canonical().to_string());
        let admission = self.admission.read().unwrap_or_else(PoisonError::into_inner);
        let is_answered = is_secured || matches!(self.tls(), None | Some(TlsUse::Offered));
        let standing = if is_answered { admission.standing(peer) } else { PeerRights::Refused };
        let standing = match certified {
            Some(user) => standing.certified(user),
            None => standing,
        };
        Callers::new(standing, admission.anonymous(), admission.host_users(), client)
    }

    /// The recording of READ, WRITE and COMMIT calls, active while somebody reads it.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// Most request and reply bytes in progress on one connection, and on all connections of one party.
    pub(crate) fn byte_bounds(&self) -> ByteBounds {
        let connection_bytes = self.volume.engine().settings().get(self.inflight_bytes);
        ByteBounds { connection_bytes, party_bytes: connection_bytes * FULL_CONNECTIONS }
    }

    /// The rows count calls by procedure, refusals by reason, and calls by status other than OK. A connection adds its
    /// calls when the poll that counted them is over.
    pub fn calls(&self) -> Vec<CountedRow> {
        let mut rows = self.calls.rows();
        rows.extend(self.version_4.get().into_iter().flat_map(|service| service.counts.rows()));
        rows
    }
}
