//! The ledger of waits for a device. Each wait is recorded once, and every figure about waits derives from the records.
//!
//! Owns: the present waits, the number of their clients and payers, pauses by cause, histograms of single pauses and of
//! COMMITs.
//! Does not own: the waiting (`throttle`, `writeback::sync`), the sum of each client's waits (`delays`).
//! Invariants: each wait that begins ends once. The lock is a leaf, taken at the two ends of a pause or a sync and
//! never on a hit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use afflux_device::client::Client;
use afflux_device::platform::Nanos;
use afflux_device::policy::PauseCause;
use afflux_device::request::Backing;
use afflux_pages::wait::lock;
use slab::Slab;

use super::delays::{Delay, DelayAccounts, DeviceDelays, PerDelay, WaitAccount, Waited};
use crate::durations::{Durations, WaitHistogram, WaitTimes};

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

    /// The account that takes its time.
    pub fn delay(self) -> Delay {
        match self {
            Self::Pause(_) => Delay::Throttle,
            Self::Sync => Delay::Sync,
        }
    }
}

/// The number of causes of pauses.
const CAUSES: usize = PauseCause::ALL.len();

/// Writers' pauses for one cause on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseStatus {
    /// Cause that the policy gave for the pause.
    pub cause: PauseCause,
    /// Writers that now wait for this cause.
    pub waiting: u64,
    /// Pauses that ended.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub ns: u64,
    /// The longest in nanoseconds.
    pub longest_ns: u64,
    /// The longest time by which a pause outlasted the policy's request; 0 for waits without a requested time.
    pub late_ns_max: u64,
}

impl PauseStatus {
    fn none(cause: PauseCause) -> Self {
        Self { cause, waiting: 0, count: 0, ns: 0, longest_ns: 0, late_ns_max: 0 }
    }

    /// A pause lasted `ns`, of at most `asked_ns` requested.
    fn ends(&mut self, ns: u64, asked_ns: u64) {
        self.waiting -= 1;
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
        self.longest_ns = self.longest_ns.max(ns);
        self.late_ns_max = self.late_ns_max.max(ns.saturating_sub(asked_ns));
    }
}

/// A payer that waits: an open file, for a client.
#[derive(Clone)]
pub struct Waiter {
    /// The device's name for the file.
    pub file: Backing,
    /// The client, if known.
    pub client: Option<Client>,
    /// What the caller waits for.
    pub waits_for: WaitsFor,
    /// The number of its calls that wait.
    pub calls: u64,
    /// How long the first of these calls has waited; for a write, since its first pause.
    pub ns: u64,
}

/// A figure for each kind of wait for a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PerWait<T> {
    /// Calls that had to wait: a write's pauses and its own writeback together, a sync as its caller saw it.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub calls: PerDelay<T>,
    /// Pauses of a writer, each counted once.
    pub pause: T,
    /// COMMITs, or a front end's equivalent: a sync, and the volume's part of the work.
    pub commit: T,
}

/// All known waits for one device.
#[derive(Clone, Default)]
pub struct DeviceWaits {
    /// The waits so far.
    pub times: PerWait<WaitTimes>,
    /// Payers that wait now, longest first, up to 16.
    pub waiting: Vec<Waiter>,
    /// The number of further payers that wait.
    pub waiting_more: u64,
    /// The waits of each client.
    pub delays: DeviceDelays,
}

/// The waits for one device.
#[derive(Default)]
pub(crate) struct Waits {
    delays: DelayAccounts,
    commit: Durations,
    pause: Durations,
    present: Mutex<Present>,
    /// Named clients with a waiting payer.
    clients_waiting: AtomicUsize,
    /// Payers that wait; several calls of a payer count once.
    payers_waiting: AtomicU64,
}

/// The identity of a payer: the address of its account.
pub(crate) type PayerId = usize;

