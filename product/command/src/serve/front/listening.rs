//! Listening for NFS clients.
//!
//! Owns: the limits of connections, the reports of refused ones, the socket in the service manager's store.
//! Does not own: connections (the world), calls (the protocol), the store.
//! Invariants: limits follow the knobs at once. Refusals are not reported more often than a person can read. A stop
//! takes the socket out of the store before it refuses connections.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use afflux_engine::{Engine, Nanos, lock};
use afflux_linux_device::LinuxPlatform;
use afflux_linux_server::{
    Bound, DescriptorStore, ListenError, Listener, RefusedConnection, ServeLimits, connections_max,
};
use afflux_nfs::NfsKnob;
use tracing::{info, warn};

use crate::processes;
use afflux_report::failure::{Failure, Outcome};

/// Shortest time between two reports of refused connections.
const REFUSALS_SAID_EVERY: Duration = Duration::from_secs(10);

/// Time that a client's bytes may stay unread for want of quota before the server resets the connection. Clients give
/// up after a minute, impatient ones earlier.
const UNREAD_NS: u64 = 15 * Nanos::SECOND;

/// The name of the socket in the service manager's store.
const IN_STORE: &str = "listen";

/// The socket at this address: the one that the service manager has of an earlier server, if it may be used and is the
/// right one, or a new one. Others leave the store.
pub(crate) fn bound(listen: SocketAddr, store: &mut DescriptorStore, is_persistent: bool) -> Outcome<Listener> {
    let passed = store.take(IN_STORE);
    let (count, mut taken) = (passed.len(), None);
    for socket in passed.into_iter().filter(|_| is_persistent) {
        match Listener::taken_over(socket, listen) {
            Ok(listener) => taken = Some(listener),
            Err(error) => warn!("{error}; it is made anew"),
        }
    }
    if count > usize::from(taken.is_some()) {
        forget();
    }
    taken.map_or_else(|| Listener::tcp_bound(listen), Ok).map_err(|error| cannot_listen(listen, &error))
}

/// Has the service manager store the socket: clients of a killed server wait for the next one.
pub(crate) fn keep(listener: &Listener) {
    if let Err(error) = DescriptorStore::put(IN_STORE, listener.descriptor()) {
        warn!("systemd cannot keep the socket: {error}");
    }
}

/// Has the service manager close the socket.
pub(crate) fn forget() {
    if let Err(error) = DescriptorStore::remove(IN_STORE) {
        warn!("systemd keeps the socket: {error}");
    }
}

/// The current limits of the server, from the knobs in force at the call.
pub(crate) fn limits(engine: &Arc<Engine<LinuxPlatform>>) -> impl Fn() -> ServeLimits + Send + Sync + 'static {
    let (engine, connections_max) = (Arc::clone(engine), connections_max());
    move || {
        let knob = |knob| engine.settings().get(knob);
        ServeLimits {
            connections_max,
            peer_connections_max: knob(NfsKnob::PeerConnections) as usize,
            idle_ns: engine.settings().ns(NfsKnob::IdleCentisecs),
            request_bytes_max: knob(NfsKnob::RequestBytes),
            unread_ns: UNREAD_NS,
        }
    }
}

/// Reports refused connections and the limit that refused them, but not more often than a person can read.
pub(crate) fn report_refused() -> impl Fn(&RefusedConnection) + Send + Sync + 'static {
    let last: Mutex<Option<Instant>> = Mutex::new(None);
    move |refused| {
        let mut last = lock(&last);
        if last.is_none_or(|last| last.elapsed() >= REFUSALS_SAID_EVERY) {
            *last = Some(Instant::now());
            let advice = match refused.bound {
                Bound::OfParty(_) => "see the knob nfs_peer_connections_max",
                Bound::OfAll(_) => "no knob raises this",
            };
            info!("{refused} ({advice}; counted in `afflux stat`)");
        }
    }
}

/// The error of a server that cannot listen on this address.
pub(crate) fn cannot_listen(listen: SocketAddr, error: &ListenError) -> Failure {
    match error {
        ListenError::InUse { .. } => processes::cannot_listen("--listen", listen, &ErrorKind::AddrInUse.into()),
        ListenError::Host { source, .. } => processes::cannot_listen("--listen", listen, source),
        other => Failure::failed(other),
    }
}
