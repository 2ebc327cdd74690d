//! A service and its connections, as far as others see them.
//!
//! Owns: the bounds on connections and their bytes, the sums over all connections, the end; asking connections to
//! close. A connection closes to give its slot to a new one, because it is silent, because others wait for its memory,
//! or because the server could not read it for long.
//! Does not own: the acceptors (`serve`), a connection's bytes (`connection`), which connection is evicted (`crowd`).
//! Invariants: at most `connections_max` connections. A connection that is asked to close for its silence checks this
//! itself: with calls in progress or unsent replies it stays. Every connection is counted until its last resource is
//! gone.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use afflux_engine::{Nanos, Platform};
use afflux_frontend::{Party, Peer, ProtocolMachine};
use rustix::io::Errno;

use super::crowd::{Choice, Member, RefusedConnection, ServeLimits, choose};
use super::listener::accepted;
use super::origin::Origins;
use super::quota::{ConnectionBytes, SharedQuota, UNIT_BYTES};
use afflux_linux_device::LinuxPlatform;
use afflux_linux_device::clock;
use afflux_linux_device::reactor::{Remote, Sleep};

/// Most connections at once, where the limit on descriptors allows it.
pub const CONNECTIONS_MAX: usize = 1_024;
/// The least value for the bound on the bytes of all connections.
const REQUEST_BYTES_MIN: u64 = 128 << 20;
/// While others wait for memory, a peer that leaves a record unfinished or does not take its replies has to move this
/// much from one check to the next, ...
const PROGRESS_BYTES_MIN: u64 = 64 << 10;
/// ... and its connection goes after this many failures in a row: a lost packet alone is not enough.
const STALLS_MAX: u8 = 2;
/// A connection counts as stalled after this long without progress while it waits for the peer.
const STALL_NS: u64 = Nanos::SECOND;
/// Divisor of the memory that may be held. Connections receive more than the bytes known to come only while one such
/// part stays free, so that the rest is enough for whole records.
const SPARE_PARTS: u64 = 4;

/// The units of all possible connections leave at least as much again of the least bound.
const _: () = assert!(2 * CONNECTIONS_MAX as u64 * UNIT_BYTES <= REQUEST_BYTES_MIN);

/// The service's figures since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServeCounts {
    /// Count of connections at this moment.
    pub connections: usize,
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Bytes that clients have sent.
    pub bytes_in: u64,
    /// Bytes that clients were sent.
    pub bytes_out: u64,
    /// Calls received and not yet answered, all connections together.
    pub calls_in_progress: usize,
    /// Connections closed because no protocol machine could read their peers' bytes.
    pub protocol_errors: u64,
    /// Connections closed because they were silent for the time allowed.
    pub closed_silent: u64,
    /// Connections closed to give their slots to new ones.
    pub closed_for_room: u64,
    /// Connections refused because all that could have been evicted were at work.
    pub refused: u64,
    /// Bytes that connections hold: received and not answered, or not sent yet; buffers of receives, also empty ones.
    pub request_bytes: u64,
    /// Connections with a part of a request, a call in progress or an unsent reply.
    pub connections_at_work: usize,
    /// Connections that wait until others hold less.
    pub waiting_for_room: usize,
    /// Connections closed because others waited for their memory while their peers made no progress.
    pub closed_stalled: u64,
    /// Connections reset because their peers' bytes had no quota for the time allowed.
    pub closed_unread: u64,
}

/// The service's figures for one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeerCounts {
    /// Count of connections at this moment.
    pub connections: usize,
    /// Bytes received over these connections.
    pub bytes_in: u64,
    /// Bytes sent over these connections.
    pub bytes_out: u64,
}

/// A running service. Dropping the handle does not end it.
#[derive(Clone)]
pub struct ServeHandle {
    pub(super) service: Arc<ServiceState>,
}

/// The phase of the service.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum Phase {
    Serving,
    /// Calls in progress are answered, and nothing more is received.
    Finishing,
    /// Everything is dropped.
    Closing,
}

type Factory = Box<dyn Fn(Peer) -> Box<dyn ProtocolMachine> + Send + Sync>;

pub(super) struct ServiceState {
    pub(super) platform: LinuxPlatform,
    factory: Factory,
    limits: Box<dyn Fn() -> ServeLimits + Send + Sync>,
    on_refused: Box<dyn Fn(&RefusedConnection) + Send + Sync>,
    phase: AtomicU8,
    accepting: AtomicBool,
    pub(super) connections: AtomicUsize,
    accepted: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    calls: AtomicUsize,
    protocol_errors: AtomicU64,
    closed_silent: AtomicU64,
    closed_for_room: AtomicU64,
    refused: AtomicU64,
    closed_stalled: AtomicU64,
    closed_unread: AtomicU64,
    pub(super) quota: SharedQuota,
    roster: Mutex<Roster>,
    /// Locked during the questions about one peer.
    origins: Mutex<Origins>,
}

