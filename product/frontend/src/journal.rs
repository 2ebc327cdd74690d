//! A journal of the newest changing calls and their answers, in memory that outlives the process.
//!
//! Owns: the form of this memory, the check of each entry, the places of entries.
//! Does not own: the memory (worlds), which calls these are and their keys (front ends), the judgement of a call that was
//! begun (the volume).
//! Invariants: a call has its entry before the host is asked, and its answer there before the client gets it. An entry whose
//! check fails is never used. The last calls of all clients together have entries. No number or name of a client need
//! stand there: keys may be hashes, with a key that only the server knows.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_volume::Before;

use crate::kept_check::kept_check;
use crate::kept_records::KeptWords;

/// The places of an entry's words.
mod at {
    /// The check of the key, the value and the object. The entry counts once it is there.
    pub(super) const BEGUN: usize = 0;
    pub(super) const KEY: usize = 1;
    pub(super) const VALUE: usize = 4;
    pub(super) const OBJECT: usize = 5;
    /// The check of the answer, which counts once it is there.
    pub(super) const ANSWERED: usize = 6;
    /// The answer's code in the upper half, the length in the lower.
    pub(super) const ANSWER: usize = 7;
    pub(super) const BYTES: usize = 8;
}

/// Words of an entry whose answer has no bytes.
pub const ENTRY_WORDS_MIN: usize = at::BYTES;

/// The identity of a call: hashes, or numbers that nobody makes up.
pub type CallKey = [u64; at::VALUE - at::KEY];

/// The journal: a part of the memory, in entries of equal size.
pub struct CallJournal {
    words: KeptWords,
    part: Range<usize>,
    entry_words: usize,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    /// The one that has been unused for the longest time comes first.
    unused: VecDeque<usize>,
    /// Calls of earlier processes.
    left: BTreeMap<CallKey, usize>,
}

