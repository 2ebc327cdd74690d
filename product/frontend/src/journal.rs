//! A journal of the newest changing calls and their answers, in memory that outlives the process.
//!
//! Owns: the form of this memory, the check of each entry, the slots of entries.
//! Does not own: the memory (worlds), which calls these are and their keys (front ends), the judgement of a call that
//! was begun (the volume).
//! Invariants: a call has its entry before the host is asked, and its answer there before the client gets it. An entry
//! whose check fails is never used. A step that the host has carried out is noted while the call runs, so a later
//! process knows it. The status of a call that has ended stays, however long its answer was. If all entries are in use,
//! the owner with the most gives up its oldest: one that calls often takes no other's reply, before a kill or after it.
//! Calls that ran at the kill go last, since clients repeat them. No number or name of a client need be stored there:
//! keys may be hashes, with a key that only the server knows.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_volume::{Before, PersistedChange};

use crate::owned_queues::OwnedQueues;
use crate::persisted::{PersistedWords, words_checksum};

/// The slots of an entry's words.
mod at {
    /// The check of the key, the value and the object. The entry counts once it is there. With [`super::DONE`] the host
    /// has carried out a step, and the value's lowest bits are the step's number.
    pub(super) const BEGUN: usize = 0;
    pub(super) const KEY: usize = 1;
    pub(super) const VALUE: usize = 4;
    pub(super) const OBJECT: usize = 5;
    /// The check of the answer, which counts once it is there. Of a call that has ended without one, [`super::ENDED`]
    /// with the check of its beginning; [`super::TOO_LONG`] with the check of the answer's first word if the answer did
    /// not fit.
    pub(super) const ANSWERED: usize = 6;
    /// The answer's code in the upper half, the length in the lower; of one that did not fit, the number of its steps.
    pub(super) const ANSWER: usize = 7;
    pub(super) const BYTES: usize = 8;
}

/// Words of an entry whose answer has no bytes.
pub const ENTRY_WORDS_MIN: usize = at::BYTES;

/// Marks a call that has ended without an answer to persist.
const ENDED: u64 = 0x454e_4445_4421_2121;
/// Marks a call that has ended with an answer that did not fit.
const TOO_LONG: u64 = 0x4c4f_4e47_4c4f_4e47;
/// Marks a call of which the host has carried out a step.
const DONE: u64 = 0x444f_4e45_444f_4e45;
/// The lowest bits of a value, which number the step.
const STEP: u64 = u16::MAX as u64;

/// The identity of a call: hashes, or numbers that nobody makes up.
pub type CallKey = [u64; at::VALUE - at::KEY];

/// The user that may repeat a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryOwner {
    /// The party whose calls count against one quota, as a number or a hash.
    pub party: u64,
    /// One of the party.
    pub user: u64,
    /// The slot of the user's calls in which a call ends the need for the one before it.
    pub slot: Option<u64>,
}

/// The form of a journal's entries.
#[derive(Clone, Copy)]
pub struct EntryForm {
    /// Words of an entry.
    pub words: usize,
    /// Orders the entries of earlier processes by key and value: the entry with the least age gives up its slot first.
    pub age: fn(&CallKey, u64) -> u64,
    /// The owner of a call with this key.
    pub owner: fn(&CallKey) -> EntryOwner,
}

/// The journal: a part of the memory, in entries of equal size.
pub struct CallJournal {
    words: PersistedWords,
    part: Range<usize>,
    form: EntryForm,
    count: usize,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    /// Without a call.
    free: VecDeque<usize>,
    /// Calls that have ended, with their slots.
    ended: OwnedQueues<u64, u64, (usize, Option<u64>)>,
    /// Calls that ran when an earlier process was killed, the oldest first.
    cut_off: VecDeque<usize>,
    /// Numbers of running calls by party.
    running: BTreeMap<u64, usize>,
    /// Calls of earlier processes.
    earlier: BTreeMap<CallKey, usize>,
}

/// The newest step of a call that the host has carried out. All changes of earlier steps are done, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoneStep {
    /// Its number in the call, from 0 on.
    pub step: u16,
    /// The number of the object that it made; zero if it made none.
    pub object: u64,
}

