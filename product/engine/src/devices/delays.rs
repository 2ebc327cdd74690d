//! Delay accounting: how long each client waited for this device, and for what.
//!
//! Like the kernel's (getdelays), but by client instead of by task, and with the longest wait and the 99th percentile.
//! A sample is one call's whole wait for one thing.
//!
//! Owns: an account for each client, the list of the accounts of files for calls without a client, the limit on
//! accounts, the sums over all.
//! Does not own: the waiting, the waits of one call (`call`), the current waiters (`waits`).
//! Invariants: a call without waits never comes here. At most [`ACCOUNTS_MAX`] accounts are stored for clients, and as
//! many are reported in all. The account whose last wait ended longest ago goes among `others`, so the sum of all rows
//! stays the sum of all waits. The locks are leaves, and each serves a file or an eighth of the clients.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use afflux_device::client::Client;
use afflux_device::request::Backing;
use afflux_pages::named;
use afflux_pages::wait::lock;

use crate::durations::{Durations, FewDurations, WaitTimes};

named! {
    /// The reason for a call's wait.
    Delay:

    /// Too much is dirty on the device: a write's pauses, and its own writeback if the policy demands it.
    Throttle "throttle";
    /// A free frame.
    Reclaim "reclaim";
    /// Bytes that are not in the cache, without waits for a frame meanwhile.
    Read "read";
    /// Durability of earlier writes.
    Sync "sync";
}

/// How many reasons there are.
const KINDS: usize = Delay::ALL.len();

/// A call's wait for each reason, in nanoseconds.
pub(crate) type Waited = [u64; KINDS];

/// The account of a call's waits.
pub(crate) enum WaitAccount<'a> {
    /// A client of a front end.
    Client(&'a Client),
    /// A file, by its slot, with the device's name for it and its own account.
    File(u32, &'a Backing, &'a FileDelays),
}

/// A file's account of its calls without a client, from the first wait on.
#[derive(Default)]
pub(crate) struct FileDelays(OnceLock<Arc<FileAccount>>);

impl FileDelays {
    /// Whether a call has waited.
    pub(crate) fn has_any(&self) -> bool {
        self.0.get().is_some()
    }
}

const SHARDS: usize = 8;

/// Most accounts in a shard.
const SHARD_MAX: usize = 256;

/// The most clients that have their own accounts, and the most accounts in a report.
pub const ACCOUNTS_MAX: usize = SHARDS * SHARD_MAX;

/// A figure for each reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PerDelay<T> {
    /// Pauses of writers ([`Delay::Throttle`]).
    pub throttle: T,
    /// Waits for free frames ([`Delay::Reclaim`]).
    pub reclaim: T,
    /// Waits for reads of the device ([`Delay::Read`]).
    pub read: T,
    /// Waits for durable bytes ([`Delay::Sync`]).
    pub sync: T,
}

impl<T: Copy> PerDelay<T> {
    /// The figures that `figure` gives.
    pub fn each(figure: impl FnMut(Delay) -> T) -> Self {
        let [throttle, reclaim, read, sync] = Delay::ALL.map(figure);
        Self { throttle, reclaim, read, sync }
    }

    /// The figure for this reason.
    pub fn of(&self, delay: Delay) -> T {
        [self.throttle, self.reclaim, self.read, self.sync][delay as usize]
    }
}

/// How long calls waited, by reason; each call counts once.
pub type DelayTimes = PerDelay<WaitTimes>;

impl DelayTimes {
    /// The sum over all reasons, in nanoseconds.
    pub fn ns(&self) -> u64 {
        Delay::ALL.iter().map(|delay| self.of(*delay).ns).sum()
    }
}

/// The owner of an account.
#[derive(Clone)]
pub enum AccountOwner {
    /// A client of a front end.
    Client(Client),
    /// Calls without a client, for this file.
    File(Backing),
}

/// The waits of one account on a device.
#[derive(Clone)]
pub struct Delayed {
    /// Client or file that the delays belong to.
    pub whose: AccountOwner,
    /// Calls of this owner that now wait to be admitted or for a sync.
    pub waiting: u64,
    /// The waits that have ended.
    pub times: DelayTimes,
}

/// The waits of all accounts on a device.
#[derive(Clone, Default)]
pub struct DeviceDelays {
    /// The accounts, the one that ended a wait last first.
    pub accounts: Vec<Delayed>,
    /// The sum of dropped accounts: too many came after them, or their file is closed.
    pub others: DelayTimes,
    /// The number of dropped accounts.
    pub others_count: u64,
}

/// The waits of one owner.
#[derive(Default)]
struct Account {
    waited: [FewDurations; KINDS],
    /// When it last ended a wait: the device's count of waits.
    latest: u64,
}

struct FileAccount {
    backing: Backing,
    /// When it last ended a wait.
    latest: AtomicU64,
    account: Mutex<Account>,
}

/// Accounts of one kind of owner, and the sum of those that were dropped.
struct Shard<K, A> {
    accounts: BTreeMap<K, A>,
    others: [FewDurations; KINDS],
    others_count: u64,
}

#[derive(Default)]
pub(crate) struct DelayAccounts {
    clients: [Mutex<Shard<Client, Account>>; SHARDS],
    /// By slot: open files with a wait.
    files: Mutex<Shard<u32, Arc<FileAccount>>>,
    /// Counts calls that waited.
    ended: AtomicU64,
    all: [Durations; KINDS],
}

impl<K, A> Default for Shard<K, A> {
    fn default() -> Self {
        Self { accounts: BTreeMap::new(), others: Default::default(), others_count: 0 }
    }
}

