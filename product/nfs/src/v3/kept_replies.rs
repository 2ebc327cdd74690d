//! The newest changing calls with their replies, in memory that outlives the process.
//!
//! Owns: the form of this memory, the check of each entry, the places of entries.
//! Does not own: the memory (worlds), which calls these are (`arguments`), the judgement of a call that was begun (the
//! volume), the replies of this process (`reply_cache`).
//! Invariants: a call has its entry before the host is asked, and its reply there before the client gets it. An entry whose
//! check fails is never used. The last calls of all clients together have entries. No number or name of a client stands
//! there, but hashes with a key that only the server knows.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_frontend::kept_check;
use afflux_volume::Before;
use bytes::Bytes;

use crate::status::Status;
use crate::v3::reply_cache::KeptReply;

/// Memory as words: all its users read and write it as atomic numbers.
pub type ReplyWords = Arc<dyn AsRef<[AtomicU64]> + Send + Sync>;

/// Words of an entry.
const ENTRY_WORDS: usize = 64;

/// The places of an entry's words.
mod at {
    /// The check of the key, the time and the object. The entry counts once it is there.
    pub(super) const BEGUN: usize = 0;
    pub(super) const KEY: usize = 1;
    pub(super) const TIME: usize = 4;
    pub(super) const OBJECT: usize = 5;
    /// The check of the reply, which counts once it is there.
    pub(super) const ANSWERED: usize = 6;
    /// The status in the upper half, the length in the lower.
    pub(super) const REPLY: usize = 7;
    pub(super) const BYTES: usize = 8;
}

/// Most bytes of a reply with its mark. A change's longest reply, CREATE's, has 308.
const REPLY_BYTES_MAX: usize = (ENTRY_WORDS - at::BYTES) * 8;

/// The identity of a call, as hashes.
pub(crate) type KeptKey = [u64; at::TIME - at::KEY];

/// The entries.
pub(crate) struct KeptReplies {
    words: ReplyWords,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    /// The one that has been unused for the longest time comes first.
    unused: VecDeque<usize>,
    /// Calls of earlier servers.
    left: BTreeMap<KeptKey, usize>,
}

/// An earlier server's progress with a call.
pub(crate) enum Left {
    /// It has answered, or was about to.
    Answered(KeptReply),
    /// It has not.
    Unanswered(Before),
}

/// The entry of a call that runs. Its drop gives the place to later calls, after all others.
pub(crate) struct KeptCall<'a> {
    of: &'a KeptReplies,
    place: Option<usize>,
}

impl KeptReplies {
    /// The entries in this memory, with those of earlier servers. Any bytes will do.
    pub(crate) fn new(words: ReplyWords) -> Self {
        let count = (*words).as_ref().len() / ENTRY_WORDS;
        let replies = Self { words, places: Mutex::default() };
        let (mut unused, mut left) = (VecDeque::with_capacity(count), BTreeMap::new());
        let mut found = Vec::new();
        for place in 0..count {
            match replies.key(place) {
                Some(key) => {
                    left.insert(key, place);
                    found.push(place);
                }
                None => unused.push_back(place),
            }
        }
        // The oldest first, as far as the wall clock tells.
        found.sort_by_key(|place| replies.get(*place, at::TIME));
        unused.extend(found);
        *replies.lock() = Places { unused, left };
        replies
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, place: usize) -> &[AtomicU64] {
        &(*self.words).as_ref()[place * ENTRY_WORDS..(place + 1) * ENTRY_WORDS]
    }

    fn get(&self, place: usize, at: usize) -> u64 {
        self.entry(place)[at].load(Ordering::Acquire)
    }

    fn begun_check(&self, place: usize) -> u64 {
        kept_check((at::KEY..at::ANSWERED).map(|at| self.get(place, at)))
    }

    /// The key of an entry that counts.
    fn key(&self, place: usize) -> Option<KeptKey> {
        let check = self.get(place, at::BEGUN);
        let key = std::array::from_fn(|at| self.get(place, at::KEY + at));
        (check != 0 && check == self.begun_check(place)).then_some(key)
    }

    fn answered_check(&self, place: usize, bytes: usize) -> u64 {
        let reply = at::REPLY..at::BYTES + bytes.div_ceil(8);
        kept_check([self.get(place, at::BEGUN)].into_iter().chain(reply.map(|at| self.get(place, at))))
    }

    fn reply(&self, place: usize) -> Option<KeptReply> {
        let head = self.get(place, at::REPLY);
        let (status, bytes) = (Status::from_code((head >> 32) as u32)?, head as u32 as usize);
        if bytes > REPLY_BYTES_MAX || self.get(place, at::ANSWERED) != self.answered_check(place, bytes) {
            return None;
        }
        let words = (at::BYTES..ENTRY_WORDS).flat_map(|at| self.get(place, at).to_le_bytes());
        Some(KeptReply { record: words.take(bytes).collect::<Vec<u8>>().into(), status })
    }

    /// Begins a call, before the host is asked. `time_ns` is the wall clock's, and `object` the number of the object that a
    /// rename is about. Also returns what an earlier server has done of the same call.
    pub(crate) fn begin(&self, key: KeptKey, time_ns: u64, object: u64) -> (KeptCall<'_>, Left) {
        let mut places = self.lock();
        let left = places.left.remove(&key).filter(|place| self.key(*place) == Some(key));
        if let Some(place) = left {
            places.unused.retain(|unused| *unused != place);
            let before = Before::Begun { value: self.get(place, at::TIME), object: self.get(place, at::OBJECT) };
            let left = self.reply(place).map_or(Left::Unanswered(before), Left::Answered);
            return (KeptCall { of: self, place: Some(place) }, left);
        }
        let place = places.unused.pop_front();
        if let Some(place) = place {
            self.write(place, key, time_ns, object);
        }
        (KeptCall { of: self, place }, Left::Unanswered(Before::Nothing))
    }

    fn write(&self, place: usize, key: KeptKey, time_ns: u64, object: u64) {
        let entry = self.entry(place);
        entry[at::BEGUN].store(0, Ordering::Release);
        entry[at::ANSWERED].store(0, Ordering::Release);
        entry[at::KEY..].iter().zip(key).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        entry[at::TIME].store(time_ns, Ordering::Relaxed);
        entry[at::OBJECT].store(object, Ordering::Relaxed);
        entry[at::BEGUN].store(self.begun_check(place), Ordering::Release);
    }
}

impl KeptCall<'_> {
    /// The call has this reply, which the client may get from now on.
    pub(crate) fn answered(&self, reply: &KeptReply) {
        let bytes: &Bytes = &reply.record;
        let Some(place) = self.place.filter(|_| bytes.len() <= REPLY_BYTES_MAX) else { return };
        let entry = self.of.entry(place);
        let head = u64::from(reply.status.code()) << 32 | bytes.len() as u64;
        entry[at::REPLY].store(head, Ordering::Relaxed);
        for (word, chunk) in entry[at::BYTES..].iter().zip(bytes.chunks(8)) {
            let mut value = [0; 8];
            value[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(value), Ordering::Relaxed);
        }
        entry[at::ANSWERED].store(self.of.answered_check(place, bytes.len()), Ordering::Release);
    }
}

impl Drop for KeptCall<'_> {
    fn drop(&mut self) {
        self.of.lock().unused.extend(self.place);
    }
}

#[cfg(test)]
mod tests;