/// An earlier process's progress with a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EarlierProgress {
    /// None.
    Nothing,
    /// The host may have been asked.
    Begun {
        /// The value of the beginning: the wall clock, say.
        value: u64,
        /// The number of the object at the beginning; zero if unknown.
        object: u64,
    },
    /// The host has carried out this step.
    Done(DoneStep),
    /// It has answered, or was about to.
    Answered {
        /// The code of the answer.
        code: u32,
        /// Bytes of the entry, in the front end's own form.
        bytes: Vec<u8>,
        /// The newest step that the host has carried out.
        done: Option<DoneStep>,
    },
    /// It has answered, or was about to, with more bytes than are persisted.
    TooLong {
        /// The code of the answer.
        code: u32,
        /// The number of steps that it had.
        steps: u32,
        /// The newest step that the host has carried out.
        done: Option<DoneStep>,
    },
}

impl EarlierProgress {
    /// The progress of one step of the call, in the form that the volume takes.
    pub fn before(&self, step: u16) -> Before {
        let (done, begun) = match *self {
            Self::Nothing => return Before::Nothing,
            Self::Begun { value, object } => return Before::Begun { value, object },
            Self::Done(done) => (Some(done), true),
            Self::Answered { code, done, .. } | Self::TooLong { code, done, .. } => (done, code != 0),
        };
        match done {
            Some(done) if done.step == step => Before::Done { object: done.object },
            Some(done) if done.step > step => Before::Done { object: 0 },
            _ if begun => Before::Begun { value: 0, object: 0 },
            _ => Before::Done { object: 0 },
        }
    }

    /// The code that a step of the call has failed with.
    pub fn refused(&self, step: u16) -> Option<u32> {
        match *self {
            Self::TooLong { code, steps, .. } if code != 0 && u32::from(step) + 1 == steps => Some(code),
            _ => None,
        }
    }
}

/// A call that runs. The drop of the last clone gives the slot to later calls, as its owner's newest.
#[derive(Clone)]
pub struct JournalCall(Arc<RunningEntry>);

struct RunningEntry {
    of: Arc<CallJournal>,
    key: CallKey,
    slot: Option<usize>,
}

/// One step of a call, for the volume.
struct CallStep {
    call: JournalCall,
    step: u16,
    before: Before,
}

impl fmt::Debug for CallStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} ({:?})", self.step, self.before)
    }
}

impl PersistedChange for CallStep {
    fn before(&self) -> Before {
        self.before
    }

    fn note_done(&self, object: u64) {
        self.call.note_done(DoneStep { step: self.step, object });
    }
}

