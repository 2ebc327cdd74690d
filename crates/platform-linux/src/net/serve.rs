//! Serving: connections come in, each gets a protocol machine and a reactor.
//!
//! Owns: the acceptors, the bound on connections, the sums over all of them, the end.
//! Does not own: a connection's bytes (`connection`), protocols.
//! Invariants: at most `connections_max` connections; a new one waits in the kernel for room. Every
//! connection is counted from its accept until its last resource is gone.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use engine::{Nanos, Platform};
use rustix::io::Errno;
use volume::{Machine, Peer};

use super::connection::Connection;
use super::listener::{Listener, accepted};
use super::owner::SocketOwners;
use super::socket::accept;
use crate::clock;
use crate::platform::LinuxPlatform;
use crate::reactor::{Mail, Reactor, Sleep};

/// Connections at once, where the limit on descriptors allows it.
pub const CONNECTIONS_MAX: usize = 1_024;
/// Pause before accepting again when the host has no descriptor or memory for a connection.
const SHORTAGE_PAUSE_NS: u64 = 100 * Nanos::MILLISECOND;

/// What has been served so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServeCounts {
    /// Connections now.
    pub connections: usize,
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Calls received and not yet answered, all connections together.
    pub calls_in_progress: usize,
    /// Connections closed because their peers sent what no protocol machine could read.
    pub protocol_errors: u64,
}

/// Whether this kernel tells whose the socket of a peer on loopback is; why not if it does not.
pub fn peers_are_identified() -> Result<(), std::io::Error> {
    let nowhere = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    // Nothing is connected between these two; a kernel that can tell says just that.
    SocketOwners::new()?.owner(nowhere(0), nowhere(0))?;
    Ok(())
}

/// A running service. Dropping the handle does not end it.
#[derive(Clone)]
pub struct ServeHandle {
    service: Arc<Service>,
}

/// How far the service is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum Phase {
    Serving,
    /// Calls in progress are answered, nothing more is received.
    Finishing,
    /// Everything is dropped.
    Closing,
}

type Factory = Box<dyn Fn(Peer) -> Box<dyn Machine> + Send + Sync>;

struct Service {
    platform: LinuxPlatform,
    factory: Factory,
    connections_max: usize,
    phase: AtomicU8,
    accepting: AtomicBool,
    connections: AtomicUsize,
    accepted: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    calls: AtomicUsize,
    protocol_errors: AtomicU64,
    wakers: Mutex<Wakers>,
    /// Absent where the kernel does not tell. Locked for one question of an acceptor.
    owners: Option<Mutex<SocketOwners>>,
}

#[derive(Default)]
struct Wakers {
    connections: BTreeMap<u64, Waker>,
    /// Acceptors, and whoever waits for the end.
    others: Vec<Waker>,
}

/// Accepts connections from `listeners` and gives each a machine from `factory`, which is called on
/// the connection's reactor and must not block. At most `connections_max` (at least 1) are served at
/// once; more wait to be accepted.
pub fn serve(
    platform: &LinuxPlatform,
    listeners: Vec<Listener>,
    connections_max: usize,
    factory: impl Fn(Peer) -> Box<dyn Machine> + Send + Sync + 'static,
) -> ServeHandle {
    let service = Arc::new(Service {
        platform: platform.clone(),
        factory: Box::new(factory),
        connections_max: connections_max.max(1),
        phase: AtomicU8::new(Phase::Serving as u8),
        accepting: AtomicBool::new(true),
        connections: AtomicUsize::new(0),
        accepted: AtomicU64::new(0),
        bytes_in: AtomicU64::new(0),
        bytes_out: AtomicU64::new(0),
        calls: AtomicUsize::new(0),
        protocol_errors: AtomicU64::new(0),
        wakers: Mutex::default(),
        owners: SocketOwners::new().ok().map(Mutex::new),
    });
    for listener in listeners {
        if !platform.uses_ring() {
            // Between poll(2) and accept a peer may have gone; a ring waits by itself.
            let _ = rustix::io::ioctl_fionbio(&listener.fd, true);
        }
        let service = Arc::clone(&service);
        let start = Mail::Run(Box::new(move |reactor: &Rc<Reactor>| {
            reactor.add_task("accept", Box::pin(accept_all(service, listener)));
        }));
        drop(platform.reactor(0).send(start));
    }
    ServeHandle { service }
}

impl ServeHandle {
    /// What has been served so far.
    pub fn counts(&self) -> ServeCounts {
        let service = &self.service;
        ServeCounts {
            connections: service.connections.load(Ordering::Relaxed),
            accepted: service.accepted.load(Ordering::Relaxed),
            bytes_in: service.bytes_in.load(Ordering::Relaxed),
            bytes_out: service.bytes_out.load(Ordering::Relaxed),
            calls_in_progress: service.calls.load(Ordering::Relaxed),
            protocol_errors: service.protocol_errors.load(Ordering::Relaxed),
        }
    }

    /// Accepts no more connections, and soon closes the listeners. Those that are, go on.
    pub fn stop_accepting(&self) {
        self.service.accepting.store(false, Ordering::SeqCst);
        self.service.wake_all();
    }

