//! Who waits for a device, for what and since when, and how long such waits take.
//!
//! Owns: those who wait now, of how many clients they are, histograms of single pauses and of COMMITs.
//! Does not own: the waiting (`throttle`, `writeback::sync`), what each client waited in all (`delays`), the tally by
//! cause (`policy::pauses`).
//! Invariants: who begins to wait ends it once. Its lock is a leaf, taken at the two ends of a pause or a sync and never
//! on a hit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::delays::{Delay, Delays, DelaysTold};
use super::file::FileInner;
use crate::client::Client;
use crate::durations::{Durations, WaitHistogram, WaitTimes};
use crate::platform::Nanos;
use crate::policy::PauseCause;
use crate::request::Backing;
use crate::wait::lock;

/// Most payers that wait and are told by name.
pub(crate) const WAITERS_TOLD_MAX: usize = 16;

/// What somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// A writer, for the reason that made it pause.
    Pause(PauseCause),
    /// What was written is to be durable.
    Sync,
}

impl WaitsFor {
    /// In words.
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
    /// What its device knows the file by.
    pub file: Backing,
    /// For whom, if that is known.
    pub client: Option<Client>,
    /// For what.
    pub waits_for: WaitsFor,
    /// How many of its calls do.
    pub calls: u64,
    /// For how long the first of these has: a write, since its first pause.
    pub ns: u64,
}

/// All that is known of waits for one device.
#[derive(Clone, Default)]
pub struct DeviceWaits {
    /// Write calls that had to wait: the sum of each one's pauses, and of what it wrote itself.
    pub throttle: WaitTimes,
    /// Calls that had to wait for a frame.
    pub reclaim: WaitTimes,
    /// Calls that had to wait for bytes to be read.
    pub read: WaitTimes,
    /// Syncs that had to wait, as their callers saw them.
    pub sync: WaitTimes,
    /// Single pauses.
    pub pause: WaitTimes,
    /// COMMITs, or what the front end has in their place: a sync, and what the volume does with it.
    pub commit: WaitTimes,
    /// Payers that wait now, longest first, up to 16.
    pub waiting: Vec<Waiter>,
    /// How many more there are.
    pub waiting_more: u64,
    /// Who waited how long.
    pub delays: DelaysTold,
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

/// A device's.
#[derive(Default)]
pub(crate) struct Waits {
    /// By client.
    pub(crate) delays: Delays,
    /// COMMITs.
    pub(crate) commit: Durations,
    pause: Durations,
    present: Mutex<Present>,
    /// Clients with a name of whom a payer waits.
    clients_waiting: AtomicUsize,
    /// Payers that wait, however many calls of each do.
    payers_waiting: AtomicU64,
}

/// A payer, as far as it is told from others: where its account is.
pub(crate) type PayerId = usize;

/// Whose wait it is.
pub(crate) struct Whose<'a> {
    pub(crate) file: Weak<FileInner>,
    pub(crate) client: Option<&'a Client>,
    /// Nobody pays for a sync.
    pub(crate) payer: Option<PayerId>,
}

#[derive(Default)]
struct Present {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Of each client, calls that wait.
    clients: BTreeMap<Client, u64>,
    /// Of each client, payers that wait, and how many calls of each do.
    payers: BTreeMap<Option<Client>, BTreeMap<PayerId, u64>>,
    /// Of all clients.
    payers_count: u64,
}

struct Waiting {
    file: Weak<FileInner>,
    client: Option<Client>,
    payer: Option<PayerId>,
    waits_for: WaitsFor,
    since: Nanos,
}

impl Waits {
    /// Somebody begins to wait; returns the number of the wait.
    pub(crate) fn begins(&self, whose: Whose<'_>, waits_for: WaitsFor, since: Nanos) -> u64 {
        let Whose { file, client, payer } = whose;
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
        present.waiting.insert(number, Waiting { file, client: client.cloned(), payer, waits_for, since });
        number
    }