/// A wait that has begun.
pub(crate) struct Wait {
    /// The file, by its slot: it stays open while its call waits.
    pub file: u32,
    /// The client, if known.
    pub client: Option<Client>,
    /// `None` for a sync, which nobody pays for.
    pub payer: Option<PayerId>,
    /// What the caller waits for.
    pub waits_for: WaitsFor,
    /// When the call began to wait, earlier pauses included.
    pub since: Nanos,
    /// The longest time that a policy requested; no bound for other waits.
    pub asked_ns: u64,
}

/// The number of a wait among all of the device's, and its position among the present ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitId {
    /// The number, which no other wait of the device gets.
    pub number: u64,
    index: usize,
}

struct Present {
    /// Waits that have begun.
    begun: u64,
    /// The present waits, each with its number.
    waiting: Slab<(u64, Wait)>,
    /// By payer and its client: calls that wait.
    payers: BTreeMap<(Option<Client>, PayerId), u64>,
    /// By client: payers that wait.
    clients: BTreeMap<Option<Client>, u64>,
    pauses: [PauseStatus; CAUSES],
}

impl Default for Present {
    fn default() -> Self {
        let pauses = PauseCause::ALL.map(PauseStatus::none);
        Self { begun: 0, waiting: Slab::new(), payers: BTreeMap::new(), clients: BTreeMap::new(), pauses }
    }
}

impl Waits {
    /// A call begins to wait; returns the number of the wait.
    pub(crate) fn begins(&self, wait: Wait) -> WaitId {
        let mut present = lock(&self.present);
        if let Some(payer) = wait.payer_of_client() {
            present.pays(payer);
            self.note_present(&present);
        }
        if let WaitsFor::Pause(cause) = wait.waits_for {
            present.pauses[cause as usize].waiting += 1;
        }
        let number = present.begun;
        present.begun += 1;
        WaitId { number, index: present.waiting.insert((number, wait)) }
    }

    /// The wait with this number has ended, after `ns`.
    pub(crate) fn ends(&self, number: WaitId, ns: u64) {
        let mut present = lock(&self.present);
        let Some(wait) = present.remove(number) else { return };
        if let Some(payer) = wait.payer_of_client() {
            present.pays_no_more(payer);
            self.note_present(&present);
        }
        if let WaitsFor::Pause(cause) = wait.waits_for {
            present.pauses[cause as usize].ends(ns, wait.asked_ns);
            self.pause.note(ns);
        }
    }

    fn note_present(&self, present: &Present) {
        let named = present.clients.len() - usize::from(present.clients.contains_key(&None));
        self.clients_waiting.store(named, Ordering::Relaxed);
        self.payers_waiting.store(present.payers.len() as u64, Ordering::Relaxed);
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
        let payers = present.clients.get(&client).copied().unwrap_or(0);
        let clients = present.clients.len() as u64 + u64::from(payers == 0);
        let others = payers - u64::from(present.payers.contains_key(&(client, payer)));
        (clients, others + 1)
    }

    /// Pauses by cause, for causes that have occurred.
    pub(crate) fn pauses(&self) -> Vec<PauseStatus> {
        let occurred = |row: &PauseStatus| row.count > 0 || row.waiting > 0;
        lock(&self.present).pauses.into_iter().filter(occurred).collect()
    }

    /// A call that waited has ended.
    pub(crate) fn call_ended(&self, of: WaitAccount<'_>, waited: &Waited) {
        self.delays.call_ended(of, waited);
    }

    /// A file is closed that has an account of waits.
    pub(crate) fn forget_file(&self, slot: u32) {
        self.delays.forget_file(slot);
    }

    /// A COMMIT, or a front end's equivalent, took `ns`.
    pub(crate) fn note_commit(&self, ns: u64) {
        self.commit.note(ns);
    }

    /// How long waits took, without names. Takes no lock.
    pub(crate) fn histograms(&self) -> PerWait<WaitHistogram> {
        self.per_wait(Durations::histogram)
    }

    fn per_wait<T: Copy>(&self, figure: fn(&Durations) -> T) -> PerWait<T> {
        let calls = PerDelay::each(|delay| figure(self.delays.of(delay)));
        PerWait { calls, pause: figure(&self.pause), commit: figure(&self.commit) }
    }