    /// Stops accepting and receiving, lets calls in progress be answered, closes each connection
    /// when that is done, and at `deadline` those that are left. Ends with how many were left, when
    /// everything of all connections is gone.
    pub async fn finish(&self, deadline: Nanos) -> usize {
        self.service.enter(Phase::Finishing);
        self.stop_accepting();
        {
            let mut time = pin!(self.service.platform.sleep_until(deadline));
            let mut gone = pin!(self.all_gone());
            poll_fn(|cx| match gone.as_mut().poll(cx) {
                Poll::Pending => time.as_mut().poll(cx),
                ready => ready,
            })
            .await;
        }
        let left = self.counts().connections;
        self.service.enter(Phase::Closing);
        self.all_gone().await;
        left
    }

    fn all_gone(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|cx| {
            self.service.keep_other(cx.waker());
            if self.service.connections.load(Ordering::SeqCst) == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
    }
}

impl Service {
    fn lock(&self) -> MutexGuard<'_, Wakers> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst);
        self.wake_all();
    }

    fn wake_all(&self) {
        let mut wakers = self.lock();
        let connections: Vec<_> = wakers.connections.values().cloned().collect();
        let others = std::mem::take(&mut wakers.others);
        drop(wakers);
        connections.into_iter().chain(others).for_each(Waker::wake);
    }

    fn keep_other(&self, waker: &Waker) {
        let mut wakers = self.lock();
        if !wakers.others.iter().any(|known| known.will_wake(waker)) {
            wakers.others.push(waker.clone());
        }
    }

    fn is_accepting(&self) -> bool {
        self.accepting.load(Ordering::SeqCst)
    }

    /// Waits while there are as many connections as may be. False when no more are accepted.
    fn room(&self) -> impl Future<Output = bool> + '_ {
        poll_fn(|cx| {
            self.keep_other(cx.waker());
            if !self.is_accepting() {
                Poll::Ready(false)
            } else if self.connections.load(Ordering::SeqCst) < self.connections_max {
                Poll::Ready(true)
            } else {
                Poll::Pending
            }
        })
    }

    /// Gives an accepted connection to a reactor.
    fn place(self: &Arc<Self>, socket: OwnedFd) {
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        self.connections.fetch_add(1, Ordering::SeqCst);
        let place = Arc::new(Place { service: Arc::clone(self), number, calls: AtomicUsize::new(0) });
        // A peer that is gone already has no name.
        let mut owners = self.owners.as_ref().map(|owners| owners.lock().unwrap_or_else(PoisonError::into_inner));
        let Ok(peer) = accepted(&socket, owners.as_deref_mut()) else { return };
        drop(owners);
        let start = Mail::Run(Box::new(move |reactor: &Rc<Reactor>| {
            let machine = (place.service.factory)(peer);
            reactor.add_task("connection", Box::pin(Connection::new(socket, machine, place)));
        }));
        drop(self.platform.reactor(number as usize).send(start));
    }
}

async fn accept_all(service: Arc<Service>, listener: Listener) {
    while service.room().await {
        let mut accepting = accept(&listener.fd);
        let accepted = poll_fn(|cx| {
            service.keep_other(cx.waker());
            if service.is_accepting() { accepting.poll(cx).map(Some) } else { Poll::Ready(None) }
        });
        match accepted.await {
            None => return,
            Some(Ok(socket)) => service.place(socket),
            Some(Err(error)) => {
                let short = matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM);
                if short {
                    let until = clock::monotonic().after(SHORTAGE_PAUSE_NS);
                    service.platform.sleep_until(until).await;
                }
                // Anything else concerns the one peer that has gone again meanwhile.
            }
        }
    }
}

/// A connection's place among all.
pub(super) struct Place {
    service: Arc<Service>,
    number: u64,
    calls: AtomicUsize,
}

impl Place {
    pub(super) fn phase(&self) -> Phase {
        match self.service.phase.load(Ordering::SeqCst) {
            phase if phase == Phase::Serving as u8 => Phase::Serving,
            phase if phase == Phase::Finishing as u8 => Phase::Finishing,
            _ => Phase::Closing,
        }
    }

    /// Says who is to be woken when the phase changes; a task's waker is the same for its life.
    pub(super) fn keep_waker(&self, waker: &Waker) {
        let before = self.service.lock().connections.insert(self.number, waker.clone());
        drop(before);
    }

    pub(super) fn count_in(&self, bytes: usize) {
        self.service.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_out(&self, bytes: usize) {
        self.service.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_protocol_error(&self) {
        self.service.protocol_errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_calls(&self, calls: usize) {
        let before = self.calls.swap(calls, Ordering::Relaxed);
        if calls >= before {
            self.service.calls.fetch_add(calls - before, Ordering::Relaxed);
        } else {
            self.service.calls.fetch_sub(before - calls, Ordering::Relaxed);
        }
    }

    pub(super) fn sleep_until(&self, deadline: Nanos) -> Sleep {
        Sleep::new(deadline, Arc::clone(self.service.platform.reactor(self.number as usize)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.set_calls(0);
        let mut wakers = self.service.lock();
        let own = wakers.connections.remove(&self.number);
        self.service.connections.fetch_sub(1, Ordering::SeqCst);
        let others = std::mem::take(&mut wakers.others);
        drop(wakers);
        drop(own);
        others.into_iter().for_each(Waker::wake);
    }
}
