//! Quota: how much callers may make a server hold, and who waits for more.
//!
//! First a front end asks whether a call may begin. It counts what the call holds, and gives that back when the call
//! has ended. A call without quota waits where it costs little: in its socket, or in its program. Then it is woken. A
//! peer may end each connection with a reset while its calls must go on: these calls count for its party until they
//! end. A party whose calls of ended connections hold as much as the others leave free begins no call, over whichever
//! connection it asks.
//!
//! Owns: the quota of each user in a bounded whole; the bytes of each connection and of each party, the calls that
//! outlive their connections; the bytes of messages that wait; the calls and connections to wake when a sum falls.
//! Does not own: the figures of the bounds, the choice of bytes that count (front ends); the quota of all connections
//! (worlds).
//! Invariants: no party takes all that others may need: a user takes at most about half of the rest that others leave.
//! A caller may begin a call if it holds nothing, and no call of its ended connections does. What was counted is given
//! back once, at the end of the call, of the message or of the connection. A list has no more entries than there are
//! parties now and connections that ended since the last one came. A call whose message was put off is woken after the
//! end of a message, and at once if no message is held. Waiters are woken outside the locks.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use futures_channel::oneshot::{self, Receiver, Sender};

use crate::caller::Party;

/// A bounded whole, and the part of each user.
pub struct FairQuotas {
    of_users: HashMap<u32, usize>,
    taken: usize,
    most: usize,
}

impl FairQuotas {
    /// Nothing is taken of `most`.
    pub fn new(most: usize) -> Self {
        Self { of_users: HashMap::new(), taken: 0, most }
    }

    /// All that is taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// The part that nobody has taken.
    pub fn available(&self) -> usize {
        self.most.saturating_sub(self.taken)
    }

    /// Whether a user under the rule may take more.
    pub fn may_take(&self, user: u32) -> bool {
        self.may_take_of(user, self.available())
    }

    /// As [`FairQuotas::may_take`], with `available` parts for all users: others outside of this table take parts, too.
    pub fn may_take_of(&self, user: u32, available: usize) -> bool {
        self.of_users.get(&user).copied().unwrap_or_default() < available.min(self.available())
    }

    /// Takes a part, permitted or not.
    pub fn take(&mut self, user: u32, count: usize) {
        *self.of_users.entry(user).or_default() += count;
        self.taken += count;
    }

    /// Gives back what was taken.
    pub fn give_back(&mut self, user: u32, count: usize) {
        self.taken -= count;
        if let Entry::Occupied(mut part) = self.of_users.entry(user) {
            *part.get_mut() -= count;
            if *part.get() == 0 {
                part.remove();
            }
        }
    }
}

/// Ends when a call without quota may try again.
pub type QuotaFreed = Receiver<()>;

/// The messages of calls that wait.
pub struct MessageQuota(Mutex<State>);

struct State {
    quotas: FairQuotas,
    /// Calls without their message, the oldest first.
    put_off: VecDeque<Sender<()>>,
}