impl DelayAccounts {
    pub(crate) fn call_ended(&self, of: WaitAccount<'_>, waited: &Waited) {
        nonzero(waited).for_each(|(delay, ns)| self.all[delay as usize].note(ns));
        let number = self.ended.fetch_add(1, Ordering::Relaxed);
        match of {
            WaitAccount::Client(client) => {
                let mut shard = lock(&self.clients[number_of(client) % SHARDS]);
                shard.account(client).add(waited, number);
            }
            WaitAccount::File(slot, backing, delays) => {
                let kept = delays.0.get_or_init(|| self.add_file(slot, backing));
                lock(&kept.account).add(waited, number);
                kept.latest.fetch_max(number, Ordering::Relaxed);
            }
        }
    }

    fn add_file(&self, slot: u32, backing: &Backing) -> Arc<FileAccount> {
        let kept =
            Arc::new(FileAccount { backing: backing.clone(), latest: AtomicU64::default(), account: Mutex::default() });
        lock(&self.files).accounts.insert(slot, Arc::clone(&kept));
        kept
    }

    /// The file in the slot is closed: its waits go among the others.
    pub(crate) fn forget_file(&self, slot: u32) {
        let mut files = lock(&self.files);
        let gone = files.accounts.remove(&slot);
        if let Some(gone) = &gone {
            files.drops(&lock(&gone.account));
        }
    }

    /// The waits of all calls for this reason.
    pub(super) fn of(&self, delay: Delay) -> &Durations {
        &self.all[delay as usize]
    }

    /// The accounts. `waiting` gives the number of calls of a client that wait now. Accounts are chosen by their last
    /// wait before they are copied, and files' without the lock that a file's first wait takes.
    pub(crate) fn report(&self, waiting: impl Fn(&Client) -> u64) -> DeviceDelays {
        let (mut rows, mut others) = (Vec::new(), Shard::<(), ()>::default());
        for shard in &self.clients {
            let shard = lock(shard);
            others.takes_over(&shard);
            rows.extend(
                shard
                    .accounts
                    .iter()
                    .map(|(client, account)| (AccountOwner::Client(client.clone()), waiting(client), account.clone())),
            );
        }
        let files: Vec<(u64, Arc<FileAccount>)> = {
            let files = lock(&self.files);
            others.takes_over(&files);
            files.accounts.values().map(|kept| (kept.latest.load(Ordering::Relaxed), Arc::clone(kept))).collect()
        };
        let mut latest: Vec<u64> = rows.iter().map(|(.., account)| account.latest).collect();
        latest.extend(files.iter().map(|(latest, _)| *latest));
        let shown_from = match latest.len().checked_sub(ACCOUNTS_MAX) {
            Some(dropped) if dropped > 0 => *latest.select_nth_unstable(dropped).1,
            _ => 0,
        };
        for (latest, kept) in &files {
            let account = lock(&kept.account);
            match *latest >= shown_from {
                true => rows.push((AccountOwner::File(kept.backing.clone()), 0, account.clone())),
                false => others.drops(&account),
            }
        }
        rows.sort_by_key(|(.., account)| std::cmp::Reverse(account.latest));
        rows.drain(rows.len().min(ACCOUNTS_MAX)..).for_each(|(.., account)| others.drops(&account));
        let told =
            |(whose, waiting, account): (_, _, Account)| Delayed { whose, waiting, times: times(&account.waited) };
        let accounts = rows.into_iter().map(told).collect();
        DeviceDelays { accounts, others: times(&others.others), others_count: others.others_count }
    }
}

impl Shard<Client, Account> {
    /// The account of a client that has just ended a wait.
    fn account(&mut self, client: &Client) -> &mut Account {
        if self.accounts.len() >= SHARD_MAX && !self.accounts.contains_key(client) {
            let oldest = self.accounts.iter().min_by_key(|(_, account)| account.latest);
            let oldest = oldest.map(|(client, _)| client.clone());
            if let Some(gone) = oldest.and_then(|client| self.accounts.remove(&client)) {
                self.drops(&gone);
            }
        }
        self.accounts.entry(client.clone()).or_default()
    }
}

impl<K, A> Shard<K, A> {
    fn drops(&mut self, account: &Account) {
        merge(&mut self.others, &account.waited);
        self.others_count += 1;
    }

    fn takes_over<L, B>(&mut self, shard: &Shard<L, B>) {
        merge(&mut self.others, &shard.others);
        self.others_count += shard.others_count;
    }
}

impl Clone for Account {
    fn clone(&self) -> Self {
        #[cfg(test)]
        tests::COPIES.set(tests::COPIES.get() + 1);
        Self { waited: self.waited.clone(), latest: self.latest }
    }
}

impl Account {
    /// A call waited; `number` is the device's count of waits.
    fn add(&mut self, waited: &Waited, number: u64) {
        nonzero(waited).for_each(|(delay, ns)| self.waited[delay as usize].note(ns));
        self.latest = self.latest.max(number);
    }
}

/// The call's waits that took time.
fn nonzero(waited: &Waited) -> impl Iterator<Item = (Delay, u64)> {
    Delay::ALL.into_iter().zip(*waited).filter(|(_, ns)| *ns > 0)
}

fn merge(into: &mut [FewDurations; KINDS], from: &[FewDurations; KINDS]) {
    into.iter_mut().zip(from).for_each(|(into, from)| into.merge(from));
}

fn times(waited: &[FewDurations; KINDS]) -> DelayTimes {
    DelayTimes::each(|delay| waited[delay as usize].times())
}

/// Spreads clients over the shards, equally in every run.
fn number_of(client: &Client) -> usize {
    let mixed = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let name = client.name().bytes().fold(0x811c_9dc5, mixed);
    let number = client.user().unwrap_or(0).to_le_bytes().into_iter().fold(name, mixed);
    (number >> 16) as usize
}

#[cfg(test)]
mod tests;