impl CallJournal {
    /// The entries in this part of the memory, with those of earlier processes. Any bytes will do.
    pub fn new(words: PersistedWords, part: Range<usize>, form: EntryForm) -> Arc<Self> {
        let count = part.len() / form.words;
        let journal = Self { words, part, form, count, slots: Mutex::default() };
        let (mut slots, mut found) = (Slots::default(), Vec::new());
        for slot in 0..count {
            match journal.key(slot) {
                Some(key) => found.push(((form.age)(&key, journal.get(slot, at::VALUE)), slot, key)),
                None => slots.free.push_back(slot),
            }
        }
        found.sort_unstable();
        for (_, slot, key) in found {
            slots.earlier.insert(key, slot);
            match journal.has_ended(slot) {
                true => slots.end((form.owner)(&key), slot),
                false => slots.cut_off.push_back(slot),
            }
        }
        *journal.lock() = slots;
        Arc::new(journal)
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Most bytes of an answer that is persisted.
    fn answer_bytes_max(&self) -> usize {
        (self.form.words - at::BYTES) * 8
    }

    fn word(&self, slot: usize, at: usize) -> &AtomicU64 {
        &(*self.words).as_ref()[self.part.start + slot * self.form.words + at]
    }

    fn get(&self, slot: usize, at: usize) -> u64 {
        self.word(slot, at).load(Ordering::Acquire)
    }

    fn set(&self, slot: usize, at: usize, value: u64) {
        self.word(slot, at).store(value, Ordering::Release);
    }

    fn begun_check(&self, slot: usize) -> u64 {
        words_checksum((at::KEY..at::ANSWERED).map(|at| self.get(slot, at)))
    }

    /// The key of an entry that counts.
    fn key(&self, slot: usize) -> Option<CallKey> {
        let check = self.get(slot, at::BEGUN);
        let key = std::array::from_fn(|at| self.get(slot, at::KEY + at));
        let counts = check == self.begun_check(slot) || self.is_done(slot);
        (check != 0 && counts).then_some(key)
    }

    /// Whether the host has carried out a step.
    fn is_done(&self, slot: usize) -> bool {
        self.get(slot, at::BEGUN) == DONE ^ self.begun_check(slot)
    }

    fn done_step(&self, slot: usize) -> Option<DoneStep> {
        let step = (self.get(slot, at::VALUE) & STEP) as u16;
        self.is_done(slot).then(|| DoneStep { step, object: self.get(slot, at::OBJECT) })
    }

    fn answered_check(&self, slot: usize, bytes: usize) -> u64 {
        let answer = at::ANSWER..at::BYTES + bytes.div_ceil(8);
        words_checksum([self.get(slot, at::BEGUN)].into_iter().chain(answer.map(|at| self.get(slot, at))))
    }

    /// The code and the length of the answer in an entry.
    fn answer(&self, slot: usize) -> Option<(u32, usize)> {
        let head = self.get(slot, at::ANSWER);
        let (code, bytes) = ((head >> 32) as u32, head as u32 as usize);
        let is_whole =
            bytes <= self.answer_bytes_max() && self.get(slot, at::ANSWERED) == self.answered_check(slot, bytes);
        is_whole.then_some((code, bytes))
    }

    fn too_long_check(&self, slot: usize) -> u64 {
        TOO_LONG ^ words_checksum([at::BEGUN, at::ANSWER].map(|at| self.get(slot, at)))
    }

    /// The code and the number of steps of a call whose answer did not fit.
    fn too_long(&self, slot: usize) -> Option<(u32, u32)> {
        let head = self.get(slot, at::ANSWER);
        (self.get(slot, at::ANSWERED) == self.too_long_check(slot)).then_some(((head >> 32) as u32, head as u32))
    }

    fn has_ended(&self, slot: usize) -> bool {
        let is_ended = self.get(slot, at::ANSWERED) == ENDED ^ self.get(slot, at::BEGUN);
        is_ended || self.answer(slot).is_some() || self.too_long(slot).is_some()
    }

    fn earlier_at(&self, slot: usize) -> EarlierProgress {
        let done = self.done_step(slot);
        if let Some((code, bytes)) = self.answer(slot) {
            let words = (at::BYTES..self.form.words).flat_map(|at| self.get(slot, at).to_le_bytes());
            return EarlierProgress::Answered { code, bytes: words.take(bytes).collect(), done };
        }
        match (self.too_long(slot), done) {
            (Some((code, steps)), done) => EarlierProgress::TooLong { code, steps, done },
            (None, Some(done)) => EarlierProgress::Done(done),
            (None, None) => {
                EarlierProgress::Begun { value: self.get(slot, at::VALUE), object: self.get(slot, at::OBJECT) }
            }
        }
    }

    /// The slot of a call of an earlier process.
    fn find(&self, slots: &Slots, key: &CallKey) -> Option<usize> {
        slots.earlier.get(key).copied().filter(|slot| self.key(*slot).as_ref() == Some(key))
    }

    /// The steps of a call that an earlier process has done. The caller asks once, before [`CallJournal::begin`] or
    /// through it.
    pub fn earlier(&self, key: &CallKey) -> EarlierProgress {
        let found = self.find(&self.lock(), key);
        found.map_or(EarlierProgress::Nothing, |slot| self.earlier_at(slot))
    }

    /// Begins a call, before the host is asked. `value` is the wall clock's time, say, and `object` the number of the
    /// object that a rename is about. Also returns what an earlier process has done of the same call.
    pub fn begin(self: &Arc<Self>, key: CallKey, value: u64, object: u64) -> (JournalCall, EarlierProgress) {
        let mut slots = self.lock();
        if let Some(slot) = self.find(&slots, &key) {
            slots.earlier.remove(&key);
            slots.resume((self.form.owner)(&key), slot);
            let entry = RunningEntry { of: Arc::clone(self), key, slot: Some(slot) };
            return (JournalCall(Arc::new(entry)), self.earlier_at(slot));
        }
        let slot = slots.take((self.form.owner)(&key), self.count);
        let call = JournalCall(Arc::new(RunningEntry { of: Arc::clone(self), key, slot }));
        call.note(value, object);
        (call, EarlierProgress::Nothing)
    }
}

impl Slots {
    /// A call has ended, and its owner may repeat it.
    fn end(&mut self, owner: EntryOwner, slot: usize) {
        self.ended.push(owner.party, owner.user, (slot, owner.slot));
    }

    /// A call of an earlier process runs again.
    fn resume(&mut self, owner: EntryOwner, slot: usize) {
        let is_it = |(it, _): &(usize, _)| *it == slot;
        if self.ended.take((owner.party, owner.user), |calls| calls.iter().position(is_it)).is_none() {
            self.cut_off.retain(|it| *it != slot);
        }
        *self.running.entry(owner.party).or_default() += 1;
    }

