//! The calls that a killed server may have carried out, and the kernel sends again.
//!
//! Owns: the nodes and files that each answer grants; the changes that a call has begun, with the data that makes a
//! repetition harmless.
//! Does not own: the repetition itself (`operations`), the records of nodes and files (`kept`).
//! Invariants: a change has its entry before the host is asked for it. An entry stays after its call's end until others
//! need the place, because the server may be killed before the kernel has the answer. A lost entry leaves a lookup
//! counted that the kernel does not know, and never the reverse.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use afflux_frontend::kept_check;
use afflux_volume::Before;

use super::{CHANGE_WORDS, CHANGES, CHANGES_AT, GRANT_WORDS, GRANTS, GRANTS_AT, Kept};
use crate::abi::UNIQUE_RESENT;

const BEGUN: u64 = 1;
const DONE: u64 = 2;
/// The bits of an entry's state that are no check.
const STATE_BITS: u64 = 0xff;

/// The journal of a mount.
pub(crate) struct Journal {
    kept: Kept,
    next_grant: AtomicUsize,
    changes: Mutex<Changes>,
}

/// The places of the changes.
struct Changes {
    /// The one that has been unused for the longest time comes first.
    unused: VecDeque<usize>,
    /// Changes of earlier servers, by request.
    left: BTreeMap<u64, usize>,
    /// Grants of earlier servers, by request.
    granted: BTreeMap<u64, Vec<usize>>,
}

/// Nodes and files of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Grant {
    Node(u64),
    File(u64),
}

impl Journal {
    /// The journal in this memory, with the entries of earlier servers.
    pub(crate) fn new(kept: Kept) -> Self {
        let mut changes =
            Changes { unused: VecDeque::with_capacity(CHANGES), left: BTreeMap::new(), granted: BTreeMap::new() };
        let mut found = Vec::new();
        for place in 0..CHANGES {
            match read(words(&kept, CHANGES_AT, CHANGE_WORDS, place)) {
                Some((unique, _)) => {
                    changes.left.insert(unique, place);
                    found.push(place);
                }
                None => changes.unused.push_back(place),
            }
        }
        changes.unused.extend(found);
        for place in 0..GRANTS {
            if let Some((unique, _)) = grant_in(words(&kept, GRANTS_AT, GRANT_WORDS, place)) {
                changes.granted.entry(unique).or_default().push(place);
            }
        }
        Self { kept, next_grant: AtomicUsize::new(0), changes: Mutex::new(changes) }
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the answer to a request will tell the kernel.
    pub(crate) fn grant(&self, unique: u64, grant: Grant) {
        let place = self.next_grant.fetch_add(1, Ordering::Relaxed) % GRANTS;
        let words = words(&self.kept, GRANTS_AT, GRANT_WORDS, place);
        let unique = unique & !UNIQUE_RESENT;
        let (node, file) = match grant {
            Grant::Node(node) => (node, 0),
            Grant::File(file) => (0, file),
        };
        words[0].store(0, Ordering::Release);
        words[1].store(node, Ordering::Relaxed);
        words[2].store(file, Ordering::Relaxed);
        words[3].store(kept_check([unique, node, file]), Ordering::Relaxed);
        words[0].store(unique, Ordering::Release);
    }

    /// Takes the grants of earlier servers for a request that the kernel sends again: it got no answer.
    pub(crate) fn take_grants(&self, unique: u64) -> Vec<Grant> {
        let places = self.lock().granted.remove(&(unique & !UNIQUE_RESENT)).unwrap_or_default();
        let taken = places.into_iter().filter_map(|place| {
            let words = words(&self.kept, GRANTS_AT, GRANT_WORDS, place);
            // Another answer may have taken the place meanwhile.
            let (_, grant) = grant_in(words).filter(|(of, _)| *of == unique & !UNIQUE_RESENT)?;
            words[0].store(0, Ordering::Release);
            Some(grant)
        });
        taken.collect()
    }

    /// Begins a change for a request, with a value that a repetition needs. Comes before the host is asked.
    pub(crate) fn begin(&self, unique: u64, value: u64, object: u64) -> Change<'_> {
        let mut changes = self.lock();
        let is_again = unique & UNIQUE_RESENT != 0;
        let unique = unique & !UNIQUE_RESENT;
        let left = changes.left.remove(&unique).filter(|_| is_again);
        let found = left.and_then(|place| {
            let (of, before) = read(words(&self.kept, CHANGES_AT, CHANGE_WORDS, place))?;
            (of == unique).then_some((place, before))
        });
        if let Some((place, before)) = found {
            changes.unused.retain(|unused| *unused != place);
            return Change { journal: Some(self), place: Some(place), before, is_done: before == Before::Done };
        }
        let place = changes.unused.pop_front();
        if let Some(place) = place {
            write(words(&self.kept, CHANGES_AT, CHANGE_WORDS, place), unique, value, object);
        }
        Change { journal: Some(self), place, before: Before::Nothing, is_done: false }
    }
}