impl MessageQuota {
    /// No messages yet, and never many more bytes than these.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        let quotas = FairQuotas::new(bytes_max);
        Arc::new(Self(Mutex::new(State { quotas, put_off: VecDeque::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a user's message of so many bytes until the drop of the result. Without quota for it, the error ends when
    /// the message may be tried again. `is_bound` tells whether other users need quota, too.
    pub fn hold(self: &Arc<Self>, user: u32, is_bound: bool, bytes: usize) -> Result<HeldMessage, QuotaFreed> {
        let state = &mut *self.lock();
        let may_take = if is_bound { state.quotas.may_take(user) } else { state.quotas.available() > 0 };
        if !may_take {
            let (freed, told) = oneshot::channel();
            if state.put_off.len() == state.put_off.capacity() {
                state.put_off.retain(|freed| !freed.is_canceled());
            }
            state.put_off.push_back(freed);
            return Err(told);
        }
        state.quotas.take(user, bytes);
        Ok(HeldMessage { quota: Arc::clone(self), user, bytes })
    }

    /// Bytes that are counted.
    pub fn bytes(&self) -> usize {
        self.lock().quotas.taken()
    }
}

impl State {
    /// The calls to wake after the end of a message: the oldest one that still waits, or all of them if no message is
    /// held.
    fn next(&mut self) -> VecDeque<Sender<()>> {
        if self.quotas.taken() == 0 {
            return mem::take(&mut self.put_off);
        }
        while let Some(freed) = self.put_off.pop_front() {
            if !freed.is_canceled() {
                return VecDeque::from([freed]);
            }
        }
        VecDeque::new()
    }
}

/// A message that is counted.
pub struct HeldMessage {
    quota: Arc<MessageQuota>,
    user: u32,
    bytes: usize,
}

impl Drop for HeldMessage {
    fn drop(&mut self) {
        let next = {
            let mut state = self.quota.lock();
            state.quotas.give_back(self.user, self.bytes);
            state.next()
        };
        for freed in next {
            // An error: the call was given up meanwhile.
            let _ = freed.send(());
        }
    }
}

/// The parties with connections.
#[derive(Default)]
pub struct Parties {
    of: Mutex<BTreeMap<Party, Weak<PartyBytes>>>,
    outliving: Arc<Sum>,
    /// The id of the last connection.
    last: AtomicU64,
}

/// A sum, and the connections that wait until it falls, by their ids.
#[derive(Default)]
struct Sum {
    bytes: AtomicU64,
    waiting: Mutex<BTreeMap<u64, Waker>>,
}

/// The bytes of one party.
struct PartyBytes {
    /// Of its connections, and of the calls that outlive theirs.
    all: Sum,
    /// Of the latter alone.
    outliving: AtomicU64,
    outliving_of_all: Arc<Sum>,
}

/// The bytes that one connection has added to its party's sum.
pub struct PartyQuota {
    party: Arc<PartyBytes>,
    connection_id: u64,
    own: u64,
}

/// The bytes of calls that outlive their connection.
pub struct OutlivingBytes {
    quota: PartyQuota,
}

impl Sum {
    fn get(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    fn remove(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        waiting.into_values().for_each(Waker::wake);
    }
}

impl Parties {
    /// The part of a new connection of this party.
    pub fn quota(&self, party: Party) -> PartyQuota {
        let mut parties = lock(&self.of);
        parties.retain(|_, bytes| bytes.strong_count() > 0);
        let bytes = parties.get(&party).and_then(Weak::upgrade).unwrap_or_else(|| {
            let (all, outliving) = (Sum::default(), AtomicU64::new(0));
            Arc::new(PartyBytes { all, outliving, outliving_of_all: Arc::clone(&self.outliving) })
        });
        parties.insert(party, Arc::downgrade(&bytes));
        PartyQuota { party: bytes, connection_id: self.last.fetch_add(1, Ordering::Relaxed), own: 0 }
    }
}

impl PartyQuota {
    /// Sets the number of bytes that the connection holds.
    #[inline]
    pub fn hold(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.own, bytes);
        if bytes > before {
            self.party.all.add(bytes - before);
        } else if bytes < before {
            self.party.all.remove(before - bytes);
        }
    }

    /// The bytes of the party's other connections, and of its calls that outlive theirs.
    #[inline]
    pub fn others(&self) -> u64 {
        self.party.all.get().saturating_sub(self.own)
    }

    /// Whether the party may begin a call, with `bytes_max` for the calls of all parties that outlive their
    /// connections. A party with such calls leaves at least as much free as they have.
    #[inline]
    pub fn may_begin(&self, bytes_max: u64) -> bool {
        let own = self.party.outliving.load(Ordering::SeqCst);
        own == 0 || own <= bytes_max.saturating_sub(self.party.outliving_of_all.get())
    }

    /// Has a task woken when others of the party hold less, or calls end that outlive their connections. The caller
    /// must check again after this call.
    pub fn wake_when_less(&self, waker: &Waker) {
        for sum in [&self.party.all, &*self.party.outliving_of_all] {
            lock(&sum.waiting).insert(self.connection_id, waker.clone());
        }
    }

    /// The connection ends, and calls with so many bytes go on.
    pub fn outlive(&mut self, bytes: u64) -> OutlivingBytes {
        let mut quota = Self { party: Arc::clone(&self.party), connection_id: self.connection_id, own: 0 };
        quota.hold(bytes);
        quota.party.outliving.fetch_add(bytes, Ordering::SeqCst);
        quota.party.outliving_of_all.add(bytes);
        OutlivingBytes { quota }
    }
}

impl OutlivingBytes {
    /// One of the calls has ended.
    pub fn give_back(&mut self, bytes: u64) {
        let own = self.quota.own;
        self.quota.hold(own - bytes);
        self.quota.party.outliving.fetch_sub(bytes, Ordering::SeqCst);
        self.quota.party.outliving_of_all.remove(bytes);
    }
}

impl Drop for OutlivingBytes {
    fn drop(&mut self) {
        self.give_back(self.quota.own);
    }
}

impl Drop for PartyQuota {
    fn drop(&mut self) {
        self.hold(0);
        for sum in [&self.party.all, &*self.party.outliving_of_all] {
            lock(&sum.waiting).remove(&self.connection_id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The front end's bounds.
#[derive(Clone, Copy, Debug)]
pub struct ByteBounds {
    /// Most bytes in progress of a connection.
    pub connection_bytes: u64,
    /// Most bytes that all connections of a party hold together. Also the bound on the calls of all parties that
    /// outlive their connections.
    pub party_bytes: u64,
}

/// The quota of one connection.
pub struct ConnectionQuota {
    party: PartyQuota,
    /// Bytes of requests and expected replies of the calls in progress.
    charged: u64,
    /// The world's bound on the bytes that the connection may hold.
    world_bytes: u64,
}

impl ConnectionQuota {
    /// The quota of a connection that holds nothing yet.
    pub fn new(party: PartyQuota) -> Self {
        Self { party, charged: 0, world_bytes: u64::MAX }
    }

    /// A call begins, with so many bytes of its request and its expected reply.
    #[inline]
    pub fn charge(&mut self, bytes: u64) {
        self.charged += bytes;
    }

    /// A call has ended.
    #[inline]
    pub fn give_back(&mut self, bytes: u64) {
        self.charged -= bytes;
    }

    /// Bytes of the calls in progress.
    #[inline]
    pub fn charged(&self) -> u64 {
        self.charged
    }

    /// Sets the world's bound.
    #[inline]
    pub fn set_world_bytes(&mut self, bytes: u64) {
        self.world_bytes = bytes;
    }

    /// Whether the connection may hold more than these bytes.
    #[inline]
    pub fn may_hold_more(&self, bytes: u64, bounds: ByteBounds) -> bool {
        bytes <= bounds.connection_bytes && self.may_hold_beside_others(bytes, bounds)
    }

    #[inline]
    fn may_hold_beside_others(&self, bytes: u64, bounds: ByteBounds) -> bool {
        let may_hold = bytes == 0 || self.party.others() + bytes <= bounds.party_bytes;
        may_hold && self.party.may_begin(bounds.party_bytes)
    }

    /// The bytes of a reply of `wanted` bytes beside the `held` ones; none if its call has to wait. A reply that does
    /// not fit may be cut to the remaining quota, but not below `short`: the first one of a poll if `short` fits, and
    /// the only one always.
    #[inline]
    pub fn reply_bytes(&self, wanted: u32, short: u32, held: u64, is_first: bool, is_alone: bool) -> Option<u32> {
        let (left, short) = (self.world_bytes.saturating_sub(held), wanted.min(short));
        let may_hold = |bytes: u32| u64::from(bytes) <= left && held <= self.world_bytes;
        if may_hold(wanted) {
            Some(wanted)
        } else if is_first && may_hold(short) || is_alone {
            Some((left as u32).clamp(short, wanted))
        } else {
            None
        }
    }

    /// Publishes the bytes that the connection holds to the others of its party. A connection that lacks
    /// quota beside the others is woken when they hold less.
    #[inline]
    pub fn publish(&mut self, held: u64, bounds: ByteBounds, waker: &Waker) {
        self.party.hold(held);
        if !self.may_hold_beside_others(held, bounds) {
            self.party.wake_when_less(waker);
            // The others may have given back meanwhile.
            if self.may_hold_beside_others(held, bounds) {
                waker.wake_by_ref();
            }
        }
    }

    /// The connection ends, and calls that were charged with so many bytes go on.
    pub fn outlive(&mut self, bytes: u64) -> OutlivingBytes {
        self.party.outlive(bytes)
    }
}

#[cfg(test)]
mod tests;