    /// A slot for a new call, of `count` in all. None if too many calls run.
    fn take(&mut self, owner: EntryOwner, count: usize) -> Option<usize> {
        let running = self.running.get(&owner.party).copied().unwrap_or_default();
        // The rest is for calls of others.
        if running > 0 && running >= count / 4 * 3 {
            return None;
        }
        let same = |calls: &VecDeque<(usize, Option<u64>)>| calls.iter().position(|(_, slot)| *slot == owner.slot);
        let before = match owner.slot {
            Some(_) => self.ended.take((owner.party, owner.user), same).map(|(slot, _)| slot),
            None => None,
        };
        let slot = before.or_else(|| self.free.pop_front()).or_else(|| self.evict(count))?;
        *self.running.entry(owner.party).or_default() += 1;
        Some(slot)
    }

    fn evict(&mut self, count: usize) -> Option<usize> {
        // Clients that are gone do not repeat theirs.
        if self.cut_off.len() <= count / 2
            && let Some(owner) = self.ended.heaviest(|_, _| false)
        {
            return self.ended.take(owner, |_| Some(0)).map(|(slot, _)| slot);
        }
        self.cut_off.pop_front()
    }

    fn stop(&mut self, party: u64) {
        if let Entry::Occupied(mut running) = self.running.entry(party) {
            *running.get_mut() -= 1;
            if *running.get() == 0 {
                running.remove();
            }
        }
    }
}

impl JournalCall {
    /// Notes another value and object of the beginning, before the host is asked.
    pub fn note(&self, value: u64, object: u64) {
        self.0.begin(value, object, 0);
    }

    /// A step of the call, of which an earlier process has done so much.
    pub fn step(&self, step: u16, before: Before) -> Arc<dyn PersistedChange> {
        Arc::new(CallStep { call: self.clone(), step, before })
    }

    /// The host has carried out a step.
    pub fn note_done(&self, done: DoneStep) {
        let RunningEntry { of, slot: Some(slot), .. } = &*self.0 else { return };
        let value = of.get(*slot, at::VALUE) & !STEP | u64::from(done.step);
        self.0.begin(value, done.object, DONE);
    }

    /// The call has this answer, which the client may get from now on. Of a longer one than the bound, only the code
    /// and the number of the call's steps are persisted.
    pub fn answered(&self, code: u32, bytes: &[u8], steps: u32) {
        let RunningEntry { of, slot: Some(slot), .. } = &*self.0 else { return };
        let (of, slot, code) = (of, *slot, u64::from(code) << 32);
        if bytes.len() > of.answer_bytes_max() {
            of.set(slot, at::ANSWER, code | u64::from(steps));
            return of.set(slot, at::ANSWERED, of.too_long_check(slot));
        }
        of.set(slot, at::ANSWER, code | bytes.len() as u64);
        for (at, chunk) in bytes.chunks(8).enumerate() {
            let mut value = [0; 8];
            value[..chunk.len()].copy_from_slice(chunk);
            of.set(slot, at::BYTES + at, u64::from_le_bytes(value));
        }
        of.set(slot, at::ANSWERED, of.answered_check(slot, bytes.len()));
    }

    /// The call has ended. Its repetition is one that was begun.
    pub fn ended(&self) {
        let RunningEntry { of, slot, .. } = &*self.0;
        slot.iter().for_each(|slot| of.set(*slot, at::ANSWERED, ENDED ^ of.get(*slot, at::BEGUN)));
    }

    /// The call has failed: its repetition is a new one.
    pub fn forget(&self) {
        let RunningEntry { of, slot, .. } = &*self.0;
        slot.iter().for_each(|slot| of.set(*slot, at::BEGUN, 0));
    }
}

impl RunningEntry {
    /// Writes the beginning, with a mark.
    fn begin(&self, value: u64, object: u64, mark: u64) {
        let (of, Some(slot)) = (&self.of, self.slot) else { return };
        of.set(slot, at::BEGUN, 0);
        of.set(slot, at::ANSWERED, 0);
        self.key.iter().enumerate().for_each(|(at, word)| of.set(slot, at::KEY + at, *word));
        of.set(slot, at::VALUE, value);
        of.set(slot, at::OBJECT, object);
        of.set(slot, at::BEGUN, mark ^ of.begun_check(slot));
    }
}

impl Drop for RunningEntry {
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        let (owner, mut slots) = ((self.of.form.owner)(&self.key), self.of.lock());
        slots.stop(owner.party);
        match self.of.get(slot, at::BEGUN) {
            0 => slots.free.push_back(slot),
            _ => slots.end(owner, slot),
        }
    }
}

#[cfg(test)]
mod tests;
