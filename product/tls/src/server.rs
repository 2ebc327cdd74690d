//! The identity that a server shows in handshakes, and its connections with TLS.
//!
//! Owns: the identity in force, the list of connections.
//! Does not own: reading identities (`identity`), the connections' bytes (`machine`).
//! Invariants: a new identity acts from the next handshake on. A connection is in the list from the end of its handshake
//! to its own end.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rustls::{ServerConfig, ServerConnection};

use crate::identity::{BadIdentity, TlsIdentity};

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
    settings: RwLock<Arc<ServerConfig>>,
    on_failed: OnFailed,
    secured: Mutex<Secured>,
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
        let settings = RwLock::new(Arc::new(identity.settings()?));
        Ok(Arc::new(Self { settings, on_failed: Box::new(on_failed), secured: Mutex::default() }))
    }

    /// Shows this identity from the next handshake on.
    ///
    /// # Errors
    /// The identity is not valid; the old one stays.
    pub fn renew(&self, identity: &TlsIdentity) -> Result<(), BadIdentity> {
        let settings = Arc::new(identity.settings()?);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
        Ok(())
    }

    /// The connections with TLS.
    pub fn secured(&self) -> Vec<SecuredPeer> {
        self.lock().peers.values().cloned().collect()
    }

    pub(crate) fn session(&self) -> Result<ServerConnection, rustls::Error> {
        let settings = Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner));
        ServerConnection::new(settings)
    }

    pub(crate) fn failed(&self, address: IpAddr, reason: &str) {
        (self.on_failed)(address, reason);
    }

    pub(crate) fn add(self: &Arc<Self>, peer: SecuredPeer) -> ListedPeer {
        let mut secured = self.lock();
        let number = secured.next;
        secured.next += 1;
        secured.peers.insert(number, peer);
        ListedPeer { server: Arc::clone(self), number }
    }

    fn lock(&self) -> MutexGuard<'_, Secured> {
        self.secured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place in the list, until its drop.
pub(crate) struct ListedPeer {
    server: Arc<TlsServer>,
    number: u64,
}

impl Drop for ListedPeer {
    fn drop(&mut self) {
        self.server.lock().peers.remove(&self.number);
    }
}