    /// `hung`: the device has completed nothing for too long, so all writers wait for that. `opened` gives the open
    /// file in a slot, `backing` the device's name for it.
    pub(crate) fn report<F>(
        &self,
        now: Nanos,
        hung: bool,
        opened: impl Fn(u32) -> Option<Arc<F>>,
        backing: impl Fn(&F) -> Backing,
    ) -> DeviceWaits {
        let present = lock(&self.present);
        let payers = present.payers();
        // Not dropped under the lock: each may be the last reference to its file.
        let files = payers.iter().take(WAITERS_TOLD_MAX).map(|(payer, _)| opened(payer.file)).collect::<Vec<_>>();
        let waiter = |((payer, calls), file): (&(&Wait, u64), &Option<Arc<F>>)| {
            let (file, client) = (backing(file.as_ref()?), payer.client.clone());
            let waits_for = match payer.waits_for {
                WaitsFor::Pause(_) if hung => WaitsFor::Pause(PauseCause::Hung),
                waits_for => waits_for,
            };
            Some(Waiter { file, client, waits_for, calls: *calls, ns: now.since(payer.since) })
        };
        let waiting = payers.iter().zip(&files).filter_map(waiter).collect();
        let waiting_more = payers.len().saturating_sub(WAITERS_TOLD_MAX) as u64;
        let clients = present.calls_by_client();
        drop(payers);
        drop(present);
        drop(files);
        let delays = self.delays.report(|client| clients.get(client).copied().unwrap_or(0));
        DeviceWaits { times: self.per_wait(Durations::times), waiting, waiting_more, delays }
    }
}

impl Wait {
    /// The payer, with its client as policies count clients.
    fn payer_of_client(&self) -> Option<(Option<Client>, PayerId)> {
        self.payer.map(|payer| (self.client.as_ref().and_then(Client::payer), payer))
    }
}

impl Present {
    /// A call of the payer waits.
    fn pays(&mut self, payer: (Option<Client>, PayerId)) {
        let client = payer.0.clone();
        let calls = self.payers.entry(payer).or_default();
        *calls += 1;
        if *calls == 1 {
            *self.clients.entry(client).or_default() += 1;
        }
    }

    /// A call of the payer no longer waits.
    fn pays_no_more(&mut self, payer: (Option<Client>, PayerId)) {
        if remove_one(&mut self.payers, &payer) {
            remove_one(&mut self.clients, &payer.0);
        }
    }

    /// Removes the wait, if it has not ended before.
    fn remove(&mut self, wait: WaitId) -> Option<Wait> {
        self.waiting.get(wait.index).filter(|(number, _)| *number == wait.number)?;
        Some(self.waiting.remove(wait.index).1)
    }

    /// The number of waiting calls of each client.
    fn calls_by_client(&self) -> BTreeMap<Client, u64> {
        let mut calls = BTreeMap::new();
        for client in self.waiting.iter().filter_map(|(_, (_, wait))| wait.client.clone()) {
            *calls.entry(client).or_default() += 1;
        }
        calls
    }

    /// Each payer, by its longest waiting call, with the number of its calls that wait for the same reason; longest
    /// first.
    fn payers(&self) -> Vec<(&Wait, u64)> {
        let mut calls: Vec<&(u64, Wait)> = self.waiting.iter().map(|(_, call)| call).collect();
        // Among calls of the same instant, the first stays first.
        calls.sort_by_key(|(number, call)| (call.since, *number));
        let (mut places, mut payers) = (BTreeMap::new(), Vec::<(&Wait, u64)>::new());
        for (_, call) in calls {
            let payer = (call.file, &call.client, call.waits_for.name());
            let index = *places.entry(payer).or_insert_with(|| {
                payers.push((call, 0));
                payers.len() - 1
            });
            payers[index].1 += 1;
        }
        payers
    }
}

/// Counts one less under the key; returns whether none remains.
fn remove_one<K: Ord>(counts: &mut BTreeMap<K, u64>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else { return false };
    *count -= 1;
    let last = *count == 0;
    if last {
        counts.remove(key);
    }
    last
}

#[cfg(test)]
mod tests;
