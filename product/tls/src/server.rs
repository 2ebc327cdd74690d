//! The identity that a server shows in handshakes, and its connections with TLS.
//!
//! Owns: the identity in force and its end, the list of connections.
//! Does not own: reading identities (`identity`), the connections' bytes (`machine`), the rule for handshakes
//! (`permits`).
//! Invariants: a new identity acts from the next handshake on. A connection is in the list from the end of its
//! handshake to its own end.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::{ServerConfig, ServerConnection};

use crate::identity::{BadIdentity, Certified, TlsIdentity};
use crate::permits::HandshakePermits;

/// Learns of the handshakes that failed: the client's address, and the reason. It must not block.
type OnFailed = Box<dyn Fn(IpAddr, &str) + Send + Sync>;

/// A connection with TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecuredPeer {
    /// The client's address.
    pub address: IpAddr,
    /// The name in the client's certificate, if clients show one.
    pub name: Option<String>,
}

/// A server's side of TLS, for all its connections.
pub struct TlsServer {
    in_force: RwLock<InForce>,
    pub(crate) permits: HandshakePermits,
    on_failed: OnFailed,
    secured: Mutex<Secured>,
}

/// The identity in force.
struct InForce {
    settings: Arc<ServerConfig>,
    /// When the first of its certificates expires.
    expires: Option<SystemTime>,
}

impl From<Certified> for InForce {
    fn from(Certified { settings, expires_s }: Certified) -> Self {
        let expires = expires_s.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        Self { settings: Arc::new(settings), expires }
    }
}

#[derive(Default)]
struct Secured {
    next: u64,
    peers: BTreeMap<u64, SecuredPeer>,
}

impl TlsServer {
    /// Shows this identity. `on_failed` learns of handshakes that failed.
    ///
    /// # Errors
    /// The identity is not valid.
    pub fn new(
        identity: &TlsIdentity,
        on_failed: impl Fn(IpAddr, &str) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, BadIdentity> {
        let (in_force, on_failed) = (RwLock::new(identity.certified()?.into()), Box::new(on_failed));
        Ok(Arc::new(Self { in_force, on_failed, permits: HandshakePermits::default(), secured: Mutex::default() }))
    }

    /// Shows this identity from the next handshake on.
    ///
    /// # Errors
    /// The identity is not valid; the old one stays.
    pub fn renew(&self, identity: &TlsIdentity) -> Result<(), BadIdentity> {
        let renewed = identity.certified()?.into();
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(())
    }

    /// When the first certificate of the identity in force expires, if its end can be read.
    pub fn expires(&self) -> Option<SystemTime> {
        self.in_force.read().unwrap_or_else(PoisonError::into_inner).expires
    }

    /// Handshakes have new time of the processor: to be called once a second.
    pub fn refill(&self) {
        self.permits.refill();
    }

    /// The connections with TLS.
    pub fn secured(&self) -> Vec<SecuredPeer> {
        self.lock().peers.values().cloned().collect()
    }

    pub(crate) fn session(&self) -> Result<ServerConnection, rustls::Error> {
        let settings = Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner).settings);
        ServerConnection::new(settings)
    }

    pub(crate) fn failed(&self, address: IpAddr, reason: &str) {
        (self.on_failed)(address, reason);
    }

    pub(crate) fn add(self: &Arc<Self>, peer: SecuredPeer) -> ListedPeer {
        let mut secured = self.lock();
        let id = secured.next;
        secured.next += 1;
        secured.peers.insert(id, peer);
        ListedPeer { server: Arc::clone(self), id }
    }

    fn lock(&self) -> MutexGuard<'_, Secured> {
        self.secured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's entry in the list, until its drop.
pub(crate) struct ListedPeer {
    server: Arc<TlsServer>,
    id: u64,
}

impl Drop for ListedPeer {
    fn drop(&mut self) {
        self.server.lock().peers.remove(&self.id);
    }
}
