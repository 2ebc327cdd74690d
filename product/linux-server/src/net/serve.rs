//! Serving: connections come in, each gets a protocol machine and a reactor.
//!
//! Owns: the acceptors, the slot of a new connection.
//! Does not own: the service and its figures (`service`), a connection's bytes (`connection`), which connection is
//! evicted (`crowd`), the order of those that wait (`crowd`), protocols.
//! Invariants: a new connection waits for the end of the connection that is evicted for it, and for no peer. All that
//! came are accepted first; then the party with the fewest connections gets a slot first.

use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use afflux_engine::{Nanos, Platform};
use afflux_frontend::{Party, Peer, ProtocolMachine};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use super::connection::SocketConnection;
use super::crowd::{Choice, RefusedConnection, ServeLimits};
use super::listener::Listener;
use super::origin::Origins;
use super::service::{Reason, ServeHandle, ServiceState};
use super::socket::connection_waits;
use crate::net::crowd::PartyQueue;
use afflux_linux_device::shortage::close_spare;
use afflux_linux_device::{LinuxPlatform, clock};

/// Pause before accepting again when the host has no descriptor or memory for a connection.
const SHORTAGE_PAUSE_NS: u64 = 100 * Nanos::MILLISECOND;
/// Connections that are accepted before other tasks of the reactor run, ...
const ACCEPTED_AT_ONCE: usize = 32;
/// ... and before slots are sought, while more come.
const ACCEPTED_MAX: usize = 1_024;
/// The interval of the search for silent connections. After one interval of silence a connection gives its unneeded
/// buffer back.
const LOOK_NS: u64 = Nanos::SECOND;

/// Accepted connections that wait for a slot.
type WaitingPeers = PartyQueue<(OwnedFd, Peer)>;

/// Whether this kernel reports the users of local peers' sockets, and which addresses are this host's; the error is the
/// reason if it does not.
pub fn peers_are_identified() -> Result<(), std::io::Error> {
    Ok(Origins::new().check_known()?)
}

/// Accepts connections from `listeners` and gives each a machine from `factory`. The factory is called on the
/// connection's reactor and must not block. `on_refused` gets each connection that has no slot, and must not block
/// either.
pub fn serve(
    platform: &LinuxPlatform,
    listeners: Vec<Listener>,
    limits: impl Fn() -> ServeLimits + Send + Sync + 'static,
    on_refused: impl Fn(&RefusedConnection) + Send + Sync + 'static,
    factory: impl Fn(Peer) -> Box<dyn ProtocolMachine> + Send + Sync + 'static,
) -> ServeHandle {
    let service = ServiceState::new(platform, limits, on_refused, factory);
    for listener in listeners {
        // Between a wait and the accept a peer may have gone.
        let _ = rustix::io::ioctl_fionbio(&listener.fd, true);
        let service = Arc::clone(&service);
        platform.reactor(0).run(move |reactor| reactor.add_task("accept", Box::pin(accept_all(service, listener))));
    }
    let looking = Arc::clone(&service);
    platform.reactor(0).run(move |reactor| reactor.add_task("silent connections", Box::pin(watch_idle(looking))));
    ServeHandle { service }
}

impl ServiceState {
    /// Serves an accepted connection if there is a slot for it. Else it waits.
    fn receive(self: &Arc<Self>, socket: OwnedFd, waiting: &mut WaitingPeers) {
        // A peer that is gone already has no address.
        let Ok(peer) = self.identify(&socket) else { return };
        if !waiting.has(peer.party()) && self.choose(peer.party()) == Choice::Serve {
            return self.assign(socket, peer);
        }
        if let Some(loser) = waiting.add(peer.party(), (socket, peer)) {
            self.refuse(loser);
        }
    }