/// An earlier process's progress with a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Left {
    /// None.
    Nothing,
    /// The host may have been asked.
    Begun {
        /// The value of the beginning: the wall clock, say.
        value: u64,
        /// The number of the object at the beginning; zero if unknown.
        object: u64,
    },
    /// It has answered, or was about to.
    Answered {
        /// The code of the answer.
        code: u32,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

impl Left {
    /// The progress as the volume is told of it.
    pub fn before(&self) -> Before {
        match self {
            Self::Nothing => Before::Nothing,
            Self::Begun { value, object } => Before::Begun { value: *value, object: *object },
            Self::Answered { .. } => Before::Done,
        }
    }
}

/// A call that runs. Its drop gives the place to later calls, after all others.
pub struct JournalCall {
    of: Arc<CallJournal>,
    key: CallKey,
    place: Option<usize>,
}

impl CallJournal {
    /// The entries in this part of the memory, with those of earlier processes. Any bytes will do. `age` orders the entries
    /// by key and value: the least gives its place first.
    pub fn new(
        words: KeptWords,
        part: Range<usize>,
        entry_words: usize,
        age: impl Fn(&CallKey, u64) -> u64,
    ) -> Arc<Self> {
        let count = part.len() / entry_words;
        let journal = Self { words, part, entry_words, places: Mutex::default() };
        let (mut unused, mut left) = (VecDeque::with_capacity(count), BTreeMap::new());
        let mut found = Vec::new();
        for place in 0..count {
            match journal.key(place) {
                Some(key) => {
                    found.push((age(&key, journal.get(place, at::VALUE)), place));
                    left.insert(key, place);
                }
                None => unused.push_back(place),
            }
        }
        found.sort_unstable();
        unused.extend(found.into_iter().map(|(_, place)| place));
        *journal.lock() = Places { unused, left };
        Arc::new(journal)
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Most bytes of an answer that is kept.
    fn answer_bytes_max(&self) -> usize {
        (self.entry_words - at::BYTES) * 8
    }

    fn word(&self, place: usize, at: usize) -> &AtomicU64 {
        &(*self.words).as_ref()[self.part.start + place * self.entry_words + at]
    }

    fn get(&self, place: usize, at: usize) -> u64 {
        self.word(place, at).load(Ordering::Acquire)
    }

    fn set(&self, place: usize, at: usize, value: u64) {
        self.word(place, at).store(value, Ordering::Release);
    }

    fn begun_check(&self, place: usize) -> u64 {
        kept_check((at::KEY..at::ANSWERED).map(|at| self.get(place, at)))
    }

    /// The key of an entry that counts.
    fn key(&self, place: usize) -> Option<CallKey> {
        let check = self.get(place, at::BEGUN);
        let key = std::array::from_fn(|at| self.get(place, at::KEY + at));
        (check != 0 && check == self.begun_check(place)).then_some(key)
    }

    fn answered_check(&self, place: usize, bytes: usize) -> u64 {
        let answer = at::ANSWER..at::BYTES + bytes.div_ceil(8);
        kept_check([self.get(place, at::BEGUN)].into_iter().chain(answer.map(|at| self.get(place, at))))
    }

    fn left_at(&self, place: usize) -> Left {
        let head = self.get(place, at::ANSWER);
        let (code, bytes) = ((head >> 32) as u32, head as u32 as usize);
        if bytes > self.answer_bytes_max() || self.get(place, at::ANSWERED) != self.answered_check(place, bytes) {
            return Left::Begun { value: self.get(place, at::VALUE), object: self.get(place, at::OBJECT) };
        }
        let words = (at::BYTES..self.entry_words).flat_map(|at| self.get(place, at).to_le_bytes());
        Left::Answered { code, bytes: words.take(bytes).collect() }
    }

    /// The part of a call that an earlier process has done. It is asked once, before or by [`CallJournal::begin`].
    pub fn left(&self, key: &CallKey) -> Left {
        let place = self.lock().left.get(key).copied().filter(|place| self.key(*place).as_ref() == Some(key));
        place.map_or(Left::Nothing, |place| self.left_at(place))
    }

    /// Begins a call, before the host is asked. `value` is the wall clock's time, say, and `object` the number of the object
    /// that a rename is about. Also returns what an earlier process has done of the same call.
    pub fn begin(self: &Arc<Self>, key: CallKey, value: u64, object: u64) -> (JournalCall, Left) {
        let mut places = self.lock();
        let left = places.left.remove(&key).filter(|place| self.key(*place) == Some(key));
        if let Some(place) = left {
            places.unused.retain(|unused| *unused != place);
            let call = JournalCall { of: Arc::clone(self), key, place: Some(place) };
            return (call, self.left_at(place));
        }
        let call = JournalCall { of: Arc::clone(self), key, place: places.unused.pop_front() };
        call.note(value, object);
        (call, Left::Nothing)
    }
}

impl JournalCall {
    /// Notes another value and object of the beginning, before the host is asked.
    pub fn note(&self, value: u64, object: u64) {
        let (of, Some(place)) = (&self.of, self.place) else { return };
        of.set(place, at::BEGUN, 0);
        of.set(place, at::ANSWERED, 0);
        self.key.iter().enumerate().for_each(|(at, word)| of.set(place, at::KEY + at, *word));
        of.set(place, at::VALUE, value);
        of.set(place, at::OBJECT, object);
        of.set(place, at::BEGUN, of.begun_check(place));
    }

    /// The call has this answer, which the client may get from now on.
    pub fn answered(&self, code: u32, bytes: &[u8]) {
        let of = &self.of;
        let Some(place) = self.place.filter(|_| bytes.len() <= of.answer_bytes_max()) else { return };
        of.set(place, at::ANSWER, u64::from(code) << 32 | bytes.len() as u64);
        for (at, chunk) in bytes.chunks(8).enumerate() {
            let mut value = [0; 8];
            value[..chunk.len()].copy_from_slice(chunk);
            of.set(place, at::BYTES + at, u64::from_le_bytes(value));
        }
        of.set(place, at::ANSWERED, of.answered_check(place, bytes.len()));
    }

    /// The call has failed: its repetition is a new one.
    pub fn forget(&self) {
        self.place.iter().for_each(|place| self.of.set(*place, at::BEGUN, 0));
    }
}

impl Drop for JournalCall {
    fn drop(&mut self) {
        self.of.lock().unused.extend(self.place);
    }
}

#[cfg(test)]
mod tests;
