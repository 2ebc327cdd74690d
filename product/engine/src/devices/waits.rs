//! The waits for a device: the waiters, their reasons and times, and the duration of waits.
//!
//! Owns: the present waiters, the number of their clients, histograms of single pauses and of COMMITs.
//! Does not own: the waiting (`throttle`, `writeback::sync`), the sum of each client's waits (`delays`), the tally by
//! cause (`policy::pauses`).
//! Invariants: each wait that begins ends once. The lock is a leaf, taken at the two ends of a pause or a sync and
//! never on a hit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::delays::{Delay, Delays, DeviceDelays, WaitAccount, Waited};
use crate::client::Client;
use crate::durations::{Durations, WaitHistogram, WaitTimes};
use crate::platform::Nanos;
use crate::policy::PauseCause;
use crate::request::Backing;
use crate::wait::lock;

/// The most waiting payers that are reported by name.
pub(crate) const WAITERS_TOLD_MAX: usize = 16;

/// The reason for a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// A writer's pause, with its cause.
    Pause(PauseCause),
    /// Durability of earlier writes.
    Sync,
}

impl WaitsFor {
    /// The reason in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pause(cause) => cause.name(),
            Self::Sync => "sync",
        }
    }
}

/// A payer that waits: an open file, for a client.
#[derive(Clone)]
pub struct Waiter {
    /// The device's name for the file.
    pub file: Backing,
    /// The client, if known.
    pub client: Option<Client>,
    /// The reason.
    pub waits_for: WaitsFor,
    /// The number of its calls that wait.
    pub calls: u64,
    /// How long the first of these calls has waited; for a write, since its first pause.
    pub ns: u64,
}

/// All known waits for one device.
#[derive(Clone, Default)]
pub struct DeviceWaits {
    /// Write calls that had to wait: the sum of each call's pauses and its own writeback.
    pub throttle: WaitTimes,
    /// Calls that had to wait for a frame.
    pub reclaim: WaitTimes,
    /// Calls that had to wait for bytes to be read.
    pub read: WaitTimes,
    /// Syncs that had to wait, as their callers saw them.
    pub sync: WaitTimes,
    /// Single pauses.
    pub pause: WaitTimes,
    /// COMMITs, or a front end's equivalent: a sync, and the volume's part of the work.
    pub commit: WaitTimes,
    /// Payers that wait now, longest first, up to 16.
    pub waiting: Vec<Waiter>,
    /// The number of further payers that wait.
    pub waiting_more: u64,
    /// The waits of each client.
    pub delays: DeviceDelays,
}

/// The same waits for one device as histograms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitHistograms {
    /// Write calls that had to wait.
    pub throttle: WaitHistogram,
    /// Calls that had to wait for a frame.
    pub reclaim: WaitHistogram,
    /// Calls that had to wait for bytes to be read.
    pub read: WaitHistogram,
    /// Syncs that had to wait.
    pub sync: WaitHistogram,
    /// Single pauses.
    pub pause: WaitHistogram,
    /// COMMITs.
    pub commit: WaitHistogram,
}

pub(crate) struct Waits<F> {
    /// By client.
    delays: Delays<F>,
    commit: Durations,
    pause: Durations,
    present: Mutex<Present<F>>,
    /// Named clients with a waiting payer.
    clients_waiting: AtomicUsize,
    /// Payers that wait; several calls of a payer count once.
    payers_waiting: AtomicU64,
}

/// The identity of a payer: the address of its account.
pub(crate) type PayerId = usize;

/// The owner of a wait.
pub(crate) struct WaitOwner<'a, F> {
    pub(crate) file: Weak<F>,
    pub(crate) client: Option<&'a Client>,
    /// `None` for a sync, which nobody pays for.
    pub(crate) payer: Option<PayerId>,
}