/// A change under way. Dropped before [`Change::done`], it has failed: its repetition is a new one.
pub(crate) struct Change<'a> {
    journal: Option<&'a Journal>,
    /// None if too many changes are under way.
    place: Option<usize>,
    pub(crate) before: Before,
    is_done: bool,
}

impl Change<'_> {
    /// A change of a mount that ends with its server.
    pub(crate) fn forgotten() -> Self {
        Self { journal: None, place: None, before: Before::Nothing, is_done: false }
    }

    /// The call has succeeded. A repetition finds it as begun, with its value.
    pub(crate) fn keep(mut self) {
        self.is_done = true;
    }

    /// The host has carried it out.
    pub(crate) fn done(&mut self) {
        self.is_done = true;
        if let (Some(journal), Some(place)) = (self.journal, self.place) {
            let state = &words(&journal.kept, CHANGES_AT, CHANGE_WORDS, place)[1];
            state.store(state.load(Ordering::Relaxed) & !STATE_BITS | DONE, Ordering::Release);
        }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let (Some(journal), Some(place)) = (self.journal, self.place) else { return };
        if !self.is_done {
            words(&journal.kept, CHANGES_AT, CHANGE_WORDS, place)[0].store(0, Ordering::Release);
        }
        journal.lock().unused.push_back(place);
    }
}

fn words(kept: &Kept, at: usize, len: usize, place: usize) -> &[AtomicU64] {
    &kept.all()[at + place * len..at + (place + 1) * len]
}

fn grant_in(words: &[AtomicU64]) -> Option<(u64, Grant)> {
    let [unique, node, file, check] = [0, 1, 2, 3].map(|at| words[at].load(Ordering::Acquire));
    let grant = if file == 0 { Grant::Node(node) } else { Grant::File(file) };
    (unique != 0 && check == kept_check([unique, node, file])).then_some((unique, grant))
}

/// The request, the state with its check, the value, the object.
fn write(words: &[AtomicU64], unique: u64, value: u64, object: u64) {
    words[0].store(0, Ordering::Release);
    words[1].store(kept_check([unique, value, object]) & !STATE_BITS | BEGUN, Ordering::Relaxed);
    words[2].store(value, Ordering::Relaxed);
    words[3].store(object, Ordering::Relaxed);
    words[0].store(unique, Ordering::Release);
}

fn read(words: &[AtomicU64]) -> Option<(u64, Before)> {
    let [unique, state, value, object] = [0, 1, 2, 3].map(|at| words[at].load(Ordering::Acquire));
    if unique == 0 || state & !STATE_BITS != kept_check([unique, value, object]) & !STATE_BITS {
        return None;
    }
    match state & STATE_BITS {
        BEGUN => Some((unique, Before::Begun { value, object })),
        DONE => Some((unique, Before::Done)),
        _ => None,
    }
}
