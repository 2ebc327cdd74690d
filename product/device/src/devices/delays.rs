//! Delay accounting: how long each client waited for this device, and for what.
//!
//! Like the kernel's (getdelays), but by client instead of by task, and with the longest wait and the 99th percentile.
//! A sample is one call's whole wait for one thing.
//!
//! Owns: an account for each client, or for each file if its calls have no client; the limit on accounts; the sums over
//! all.
//! Does not own: the waiting, the waits of one call (`call`), the current waiters (`waits`).
//! Invariants: a call without waits never comes here. At most [`ACCOUNTS_MAX`] accounts are kept. Beyond that, the
//! account whose last wait ended longest ago goes among `others`, so the sum of all rows stays the sum of all waits.
//! The locks are leaves, and each serves an eighth of the clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use afflux_pages::named;
use afflux_pages::wait::lock;

use crate::client::Client;
use crate::durations::{Durations, FewDurations, WaitTimes};
use crate::request::Backing;

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
pub type Waited = [u64; KINDS];

/// The account of a call's waits.
pub enum WaitAccount<'a, F> {
    /// A client.
    Client(&'a Client),
    /// A file, and its slot.
    File(&'a Arc<F>, u32),
}

const SHARDS: usize = 8;

/// Most accounts in a shard.
const SHARD_MAX: usize = 256;

/// The most clients, and files without a client, that have their own accounts.
pub const ACCOUNTS_MAX: usize = SHARDS * SHARD_MAX;

/// A figure for each reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PerDelay<T> {
    /// [`Delay::Throttle`].
    pub throttle: T,
    /// [`Delay::Reclaim`].
    pub reclaim: T,
    /// [`Delay::Read`].
    pub read: T,
    /// [`Delay::Sync`].
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
    /// A client.
    Client(Client),
    /// Calls without a client, for this file.
    File(Backing),
}

/// The waits of one account on a device.
#[derive(Clone)]
pub struct Delayed {
    /// The owner.
    pub whose: AccountOwner,
    /// Calls of this owner that now wait for room or for a sync.
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

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Client(Client),
    /// The address of the file, which no other file gets while its account is kept.
    File(usize),
}

struct Account<F> {
    /// The file of a file's account.
    file: Weak<F>,
    waited: [FewDurations; KINDS],
    /// When it last ended a wait: the shard's count of waits.
    latest: u64,
}

struct Shard<F> {
    accounts: BTreeMap<Key, Account<F>>,
    others: [FewDurations; KINDS],
    others_count: u64,
    /// Counts calls that waited.
    ended: u64,
}

pub(crate) struct DelayAccounts<F> {
    shards: [Mutex<Shard<F>>; SHARDS],
    all: [Durations; KINDS],
}

impl<F> Default for Shard<F> {
    fn default() -> Self {
        Self { accounts: BTreeMap::new(), others: Default::default(), others_count: 0, ended: 0 }
    }
}

impl<F> Default for DelayAccounts<F> {
    fn default() -> Self {
        Self { shards: Default::default(), all: Default::default() }
    }
}

impl<F> DelayAccounts<F> {
    pub(crate) fn call_ended(&self, of: WaitAccount<'_, F>, waited: &Waited) {
        let met = || Delay::ALL.into_iter().filter(|delay| waited[*delay as usize] > 0);
        met().for_each(|delay| self.all[delay as usize].note(waited[delay as usize]));
        let (key, file, at) = match of {
            WaitAccount::Client(client) => (Key::Client(client.clone()), Weak::new(), number_of(client)),
            WaitAccount::File(file, slot) => (Key::File(Arc::as_ptr(file).addr()), Arc::downgrade(file), slot as usize),
        };
        let mut shard = lock(&self.shards[at % SHARDS]);
        let account = shard.account(key, file);
        met().for_each(|delay| account.waited[delay as usize].note(waited[delay as usize]));
    }

    /// The waits of all calls for this reason.
    pub(super) fn of(&self, delay: Delay) -> &Durations {
        &self.all[delay as usize]
    }

    /// All accounts. `waiting` gives the number of calls of a client that wait now, `backing` a file's name.
    pub(crate) fn report(&self, waiting: impl Fn(&Client) -> u64, backing: impl Fn(&F) -> Backing) -> DeviceDelays {
        let (mut rows, mut others, mut others_count) = (Vec::new(), <[FewDurations; KINDS]>::default(), 0);
        let mut files = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            merge(&mut others, &shard.others);
            others_count += shard.others_count;
            for (key, account) in &shard.accounts {
                let file = account.file.upgrade();
                let whose = match key {
                    Key::Client(client) => Some((AccountOwner::Client(client.clone()), waiting(client))),
                    Key::File(_) => file.as_ref().map(|file| (AccountOwner::File(backing(file)), 0)),
                };
                match whose {
                    Some((whose, waiting)) => {
                        let age = shard.ended - account.latest;
                        rows.push((age, Delayed { whose, waiting, times: times(&account.waited) }));
                    }
                    None => {
                        merge(&mut others, &account.waited);
                        others_count += 1;
                    }
                }
                // Each may be the last reference to its file: not dropped under the lock.
                files.extend(file);
            }
        }
        rows.sort_by_key(|(age, _)| *age);
        let accounts = rows.into_iter().map(|(_, row)| row).collect();
        DeviceDelays { accounts, others: times(&others), others_count }
    }
}

impl<F> Shard<F> {
    /// The account of an owner that has just ended a wait.
    fn account(&mut self, key: Key, file: Weak<F>) -> &mut Account<F> {
        self.ended += 1;
        if self.accounts.len() >= SHARD_MAX && !self.accounts.contains_key(&key) {
            // A file that is closed will wait no more.
            let closed =
                |key: &Key, account: &Account<F>| matches!(key, Key::File(_)) && account.file.strong_count() == 0;
            let oldest = self.accounts.iter().min_by_key(|(key, it)| (!closed(key, it), it.latest));
            let oldest = oldest.map(|(key, _)| key.clone());
            if let Some(gone) = oldest.and_then(|key| self.accounts.remove(&key)) {
                merge(&mut self.others, &gone.waited);
                self.others_count += 1;
            }
        }
        let new = || Account { file, waited: <[FewDurations; KINDS]>::default(), latest: 0 };
        let account = self.accounts.entry(key).or_insert_with(new);
        account.latest = self.ended;
        account
    }
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