struct Present<F> {
    next: u64,
    waiting: BTreeMap<u64, WaitRecord<F>>,
    /// By client: calls that wait.
    clients: BTreeMap<Client, u64>,
    /// By client: payers that wait, and the number of their waiting calls.
    payers: BTreeMap<Option<Client>, BTreeMap<PayerId, u64>>,
    /// The sum over all clients.
    payers_count: u64,
}

struct WaitRecord<F> {
    file: Weak<F>,
    client: Option<Client>,
    payer: Option<PayerId>,
    waits_for: WaitsFor,
    since: Nanos,
}

impl<F> Default for Waits<F> {
    fn default() -> Self {
        Self {
            delays: Delays::default(),
            commit: Durations::default(),
            pause: Durations::default(),
            present: Mutex::default(),
            clients_waiting: AtomicUsize::new(0),
            payers_waiting: AtomicU64::new(0),
        }
    }
}

impl<F> Default for Present<F> {
    fn default() -> Self {
        Self { next: 0, waiting: BTreeMap::new(), clients: BTreeMap::new(), payers: BTreeMap::new(), payers_count: 0 }
    }
}

impl<F> Waits<F> {
    /// A call begins to wait; returns the number of the wait.
    pub(crate) fn begins(&self, whose: WaitOwner<'_, F>, waits_for: WaitsFor, since: Nanos) -> u64 {
        let WaitOwner { file, client, payer } = whose;
        let mut present = lock(&self.present);
        let number = present.next;
        present.next += 1;
        if let Some(client) = client {
            *present.clients.entry(client.clone()).or_default() += 1;
        }
        if let Some(payer) = payer {
            present.pays(client.and_then(Client::payer).as_ref(), payer);
            self.note_present(&present);
        }
        present.waiting.insert(number, WaitRecord { file, client: client.cloned(), payer, waits_for, since });
        number
    }

    fn note_present(&self, present: &Present<F>) {
        self.clients_waiting.store(present.named(), Ordering::Relaxed);
        self.payers_waiting.store(present.payers_count, Ordering::Relaxed);
    }

    pub(crate) fn payers_waiting(&self) -> u64 {
        self.payers_waiting.load(Ordering::Relaxed)
    }

    /// The number of clients with a waiting payer, and of this client's waiting payers, both including this one.
    pub(crate) fn sharing(&self, client: Option<&Client>, payer: PayerId) -> (u64, u64) {
        let client = client.and_then(Client::payer);
        if client.is_none() && self.clients_waiting.load(Ordering::Relaxed) == 0 {
            // All waiting payers belong to one client: the tally has their number.
            return (1, 0);
        }
        let present = lock(&self.present);
        let own = present.payers.get(&client);
        let others_of_client = own.map_or(0, |payers| payers.len() - usize::from(payers.contains_key(&payer)));
        let clients = present.payers.len() + usize::from(own.is_none());
        (clients as u64, others_of_client as u64 + 1)
    }

    /// The wait with this number has ended, after `ns`.
    pub(crate) fn ends(&self, number: u64, ns: u64) {
        let mut present = lock(&self.present);
        let Some(WaitRecord { client, payer, waits_for, .. }) = present.waiting.remove(&number) else { return };
        if let Some(payer) = payer {
            present.end_payer_wait(&client.as_ref().and_then(Client::payer), payer);
            self.note_present(&present);
        }
        if matches!(waits_for, WaitsFor::Pause(_)) {
            self.pause.note(ns);
        }
        if let Some(client) = client {
            present.end_client_wait(&client);
        }
    }

    /// A call that waited has ended.
    pub(crate) fn call_ended(&self, of: WaitAccount<'_, F>, waited: &Waited) {
        self.delays.call_ended(of, waited);
    }

    /// A COMMIT, or a front end's equivalent, took `ns`.
    pub(crate) fn note_commit(&self, ns: u64) {
        self.commit.note(ns);
    }

    /// How long waits took, without names. Takes no lock.
    pub(crate) fn histograms(&self) -> WaitHistograms {
        let all = |delay| self.delays.histogram(delay);
        WaitHistograms {
            throttle: all(Delay::Throttle),
            reclaim: all(Delay::Reclaim),
            read: all(Delay::Read),
            sync: all(Delay::Sync),
            pause: self.pause.histogram(),
            commit: self.commit.histogram(),
        }
    }

