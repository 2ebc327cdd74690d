//! Replies cached for clients that send a call again: a call that changes something runs once.
//!
//! Owns: the last such calls of all connections, running or answered; the number of each user's calls.
//! Does not own: the choice of these calls (`arguments`), running them (`connection`), the parties and the choice of
//! the call to evict (`frontend`).
//! Invariants: at most [`ENTRIES_MAX`] calls are cached, and at most [`USER_ENTRIES_MAX`] of one user of one party. A
//! call is forgotten for a later one of its own user. If the cache is full, the victim is a call of the party with the
//! most calls, and of that party's user with the most. So a user who makes many calls does not evict another user's
//! call, but some thousand users who make a few calls each do. The last [`ROOT_ENTRIES`] calls of this host's root
//! stay, however many calls others make. A running call is not forgotten if one of the same user's oldest calls is
//! answered. A call that comes twice runs once, and both get its reply. Numbers and bytes that clients choose are
//! hashed with a key that clients do not know.
//!
//! A client that lost its connection repeats its unanswered calls over a new connection, from another port. So the key
//! is the peer's address without the port, the user, the call's number, and a hash of all bytes of the call
//! (credentials with their stamp included). Two clients of one host are thus told apart, unless both number their calls
//! alike and send the same bytes.

mod shared_call;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use afflux_frontend::{CallKey, OwnedQueues, Party};
use futures_util::future::BoxFuture;
use siphasher::sip::SipHasher13;

pub(crate) use self::shared_call::{CachedReply, SharedCall};
use crate::steps::step;

/// Most calls that are cached: several times the calls that a client can have unanswered (its window, and the replies
/// that fit the socket buffers).
pub const ENTRIES_MAX: usize = 16_384;
/// Most calls of one user of one party.
const USER_ENTRIES_MAX: usize = ENTRIES_MAX / 4;
/// This many calls of this host's root are not forgotten for others.
const ROOT_ENTRIES: usize = ENTRIES_MAX / 4;
/// Number of oldest calls among which an answered one is searched.
const EVICTION_TRIES: usize = 64;

/// The party that a call comes from, and the user that the server carries it out for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct CallOwner {
    pub(crate) party: Party,
    pub(crate) user: Option<u32>,
}

/// The identity of a call, equal for all its transmissions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    peer: IpAddr,
    /// Two users of one host may send the same bytes.
    whose: CallOwner,
    xid: u32,
    bytes: usize,
    hash: u64,
}

/// Hashes numbers and bytes that clients choose.
#[derive(Clone)]
struct Keyed([u8; 16]);

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

struct CachedReplies {
    calls: HashMap<Key, SharedCall, Keyed>,
    /// The same keys by owner.
    of: OwnedQueues<Party, Option<u32>, Key>,
}

/// The cache, shared by all connections.
pub(crate) struct ReplyCache {
    hashes: Keyed,
    cached: Mutex<CachedReplies>,
}

impl ReplyCache {
    /// An empty cache. Only the server knows the key.
    pub(crate) fn new(hash_key: [u8; 16]) -> Self {
        let hashes = Keyed(hash_key);
        let cached = CachedReplies { calls: HashMap::with_hasher(hashes.clone()), of: OwnedQueues::default() };
        Self { hashes, cached: Mutex::new(cached) }
    }

    /// The key of a call, from its whole record.
    pub(crate) fn key(&self, peer: IpAddr, whose: CallOwner, xid: u32, record: &[u8]) -> Key {
        let mut hasher = self.hashes.build_hasher();
        hasher.write(record);
        Key { peer, whose, xid, bytes: record.len(), hash: hasher.finish() }
    }

    /// The key as hashes alone, with its owner's in the last word.
    pub(crate) fn hashed(&self, key: &Key) -> CallKey {
        let call = u64::from(key.xid) << 32 | key.bytes as u64 & u64::from(u32::MAX);
        let whose = self.hashes.hash_one((key.peer, key.whose));
        let owner = self.hashes.hash_one(key.whose.party) >> 32 << 32 | whose >> 32;
        [key.hash, call, owner]
    }

    /// The call cached under `key`, and true; or a new call from `start`, which is then cached, and false. `start` must
    /// not run the call or use this cache.
    pub(crate) fn find_or_start(
        &self,
        key: Key,
        start: impl FnOnce() -> BoxFuture<'static, CachedReply>,
    ) -> (SharedCall, bool) {
        let (call, found, forgotten) = {
            let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(call) = cached.calls.get(&key) {
                (call.clone(), true, None)
            } else {
                let forgotten = cached.evict_for(key.whose);
                let call = SharedCall::new(start());
                cached.add(key, call.clone());
                (call, false, forgotten)
            }
        };
        // Dropping a call may run code of the volume, so that the lock must be released.
        drop(forgotten);
        (call, found)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let cached = self.cached.lock().unwrap();
        cached.calls.len()
    }
}

impl CachedReplies {
    fn add(&mut self, key: Key, call: SharedCall) {
        let CallOwner { party, user } = key.whose;
        self.calls.insert(key, call);
        self.of.push(party, user, key);
    }

    /// Forgets a call before a new one of `whose` if the cache is full.
    fn evict_for(&mut self, CallOwner { party, user }: CallOwner) -> Option<SharedCall> {
        if self.of.len_of((party, user)) >= USER_ENTRIES_MAX {
            return self.forget_one((party, user));
        }
        if self.calls.len() < ENTRIES_MAX {
            return None;
        }
        let spared = |party: Party, count: usize| {
            step();
            party == Party::ROOT && count <= ROOT_ENTRIES
        };
        self.forget_one(self.of.heaviest(spared)?)
    }

    /// Forgets the first answered call among the oldest ones of `whose`, or the oldest if none of these is answered.
    fn forget_one(&mut self, whose: (Party, Option<u32>)) -> Option<SharedCall> {
        let answered = |key: &Key| {
            step();
            self.calls.get(key).is_none_or(SharedCall::is_answered)
        };
        let pick = |keys: &VecDeque<Key>| keys.iter().take(EVICTION_TRIES).position(answered).or(Some(0));
        let key = self.of.take(whose, pick)?;
        self.calls.remove(&key)
    }
}

#[cfg(test)]
mod tests;