#[derive(Default)]
struct Roster {
    connections: BTreeMap<u64, RosterEntry>,
    /// Acceptors, and callers that wait for the end.
    others: Vec<Waker>,
}

/// A connection, as the service sees it.
struct RosterEntry {
    standing: Arc<ConnectionState>,
    /// Absent until its task has been polled.
    waker: Option<Waker>,
    looked: Looked,
}

/// The findings of the checks of a connection.
#[derive(Default)]
struct Looked {
    /// Bytes received and sent until the last check.
    moved: u64,
    /// The number of checks in a row that found too little added.
    stalls: u8,
    /// It was asked to hold no more buffer than it needs, and has moved nothing since.
    shrink_sent: bool,
}

/// A connection's state, for others to see.
struct ConnectionState {
    party: Party,
    /// Only the connection writes it.
    active_ns: AtomicU64,
    /// Calls in progress, or replies not sent. Only the connection writes it.
    busy: AtomicBool,
    /// The number of the [`Reason`] for which it was asked to close; 0 if it was not. The connection resets it if it is
    /// at work.
    leaving: AtomicU8,
    bytes: ConnectionBytes,
    /// It waits for its peer to finish a record or to take replies. Only the connection writes it.
    waits_for_peer: AtomicBool,
    /// The peer's address.
    peer: IpAddr,
    /// Bytes received and sent. Only the connection writes them.
    received: AtomicU64,
    sent: AtomicU64,
    /// It was asked to hold no more buffer than it needs.
    shrinks: AtomicBool,
    /// Since when nothing is received from it for want of quota; 0 while it is read. Only the connection writes it.
    unread_since_ns: AtomicU64,
}

impl ConnectionState {
    /// Whether a part of a request, a call or a reply is here.
    fn is_at_work(&self) -> bool {
        self.busy.load(Ordering::SeqCst) || self.waits_for_peer.load(Ordering::SeqCst)
    }
}

/// Why a connection is asked to close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Reason {
    /// It goes if it is idle.
    Silent = 1,
    /// A new connection gets its slot: it closes even with calls in progress.
    Evicted = 2,
    /// Its peer makes no progress while others wait for memory: it goes even with calls in progress.
    Stalled = 3,
    /// Bytes of its peer lay unread for too long: it goes if they still do, even with calls in progress.
    Unread = 4,
}

impl ServeHandle {
    /// The service's figures since its start.
    pub fn counts(&self) -> ServeCounts {
        let service = &self.service;
        ServeCounts {
            connections: service.connections.load(Ordering::Relaxed),
            accepted: service.accepted.load(Ordering::Relaxed),
            bytes_in: service.bytes_in.load(Ordering::Relaxed),
            bytes_out: service.bytes_out.load(Ordering::Relaxed),
            calls_in_progress: service.calls.load(Ordering::Relaxed),
            protocol_errors: service.protocol_errors.load(Ordering::Relaxed),
            closed_silent: service.closed_silent.load(Ordering::Relaxed),
            closed_for_room: service.closed_for_room.load(Ordering::Relaxed),
            refused: service.refused.load(Ordering::Relaxed),
            request_bytes: service.request_bytes(),
            connections_at_work: service.lock().connections.values().filter(|it| it.standing.is_at_work()).count(),
            waiting_for_room: service.quota.waiters(),
            closed_stalled: service.closed_stalled.load(Ordering::Relaxed),
            closed_unread: service.closed_unread.load(Ordering::Relaxed),
        }
    }

    /// The service's figures for each address that has connections. Ended connections do not count.
    pub fn peers(&self) -> BTreeMap<IpAddr, PeerCounts> {
        let mut peers = BTreeMap::<IpAddr, PeerCounts>::new();
        for entry in self.service.lock().connections.values() {
            let peer = peers.entry(entry.standing.peer).or_default();
            peer.connections += 1;
            peer.bytes_in += entry.standing.received.load(Ordering::Relaxed);
            peer.bytes_out += entry.standing.sent.load(Ordering::Relaxed);
        }
        peers
    }

    /// Accepts no more connections, and soon closes the listeners. Present connections go on.
    pub fn stop_accepting(&self) {
        self.service.accepting.store(false, Ordering::SeqCst);
        self.service.wake_all();
    }