    /// `hung`: the device has completed nothing for too long, so all writers wait for that. `backing` gives a file's
    /// name.
    pub(crate) fn report(&self, now: Nanos, hung: bool, backing: impl Fn(&F) -> Backing) -> DeviceWaits {
        let present = lock(&self.present);
        let payers = present.payers();
        // Not dropped under the lock: each may be the last reference to its file.
        let files = payers.iter().take(WAITERS_TOLD_MAX).map(|(payer, _)| payer.file.upgrade()).collect::<Vec<_>>();
        let waiter = |((payer, calls), file): (&(&WaitRecord<F>, u64), &Option<Arc<F>>)| {
            let (file, client) = (backing(file.as_ref()?), payer.client.clone());
            let waits_for = match payer.waits_for {
                WaitsFor::Pause(_) if hung => WaitsFor::Pause(PauseCause::Hung),
                waits_for => waits_for,
            };
            Some(Waiter { file, client, waits_for, calls: *calls, ns: now.since(payer.since) })
        };
        let waiting = payers.iter().zip(&files).filter_map(waiter).collect();
        let waiting_more = payers.len().saturating_sub(WAITERS_TOLD_MAX) as u64;
        let clients = present.clients.clone();
        drop(payers);
        drop(present);
        drop(files);
        let all = |delay| self.delays.all(delay);
        DeviceWaits {
            throttle: all(Delay::Throttle),
            reclaim: all(Delay::Reclaim),
            read: all(Delay::Read),
            sync: all(Delay::Sync),
            pause: self.pause.times(),
            commit: self.commit.times(),
            waiting,
            waiting_more,
            delays: self.delays.report(|client| clients.get(client).copied().unwrap_or(0), &backing),
        }
    }
}

impl<F> Present<F> {
    /// A call of the client no longer waits.
    fn end_client_wait(&mut self, client: &Client) {
        let Some(calls) = self.clients.get_mut(client) else { return };
        *calls -= 1;
        if *calls == 0 {
            self.clients.remove(client);
        }
    }

    /// Named clients with a waiting payer.
    fn named(&self) -> usize {
        self.payers.len() - usize::from(self.payers.contains_key(&None))
    }

    /// A call of the payer waits.
    fn pays(&mut self, client: Option<&Client>, payer: PayerId) {
        let calls = self.payers.entry(client.cloned()).or_default().entry(payer).or_default();
        self.payers_count += u64::from(*calls == 0);
        *calls += 1;
    }

    /// A call of the payer no longer waits.
    fn end_payer_wait(&mut self, client: &Option<Client>, payer: PayerId) {
        let Some(payers) = self.payers.get_mut(client) else { return };
        if let Some(calls) = payers.get_mut(&payer) {
            *calls -= 1;
            if *calls == 0 {
                payers.remove(&payer);
                self.payers_count -= 1;
            }
        }
        if payers.is_empty() {
            self.payers.remove(client);
        }
    }

    /// Each payer, by its longest waiting call, with the number of its calls that wait for the same reason; longest
    /// first.
    fn payers(&self) -> Vec<(&WaitRecord<F>, u64)> {
        let mut calls: Vec<&WaitRecord<F>> = self.waiting.values().collect();
        // Among calls of the same instant, the first stays first.
        calls.sort_by_key(|call| call.since);
        let (mut places, mut payers) = (BTreeMap::new(), Vec::<(&WaitRecord<F>, u64)>::new());
        for call in calls {
            let payer = (call.file.as_ptr(), &call.client, call.waits_for.name());
            let place = *places.entry(payer).or_insert_with(|| {
                payers.push((call, 0));
                payers.len() - 1
            });
            payers[place].1 += 1;
        }
        payers
    }
}

#[cfg(test)]
mod tests;
