//! Replies kept for clients that ask again: a call that changes something is run once.
//!
//! Owns: the last calls of that kind of all connections, running or answered.
//! Does not own: which calls are of that kind (`arguments`), and the running (`connection`).
//! Invariants: at most [`ENTRIES_MAX`] calls; what is still running is not forgotten while one of the
//! oldest is answered, and what a client asked that has few there not while another has many. A call that comes
//! twice runs once, and both get its reply.
//!
//! A client that lost its connection sends its unanswered calls again over a new one, from another
//! port; so the key is the peer's address without the port, the user, the call's number, and a hash of all of
//! the call's bytes (credentials with their stamp included), which keeps two clients of one host
//! apart unless they number their calls alike and send the same bytes.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::hash::{BuildHasherDefault, DefaultHasher, Hasher};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::{FutureExt, Shared};

use crate::status::Status;

/// Most calls that are remembered: what a client can have unanswered (its window, and the replies
/// that fit the socket buffers), several times over.
pub const ENTRIES_MAX: usize = 16_384;
/// How many of the oldest calls are looked at for one that is answered.
const EVICTION_TRIES: usize = 64;

/// A reply that can be sent more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptReply {
    pub(crate) record: Bytes,
    pub(crate) status: Status,
}

/// A call that is running or answered; whoever awaits it drives it. Must not own the cache.
pub(crate) type SharedCall = Shared<Pin<Box<dyn Future<Output = KeptReply> + Send>>>;

/// What two sendings of the same call have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    peer: IpAddr,
    uid: Option<u32>,
    xid: u32,
    bytes: usize,
    hash: u64,
}

impl Key {
    /// The key of a call from its whole record, carried out as this user: two of one host may send the same bytes.
    pub(crate) fn new(peer: IpAddr, uid: Option<u32>, xid: u32, record: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(record);
        Self { peer, uid, xid, bytes: record.len(), hash: hasher.finish() }
    }
}

#[derive(Default)]
struct Kept {
    /// Not seeded: the cache is to behave alike in every run of the simulator.
    calls: HashMap<Key, SharedCall, BuildHasherDefault<DefaultHasher>>,
    /// From the oldest on; the same keys. Those that were spared for their client's sake stand as if they were new.
    order: VecDeque<Key>,
    /// How many of them are whose.
    of_peers: HashMap<IpAddr, usize, BuildHasherDefault<DefaultHasher>>,
}

/// The cache, shared by all connections.
#[derive(Default)]
pub(crate) struct ReplyCache {
    kept: Mutex<Kept>,
}

impl ReplyCache {
    /// The call kept under `key`, and true; or the one that `start` makes, which is kept, and false.
    /// `start` must not run the call or come back here.
    pub(crate) fn find_or_start(
        &self,
        key: Key,
        start: impl FnOnce() -> Pin<Box<dyn Future<Output = KeptReply> + Send>>,
    ) -> (SharedCall, bool) {
        let (call, found, forgotten) = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(call) = kept.calls.get(&key) {
                (call.clone(), true, None)
            } else {
                let forgotten = kept.make_room();
                let call = start().shared();
                kept.calls.insert(key, call.clone());
                kept.order.push_back(key);
                *kept.of_peers.entry(key.peer).or_default() += 1;
                (call, false, forgotten)
            }
        };
        // Dropping a call may run code of the volume; not under the lock.
        drop(forgotten);
        (call, found)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let kept = self.kept.lock().unwrap();
        assert_eq!(kept.calls.len(), kept.order.len());
        assert_eq!(kept.of_peers.values().sum::<usize>(), kept.order.len());
        kept.order.len()
    }
}

impl Kept {
    fn make_room(&mut self) -> Option<SharedCall> {
        if self.order.len() < ENTRIES_MAX {
            return None;
        }
        self.spare_modest_peers();
        let answered = |key: &Key| self.calls.get(key).is_none_or(|call| call.peek().is_some());
        let oldest = self.order.iter().take(EVICTION_TRIES).position(answered).unwrap_or(0);
        let key = self.order.remove(oldest)?;
        if let Some(count) = self.of_peers.get_mut(&key.peer) {
            *count -= 1;
            if *count == 0 {
                self.of_peers.remove(&key.peer);
            }
        }
        self.calls.remove(&key)
    }

    /// Has the oldest be one of a client with at least its part of the cache. There always is one; what stands
    /// before it is not met again for as long as it takes the others to come to the front.
    fn spare_modest_peers(&mut self) {
        let part = ENTRIES_MAX / self.of_peers.len().max(1);
        let has_much = |key: &Key| self.of_peers.get(&key.peer).is_some_and(|count| *count >= part);
        let spared = self.order.iter().position(has_much).unwrap_or(0);
        self.order.rotate_left(spared);
    }
}

#[cfg(test)]
mod tests;
