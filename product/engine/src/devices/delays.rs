//! Delay accounting: how long each client waited for this device, and for what.
//!
//! As the kernel's (getdelays), but by client instead of by task, and with the longest and the 99th of a hundred. A
//! sample is what one call waited for one thing, in all.
//!
//! Owns: an account for each client, or, of calls for nobody in particular, for each file; how many are kept; the sums
//! of all.
//! Does not own: the waiting, what belongs to one call (`call`), who waits now (`waits`).
//! Invariants: a call that waited for nothing never comes here. At most [`ACCOUNTS_MAX`] accounts are kept; of more, the
//! one that ended a wait longest ago goes among `others`, so that the sum of all rows stays what all have waited. Its
//! locks are leaves, and each serves an eighth of the clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use super::file::FileInner;
use crate::client::Client;
use crate::durations::{Durations, FewDurations, WaitHistogram, WaitTimes};
use crate::request::Backing;
use crate::wait::lock;

/// What a call waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum Delay {
    /// Its device, that has too much dirty: the pauses of a write, and what it writes itself because it is told to.
    Throttle,
    /// A free frame.
    Reclaim,
    /// Bytes that are not in the cache, without what it waits for a frame meanwhile.
    Read,
    /// That what was written is durable.
    Sync,
}

/// How many kinds there are.
const KINDS: usize = 4;

impl Delay {
    /// All, in the order in which they are told.
    pub const ALL: [Self; KINDS] = [Self::Throttle, Self::Reclaim, Self::Read, Self::Sync];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throttle => "throttle",
            Self::Reclaim => "reclaim",
            Self::Read => "read",
            Self::Sync => "sync",
        }
    }
}

/// What a call waited for each, in nanoseconds.
pub(crate) type Waited = [u64; KINDS];

/// On whose account a call's waits go.
#[derive(Clone, Copy)]
pub(crate) enum Of<'a> {
    Client(&'a Client),
    File(&'a Arc<FileInner>),
}

const SHARDS: usize = 8;

/// Most accounts in a shard.
const SHARD_MAX: usize = 256;

/// Most clients, and files of nobody in particular, that are told apart.
pub const ACCOUNTS_MAX: usize = SHARDS * SHARD_MAX;

/// How long calls waited, by what for; each call once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DelayTimes([WaitTimes; KINDS]);

impl DelayTimes {
    /// For that.
    pub fn of(&self, delay: Delay) -> WaitTimes {
        self.0[delay as usize]
    }

    /// All together, in nanoseconds.
    pub fn ns(&self) -> u64 {
        self.0.iter().map(|times| times.ns).sum()
    }
}

/// Whose waits they are.
#[derive(Clone)]
pub enum Whose {
    /// A client's.
    Client(Client),
    /// Of calls for nobody in particular, those to this file.
    File(Backing),
}

/// What one waited for a device.
#[derive(Clone)]
pub struct Delayed {
    /// Who.
    pub whose: Whose,
    /// Calls of it that wait now, for room or for a sync.
    pub waiting: u64,
    /// What those that have ended waited.
    pub times: DelayTimes,
}

/// What all waited for a device.
#[derive(Clone, Default)]
pub struct DelaysTold {
    /// Each, the one that ended a wait last first.
    pub accounts: Vec<Delayed>,
    /// What those waited together that are not told apart any more: too many came after them, or their file is closed.
    pub others: DelayTimes,
    /// How many these are.
    pub others_count: u64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Client(Client),
    /// Where the file is in memory, which nobody else gets while its account is kept.
    File(usize),
}

struct Account {
    /// Of a file's.
    file: Weak<FileInner>,
    waited: [FewDurations; KINDS],
    /// When it last ended a wait: the shard's count of waits.
    latest: u64,
}

#[derive(Default)]
struct Shard {
    accounts: BTreeMap<Key, Account>,
    others: [FewDurations; KINDS],
    others_count: u64,
    /// Counts calls that waited.
    ended: u64,
}

/// A device's.
#[derive(Default)]
pub(crate) struct Delays {
    shards: [Mutex<Shard>; SHARDS],
    all: [Durations; KINDS],
}

impl Delays {
    /// A call has ended that waited for something.
    pub(crate) fn call_ended(&self, of: Of<'_>, waited: &Waited) {
        let met = || Delay::ALL.into_iter().filter(|delay| waited[*delay as usize] > 0);
        met().for_each(|delay| self.all[delay as usize].note(waited[delay as usize]));
        let (key, file, at) = match of {
            Of::Client(client) => (Key::Client(client.clone()), Weak::new(), number_of(client)),
            Of::File(file) => (Key::File(Arc::as_ptr(file).addr()), Arc::downgrade(file), file.pages.slot as usize),
        };
        let mut shard = lock(&self.shards[at % SHARDS]);
        let account = shard.account(key, file);
        met().for_each(|delay| account.waited[delay as usize].note(waited[delay as usize]));
    }

    /// What calls waited for that.
    pub(crate) fn all(&self, delay: Delay) -> WaitTimes {
        self.all[delay as usize].times()
    }

    /// The same by powers of two.
    pub(crate) fn histogram(&self, delay: Delay) -> WaitHistogram {
        self.all[delay as usize].histogram()
    }

    /// Everybody's; `waiting` says how many calls of a client wait now.
    pub(crate) fn told(&self, waiting: impl Fn(&Client) -> u64) -> DelaysTold {
        let (mut rows, mut others, mut others_count) = (Vec::new(), <[FewDurations; KINDS]>::default(), 0);
        let mut files = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            merge(&mut others, &shard.others);
            others_count += shard.others_count;
            for (key, account) in &shard.accounts {
                let file = account.file.upgrade();
                let whose = match key {
                    Key::Client(client) => Some((Whose::Client(client.clone()), waiting(client))),
                    Key::File(_) => file.as_ref().map(|file| (Whose::File(file.backing.clone()), 0)),
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
        DelaysTold { accounts, others: times(&others), others_count }
    }
}

impl Shard {
    /// The account of one who has just ended a wait.
    fn account(&mut self, key: Key, file: Weak<FileInner>) -> &mut Account {
        self.ended += 1;
        if self.accounts.len() >= SHARD_MAX && !self.accounts.contains_key(&key) {
            // A file that is closed will wait no more.
            let closed = |key: &Key, account: &Account| matches!(key, Key::File(_)) && account.file.strong_count() == 0;
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
    DelayTimes(std::array::from_fn(|at| waited[at].times()))
}

/// Spreads clients over the shards, alike in every run.
fn number_of(client: &Client) -> usize {
    let mixed = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let name = client.name().bytes().fold(0x811c_9dc5, mixed);
    let number = client.user().unwrap_or(0).to_le_bytes().into_iter().fold(name, mixed);
    (number >> 16) as usize
}

#[cfg(test)]
mod tests;
