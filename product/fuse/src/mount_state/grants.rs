//! The nodes and files that an answer grants, for requests that the kernel sends again.
//!
//! Owns: the ring of grants in the memory of a mount.
//! Does not own: the records of nodes and files (`state`), the changes of a request (`state::changes`).
//! Invariants: a lost entry leaves a lookup counted that the kernel does not know, and never the reverse.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use afflux_frontend::words_checksum;

use super::{GRANT_WORDS, GRANTS, GRANTS_AT, MountState};
use crate::abi::UNIQUE_RESENT;

/// The grants of a mount.
pub(crate) struct Grants {
    state: MountState,
    next: AtomicUsize,
    /// Places of earlier servers' grants, by request.
    inherited: Mutex<BTreeMap<u64, Vec<usize>>>,
}

/// Nodes and files of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Grant {
    Node(u64),
    File(u64),
}

impl Grants {
    /// The ring in this memory, with the entries of earlier servers.
    pub(crate) fn new(state: MountState) -> Self {
        let mut inherited: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for slot in 0..GRANTS {
            if let Some((unique, _)) = grant_in(words(&state, slot)) {
                inherited.entry(unique).or_default().push(slot);
            }
        }
        Self { state, next: AtomicUsize::new(0), inherited: Mutex::new(inherited) }
    }

    /// Notes what the answer to a request will tell the kernel.
    pub(crate) fn grant(&self, unique: u64, grant: Grant) {
        let words = words(&self.state, self.next.fetch_add(1, Ordering::Relaxed) % GRANTS);
        let unique = unique & !UNIQUE_RESENT;
        let (node, file) = match grant {
            Grant::Node(node) => (node, 0),
            Grant::File(file) => (0, file),
        };
        words[0].store(0, Ordering::Release);
        words[1].store(node, Ordering::Relaxed);
        words[2].store(file, Ordering::Relaxed);
        words[3].store(words_checksum([unique, node, file]), Ordering::Relaxed);
        words[0].store(unique, Ordering::Release);
    }

    /// Takes the grants of earlier servers for a request that the kernel sends again: it got no answer.
    pub(crate) fn take(&self, unique: u64) -> Vec<Grant> {
        let unique = unique & !UNIQUE_RESENT;
        let places = self.inherited.lock().unwrap_or_else(PoisonError::into_inner).remove(&unique).unwrap_or_default();
        let taken = places.into_iter().filter_map(|slot| {
            let words = words(&self.state, slot);
            // Another answer may have taken the place meanwhile.
            let (_, grant) = grant_in(words).filter(|(of, _)| *of == unique)?;
            words[0].store(0, Ordering::Release);
            Some(grant)
        });
        taken.collect()
    }
}

fn words(state: &MountState, slot: usize) -> &[AtomicU64] {
    &state.all()[GRANTS_AT + slot * GRANT_WORDS..][..GRANT_WORDS]
}

fn grant_in(words: &[AtomicU64]) -> Option<(u64, Grant)> {
    let [unique, node, file, check] = [0, 1, 2, 3].map(|at| words[at].load(Ordering::Acquire));
    let grant = if file == 0 { Grant::Node(node) } else { Grant::File(file) };
    (unique != 0 && check == words_checksum([unique, node, file])).then_some((unique, grant))
}