    /// Serves the waiting connections for which there are slots, and requests slots for others.
    fn admit(self: &Arc<Self>, waiting: &mut WaitingPeers) {
        let mut has_changed = true;
        while has_changed && !waiting.is_empty() {
            has_changed = false;
            let members = self.members();
            let connections = |party: Party| members.iter().filter(|member| member.party == party).count();
            for party in waiting.parties(connections) {
                match self.choose(party) {
                    Choice::Wait => {}
                    Choice::Evict(number) => self.request_close(number, Reason::Evicted),
                    Choice::Refuse => {
                        // Before its peer sees the end.
                        self.refuse(party);
                        drop(waiting.take(party));
                        has_changed = true;
                    }
                    Choice::Serve => {
                        if let Some((socket, peer)) = waiting.take(party) {
                            self.assign(socket, peer);
                            // With one connection more, another party may come first.
                            has_changed = true;
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Gives an accepted connection to a reactor.
    fn assign(self: &Arc<Self>, socket: OwnedFd, peer: Peer) {
        let assign = self.add(&peer);
        let reactor = Arc::clone(assign.reactor());
        reactor.run(move |reactor| {
            let machine = assign.machine(peer);
            reactor.add_task("connection", Box::pin(SocketConnection::new(socket, machine, assign)));
        });
    }
}

/// Accepts all connections that have come, then seeks slots. So no connection waits for the slot of an earlier one.
async fn accept_all(service: Arc<ServiceState>, listener: Listener) {
    let (mut waiting, mut accepted) = (PartyQueue::new(), 0);
    while service.is_accepting() {
        match accept_some(&service, &listener, &mut waiting) {
            Accepted::All => accepted = 0,
            Accepted::Some if accepted < ACCEPTED_MAX => {
                accepted += ACCEPTED_AT_ONCE;
                yield_once().await;
                continue;
            }
            // Connections that come all the time do not delay the others' slots.
            Accepted::Some => accepted = 0,
            Accepted::Short => {
                // On a thread of its own, since the host may be long in closing. Without a thread the next try does it.
                drop(std::thread::Builder::new().name("afflux-spare".into()).spawn(close_spare));
                service.admit(&mut waiting);
                service.platform.sleep_until(clock::monotonic().after(SHORTAGE_PAUSE_NS)).await;
            }
        }
        let mut waits = connection_waits(&listener.fd);
        poll_fn(|cx| {
            // Before the search for slots: a connection that ends after it wakes this task.
            service.keep_other(cx.waker());
            if !service.is_accepting() {
                return Poll::Ready(());
            }
            service.admit(&mut waiting);
            waits.poll(cx).map(|_| ())
        })
        .await;
    }
}

/// The connections that an acceptor has taken.
enum Accepted {
    /// All that had come.
    All,
    /// As many as it takes at once.
    Some,
    /// The host has no descriptor or memory for more.
    Short,
}

fn accept_some(service: &Arc<ServiceState>, listener: &Listener, waiting: &mut WaitingPeers) -> Accepted {
    for _ in 0..ACCEPTED_AT_ONCE {
        match accept_with(&listener.fd, SocketFlags::CLOEXEC) {
            Ok(socket) if !listener.has_client(&socket) => {}
            Ok(socket) => service.receive(socket, waiting),
            Err(Errno::AGAIN) => return Accepted::All,
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => return Accepted::Short,
            // Any other error concerns one peer, which has gone meanwhile.
            Err(_) => {}
        }
    }
    Accepted::Some
}

/// Lets other tasks of the reactor run.
fn yield_once() -> impl Future<Output = ()> {
    let mut is_over = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

async fn watch_idle(service: Arc<ServiceState>) {
    while service.is_accepting() {
        service.close_idle();
        service.reset_unread();
        service.reclaim_memory();
        let mut time = pin!(service.platform.sleep_until(clock::monotonic().after(LOOK_NS)));
        poll_fn(|cx| {
            service.keep_other(cx.waker());
            if !service.is_accepting() {
                return Poll::Ready(());
            }
            // Without connections there is nothing to check, and no timer wakes an idle machine. The last connection
            // may have memory to give back.
            match service.connections.load(Ordering::SeqCst) {
                0 if !service.quota.has_slack() => Poll::Pending,
                _ => time.as_mut().poll(cx),
            }
        })
        .await;
    }
}