    fn note_present(&self, present: &Present) {
        self.clients_waiting.store(present.named(), Ordering::Relaxed);
        self.payers_waiting.store(present.payers_count, Ordering::Relaxed);
    }

    /// Payers that wait.
    pub(crate) fn payers_waiting(&self) -> u64 {
        self.payers_waiting.load(Ordering::Relaxed)
    }

    /// Clients of whom a payer waits, and payers of this client that do, this one counted in.
    pub(crate) fn sharing(&self, client: Option<&Client>, payer: PayerId) -> (u64, u64) {
        let client = client.and_then(Client::payer);
        if client.is_none() && self.clients_waiting.load(Ordering::Relaxed) == 0 {
            // All are one client's: how many they are the tally says.
            return (1, 0);
        }
        let present = lock(&self.present);
        let own = present.payers.get(&client);
        let others_of_client = own.map_or(0, |payers| payers.len() - usize::from(payers.contains_key(&payer)));
        let clients = present.payers.len() + usize::from(own.is_none());
        (clients as u64, others_of_client as u64 + 1)
    }

    /// The wait of that number has ended, after so long.
    pub(crate) fn ends(&self, number: u64, ns: u64) {
        let mut present = lock(&self.present);
        let Some(Waiting { client, payer, waits_for, .. }) = present.waiting.remove(&number) else { return };
        if let Some(payer) = payer {
            present.pays_no_more(&client.as_ref().and_then(Client::payer), payer);
            self.note_present(&present);
        }
        if matches!(waits_for, WaitsFor::Pause(_)) {
            self.pause.note(ns);
        }
        if let Some(client) = client {
            present.waits_no_more(&client);
        }
    }

    /// How long waits took, without who did. Takes no lock.
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

    /// `hung`: the device has completed nothing for too long, so that this is what all writers wait for.
    pub(crate) fn told(&self, now: Nanos, hung: bool) -> DeviceWaits {
        let present = lock(&self.present);
        let payers = present.payers();
        // Kept from being dropped under the lock: each may be the last reference to its file.
        let files = payers.iter().take(WAITERS_TOLD_MAX).map(|(payer, _)| payer.file.upgrade()).collect::<Vec<_>>();
        let waiter = |((payer, calls), file): (&(&Waiting, u64), &Option<Arc<FileInner>>)| {
            let (file, client) = (file.as_ref()?.backing.clone(), payer.client.clone());
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
            delays: self.delays.told(|client| clients.get(client).copied().unwrap_or(0)),
        }
    }
}

impl Present {
    /// A call of the client waits no more.
    fn waits_no_more(&mut self, client: &Client) {
        let Some(calls) = self.clients.get_mut(client) else { return };
        *calls -= 1;
        if *calls == 0 {
            self.clients.remove(client);
        }
    }

    /// Clients with a name of whom a payer waits.
    fn named(&self) -> usize {
        self.payers.len() - usize::from(self.payers.contains_key(&None))
    }

    /// A call of the payer waits.
    fn pays(&mut self, client: Option<&Client>, payer: PayerId) {
        let calls = self.payers.entry(client.cloned()).or_default().entry(payer).or_default();
        self.payers_count += u64::from(*calls == 0);
        *calls += 1;
    }

    /// A call of the payer waits no more.
    fn pays_no_more(&mut self, client: &Option<Client>, payer: PayerId) {
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

    /// Each payer by the call of its that has waited longest, and how many of its calls wait for the same; longest
    /// first.
    fn payers(&self) -> Vec<(&Waiting, u64)> {
        let mut calls: Vec<&Waiting> = self.waiting.values().collect();
        // Of those who came at the same instant the first stays first.
        calls.sort_by_key(|call| call.since);
        let (mut places, mut payers) = (BTreeMap::new(), Vec::<(&Waiting, u64)>::new());
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
