//! Changes that a killed server may have carried out, and that the kernel asks for again.
//!
//! Owns: the entry of a change, from its beginning to its outcome; the changes in memory of the form before.
//! Does not own: the journal of entries (`afflux_frontend`), the repetition itself (`operations`).
//! Invariants: a change has its entry before the server asks the host. The entry has the outcome, also a refusal,
//! before the kernel gets the answer. The entry stays after the call's end until others need the place, because the
//! server may be killed before the kernel has the answer. A call that is given up in between leaves its change begun:
//! the host may still carry it out.

use std::sync::Arc;

use afflux_frontend::{CallJournal, EarlierProgress, EntryForm, EntryOwner, JournalCall, words_checksum};
use afflux_volume::{Before, Caller, VolumeError};

use super::{CHANGE_WORDS, CHANGES, CHANGES_AT, FILES_AT, MountState};
use crate::abi::UNIQUE_RESENT;
use crate::reply::Errno;

/// Words of an entry in the form before: the request, the state with its check, the value, the object.
const WORDS_BEFORE: usize = 4;
const STATE_BITS: u64 = 0xff;
const BEGUN: u64 = 1;
const DONE: u64 = 2;

/// The key of a change is the request's number and its user. The kernel's numbers grow.
const CHANGE_FORM: EntryForm = EntryForm {
    words: CHANGE_WORDS,
    age: |&[unique, ..], _| unique,
    owner: |&[_, user, _]| EntryOwner { party: user, user: 0, slot: None },
};

/// A change under way.
pub(crate) struct BegunChange {
    /// None for a mount that ends with its server.
    entry: Option<JournalCall>,
    pub(crate) before: Before,
}

impl BegunChange {
    /// Begins a change for a request, with a value and an object that a repetition needs. It fails if an earlier server
    /// has refused it.
    pub(crate) fn begin(
        journal: Option<&Arc<CallJournal>>,
        (unique, user): (u64, u32),
        value: u64,
        object: u64,
    ) -> Result<Self, Errno> {
        let Some(journal) = journal else { return Ok(Self { entry: None, before: Before::Nothing }) };
        let number = unique & !UNIQUE_RESENT;
        let (entry, left) = journal.begin([[number, user.into(), 0], [number, 0, 0]], value, object);
        if unique & UNIQUE_RESENT == 0 {
            if left != EarlierProgress::Nothing {
                // The kernel has given the number of an earlier request again.
                entry.note(value, object);
            }
            return Ok(Self { entry: Some(entry), before: Before::Nothing });
        }
        match left {
            EarlierProgress::Answered { code, .. } if code != 0 => Err(Errno(code as i32)),
            left => Ok(Self { entry: Some(entry), before: left.before(0) }),
        }
    }

    /// The caller of the change, which notes when the host has carried it out.
    pub(crate) fn of(&self, caller: Caller) -> Caller {
        match &self.entry {
            Some(entry) => caller.keeping(entry.step(0, self.before)),
            None => caller,
        }
    }

    /// The host has carried it out. A repetition is to do the same once more.
    pub(crate) fn stays_begun(&self) {
        self.entry.iter().for_each(JournalCall::ended);
    }

    /// Nothing was done: its repetition is a new one.
    pub(crate) fn forget(&self) {
        self.entry.iter().for_each(JournalCall::forget);
    }

    /// It has this outcome.
    pub(crate) fn ended<T>(&self, outcome: &Result<T, VolumeError>) {
        let code = outcome.as_ref().map_or_else(|error| Errno::from(error.clone()).0, |_| 0);
        self.entry.iter().for_each(|entry| entry.answered(code as u32, &[], 1));
    }
}

impl MountState {
    /// The journal of changes, with those of earlier servers.
    pub(crate) fn changes(&self) -> Arc<CallJournal> {
        CallJournal::new(Arc::clone(&self.words), CHANGES_AT..FILES_AT, CHANGE_FORM)
    }

    /// Turns the changes of the form before into entries of the journal.
    ///
    /// An entry is twice as long as before, and the last ones stand in the place of the old ones. Each new entry
    /// overwrites only old ones that have become entries. So a kill in between loses none, and the next server goes on.
    pub(super) fn convert_changes(&self) {
        let journal = self.changes();
        for at in (0..CHANGES).map(|slot| FILES_AT - (CHANGES - slot) * WORDS_BEFORE) {
            let [unique, state, value, object] = [0, 1, 2, 3].map(|word| self.value(at + word));
            let is_whole = state & !STATE_BITS == words_checksum([unique, value, object]) & !STATE_BITS;
            if unique == 0 || !is_whole || !matches!(state & STATE_BITS, BEGUN | DONE) {
                continue;
            }
            let (entry, _) = journal.begin([[unique, 0, 0]; 2], value, object);
            if state & STATE_BITS == DONE {
                entry.answered(0, &[], 1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