    /// Stops accepting and receiving, and waits for the answers of calls in progress. Closes each connection when it is
    /// answered, and the rest at `deadline`. Returns the number of the latter once everything of all connections is
    /// gone.
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

impl ServiceState {
    pub(super) fn new(
        platform: &LinuxPlatform,
        limits: impl Fn() -> ServeLimits + Send + Sync + 'static,
        on_refused: impl Fn(&RefusedConnection) + Send + Sync + 'static,
        factory: impl Fn(Peer) -> Box<dyn ProtocolMachine> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let quota = SharedQuota::new(limits().connections_max);
        Arc::new(Self {
            platform: platform.clone(),
            factory: Box::new(factory),
            limits: Box::new(limits),
            on_refused: Box::new(on_refused),
            phase: AtomicU8::new(Phase::Serving as u8),
            accepting: AtomicBool::new(true),
            connections: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            calls: AtomicUsize::new(0),
            protocol_errors: AtomicU64::new(0),
            closed_silent: AtomicU64::new(0),
            closed_for_room: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            closed_stalled: AtomicU64::new(0),
            closed_unread: AtomicU64::new(0),
            quota,
            roster: Mutex::default(),
            origins: Mutex::new(Origins::new()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst);
        self.wake_all();
    }

    fn wake_all(&self) {
        let mut roster = self.lock();
        let connections: Vec<_> = roster.connections.values().filter_map(|entry| entry.waker.clone()).collect();
        let others = std::mem::take(&mut roster.others);
        drop(roster);
        connections.into_iter().chain(others).for_each(Waker::wake);
    }

    pub(super) fn keep_other(&self, waker: &Waker) {
        let mut roster = self.lock();
        if !roster.others.iter().any(|known| known.will_wake(waker)) {
            roster.others.push(waker.clone());
        }
    }

    pub(super) fn wake_others(&self) {
        let others = std::mem::take(&mut self.lock().others);
        others.into_iter().for_each(Waker::wake);
    }

    pub(super) fn is_accepting(&self) -> bool {
        self.accepting.load(Ordering::SeqCst)
    }

    pub(super) fn choose(&self, party: Party) -> Choice {
        let limits = (self.limits)();
        choose(&self.members(), party, &limits)
    }

    pub(super) fn members(&self) -> Vec<Member> {
        let now = clock::monotonic();
        let member = |(&id, entry): (&u64, &RosterEntry)| {
            let standing = &entry.standing;
            let active_ns = standing.active_ns.load(Ordering::Relaxed);
            let waits_for_peer = standing.waits_for_peer.load(Ordering::SeqCst);
            Member {
                id,
                party: standing.party,
                idle: !standing.busy.load(Ordering::SeqCst),
                stalled: waits_for_peer && now.since(Nanos(active_ns)) >= STALL_NS,
                leaving: standing.leaving.load(Ordering::Relaxed) != 0,
                active_ns,
            }
        };
        self.lock().connections.iter().map(member).collect()
    }

    /// Asks a connection to close, if it closes for that reason.
    pub(super) fn request_close(&self, id: u64, reason: Reason) {
        self.with_connection(id, |standing| standing.leaving.store(reason as u8, Ordering::SeqCst));
    }

    fn with_connection(&self, id: u64, what: impl FnOnce(&ConnectionState)) {
        let roster = self.lock();
        let Some(entry) = roster.connections.get(&id) else { return };
        what(&entry.standing);
        let waker = entry.waker.clone();
        drop(roster);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn refuse(&self, party: Party) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let connections = self.members().iter().filter(|member| member.party == party).count();
        let bound = (self.limits)().bound_reached(connections);
        (self.on_refused)(&RefusedConnection { party, connections, bound });
    }

    /// Asks connections to close that have been silent for the time allowed.
    pub(super) fn close_idle(&self) {
        let idle_ns = (self.limits)().idle_ns;
        if idle_ns == 0 {
            return;
        }
        let now = clock::monotonic();
        for member in self.members() {
            if member.idle && !member.leaving && Nanos(member.active_ns).after(idle_ns) <= now {
                self.request_close(member.id, Reason::Silent);
            }
        }
    }

    /// Asks connections to close that were not read for the time allowed.
    pub(super) fn reset_unread(&self) {
        let (unread_ns, now) = ((self.limits)().unread_ns, clock::monotonic());
        if unread_ns == 0 {
            return;
        }
        let is_over = |standing: &ConnectionState| {
            let since = standing.unread_since_ns.load(Ordering::SeqCst);
            since != 0 && now.since(Nanos(since)) >= unread_ns
        };
        let over: Vec<u64> = {
            let roster = self.lock();
            let over = roster.connections.iter().filter(|(_, entry)| is_over(&entry.standing));
            over.map(|(&id, _)| id).collect()
        };
        over.into_iter().for_each(|id| self.request_close(id, Reason::Unread));
    }

    fn request_bytes(&self) -> u64 {
        let held: u64 = self.lock().connections.values().map(|entry| entry.standing.bytes.held()).sum();
        // Bytes that move from one connection to another during the addition would count twice.
        held.min(self.quota.taken())
    }

    /// Asks silent connections to give back memory that they do not need. While others wait for memory, a connection
    /// goes if it holds more than its unit and its peer makes no progress.
    pub(super) fn reclaim_memory(&self) {
        let wanted = self.quota.waiters() > 0;
        let (mut stalled, mut large) = (Vec::new(), Vec::new());
        for (&id, RosterEntry { standing, looked, .. }) in &mut self.lock().connections {
            let sum = standing.received.load(Ordering::Relaxed) + standing.sent.load(Ordering::Relaxed);
            let moved = sum - std::mem::replace(&mut looked.moved, sum);
            let more = standing.bytes.held() > UNIT_BYTES;
            looked.stalls = match more && standing.waits_for_peer.load(Ordering::SeqCst) && moved < PROGRESS_BYTES_MIN {
                true => looked.stalls.saturating_add(1),
                false => 0,
            };
            if wanted && looked.stalls >= STALLS_MAX {
                stalled.push(id);
            } else if moved > 0 {
                looked.shrink_sent = false;
            } else if !std::mem::replace(&mut looked.shrink_sent, true) || more {
                large.push(id);
            }
        }
        stalled.into_iter().for_each(|id| self.request_close(id, Reason::Stalled));
        large.into_iter().for_each(|id| self.with_connection(id, |s| s.shrinks.store(true, Ordering::SeqCst)));
        self.quota.wake_all();
        if self.quota.has_slack() {
            self.quota.give_slack_back();
        }
    }

    pub(super) fn identify(&self, socket: &OwnedFd) -> Result<Peer, Errno> {
        accepted(socket, &mut self.origins.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A new connection's slot.
    pub(super) fn add(self: &Arc<Self>, peer: &Peer) -> Arc<Membership> {
        let id = self.accepted.fetch_add(1, Ordering::Relaxed);
        let standing = Arc::new(ConnectionState {
            party: peer.party(),
            active_ns: AtomicU64::new(clock::monotonic().0),
            busy: AtomicBool::new(false),
            leaving: AtomicU8::new(0),
            bytes: ConnectionBytes::new(),
            waits_for_peer: AtomicBool::new(false),
            peer: peer.address.to_canonical(),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            shrinks: AtomicBool::new(false),
            unread_since_ns: AtomicU64::new(0),
        });
        let entry = RosterEntry { standing: Arc::clone(&standing), waker: None, looked: Looked::default() };
        self.lock().connections.insert(id, entry);
        if self.connections.fetch_add(1, Ordering::SeqCst) == 0 {
            // The search for silent connections has waited for the first one.
            self.wake_others();
        }
        Arc::new(Membership { service: Arc::clone(self), id, calls: AtomicUsize::new(0), standing })
    }
}

/// A connection's slot in the service.
pub(super) struct Membership {
    service: Arc<ServiceState>,
    id: u64,
    calls: AtomicUsize,
    standing: Arc<ConnectionState>,
}

impl Membership {
    pub(super) fn phase(&self) -> Phase {
        match self.service.phase.load(Ordering::SeqCst) {
            phase if phase == Phase::Serving as u8 => Phase::Serving,
            phase if phase == Phase::Finishing as u8 => Phase::Finishing,
            _ => Phase::Closing,
        }
    }

    /// Sets the waker for changes of the phase; a task's waker is the same for its life.
    pub(super) fn keep_waker(&self, waker: &Waker) {
        let mut roster = self.service.lock();
        let before = roster.connections.get_mut(&self.id).and_then(|entry| entry.waker.replace(waker.clone()));
        drop(roster);
        drop(before);
    }

    /// Reports whether the connection has calls in progress or replies to send.
    pub(super) fn set_busy(&self, busy: bool) {
        self.standing.busy.store(busy, Ordering::SeqCst);
    }

    /// Whether the connection was asked to close, and closes; it is then counted under that reason. A connection that
    /// was asked to close for its silence stays if it is `busy`. A connection with unread bytes stays if the server
    /// reads it by now, or if `lies_there` finds no bytes.
    pub(super) fn try_leave(&self, busy: bool, lies_there: impl FnOnce() -> bool) -> bool {
        let leaving = &self.standing.leaving;
        let reason = leaving.load(Ordering::SeqCst);
        if reason == 0 {
            return false;
        }
        let stays = match reason {
            reason if reason == Reason::Stalled as u8 || reason == Reason::Evicted as u8 => false,
            reason if reason == Reason::Unread as u8 => {
                let is_read = self.standing.unread_since_ns.load(Ordering::SeqCst) == 0;
                is_read || !lies_there()
            }
            _ => busy,
        };
        if stays {
            leaving.store(0, Ordering::SeqCst);
            // The new connection that waits for its slot has to choose another.
            self.service.wake_others();
            return false;
        }
        let count = match reason {
            reason if reason == Reason::Silent as u8 => &self.service.closed_silent,
            reason if reason == Reason::Stalled as u8 => &self.service.closed_stalled,
            reason if reason == Reason::Unread as u8 => &self.service.closed_unread,
            _ => &self.service.closed_for_room,
        };
        count.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn request_bytes_max(&self) -> u64 {
        (self.service.limits)().request_bytes_max
    }

    /// Records the connection's bytes, and gives back its further reservation.
    pub(super) fn hold(&self, bytes: u64, before: u64) {
        self.service.quota.settle(&self.standing.bytes, bytes, before);
    }

    /// The connection's bytes as last recorded.
    pub(super) fn held(&self) -> u64 {
        self.standing.bytes.held()
    }

    /// Lets the connection hold `bytes`, if it may; `known` means that all of them are sure to come.
    pub(super) fn try_hold(&self, bytes: u64, known: bool) -> bool {
        let max = self.request_bytes_max();
        let spare = if known { 0 } else { max / SPARE_PARTS };
        self.service.quota.try_hold(&self.standing.bytes, bytes, spare, max)
    }

    /// Reserves up to `more` bytes until [`Membership::hold`] is called; returns the bytes that the connection may
    /// hold.
    pub(super) fn reserve(&self, more: u64) -> u64 {
        self.service.quota.reserve(&self.standing.bytes, more, self.request_bytes_max())
    }

    pub(super) fn wait_for_quota(&self, waker: &Waker) {
        self.service.quota.wait(self.id, waker);
    }

    pub(super) fn waits_no_more(&self) {
        self.service.quota.forget(self.id);
    }

    /// Reports whether the connection waits for its peer to finish a record or to take replies.
    pub(super) fn set_waits_for_peer(&self, waits: bool) {
        self.standing.waits_for_peer.store(waits, Ordering::SeqCst);
    }

    /// Reports whether the peer's bytes lie unread for want of quota.
    pub(super) fn set_unread(&self, unread: bool) {
        let since = &self.standing.unread_since_ns;
        let was_unread = since.load(Ordering::Relaxed) != 0;
        if unread != was_unread {
            since.store(if unread { clock::monotonic().0.max(1) } else { 0 }, Ordering::SeqCst);
        }
    }

    /// Whether the connection was asked to hold no more buffer than it needs; true once.
    pub(super) fn take_shrink(&self) -> bool {
        self.standing.shrinks.load(Ordering::Relaxed) && self.standing.shrinks.swap(false, Ordering::SeqCst)
    }

    fn set_active(&self) {
        self.standing.active_ns.store(clock::monotonic().0, Ordering::Relaxed);
    }

    pub(super) fn count_in(&self, bytes: usize) {
        self.set_active();
        self.standing.received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.service.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_out(&self, bytes: usize) {
        self.set_active();
        self.standing.sent.fetch_add(bytes as u64, Ordering::Relaxed);
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
        Sleep::new(deadline, Arc::clone(self.reactor()))
    }

    /// The reactor that runs the connection.
    pub(super) fn reactor(&self) -> &Arc<Remote> {
        self.service.platform.reactor(self.id as usize)
    }

    /// A machine for the connection.
    pub(super) fn machine(&self, peer: Peer) -> Box<dyn ProtocolMachine> {
        (self.service.factory)(peer)
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.set_calls(0);
        self.service.quota.leave(self.id, &self.standing.bytes);
        let mut roster = self.service.lock();
        let own = roster.connections.remove(&self.id);
        self.service.connections.fetch_sub(1, Ordering::SeqCst);
        let others = std::mem::take(&mut roster.others);
        drop(roster);
        drop(own);
        others.into_iter().for_each(Waker::wake);
    }
}
