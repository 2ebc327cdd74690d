//! Turns of handshakes: a handshake costs a signature, on the thread that answers the calls of others.
//!
//! Owns: the processor's time that handshakes may take until the next refill, those of one party and all together; the
//! cost of one.
//! Does not own: handshakes (`machine`), the moment of a refill (the command refills once a second).
//! Invariants: a party has at most [`PARTY_NS_MAX`] between two refills, and all together [`ALL_NS_MAX`]. The first
//! handshake of a party has its turn in any case, so parties that begin many keep no other out. One that waits is woken
//! by the refill.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use afflux_frontend::Party;

/// Most time of one party's handshakes.
const PARTY_NS_MAX: u64 = 50_000_000;
/// Most time of all.
const ALL_NS_MAX: u64 = 500_000_000;
/// Parties whose first handshake has its turn in any case.
const PARTIES_MAX: usize = 4096;
/// The cost of a handshake until one is measured, and the most that counts.
const FIRST_COST_NS: u64 = 1_000_000;
const COST_NS_MAX: u64 = PARTY_NS_MAX / 4;
/// The cost follows the measured ones by this part of the difference.
const COST_FOLLOWS: u64 = 8;

/// The turns of a server.
#[derive(Default)]
pub(crate) struct HandshakeTurns(Mutex<TurnState>);

struct TurnState {
    cost_ns: u64,
    /// Since the last refill.
    all_ns: u64,
    of_parties: BTreeMap<Party, u64>,
    next: u64,
    /// Those to wake at the next refill, the oldest first.
    waiting: BTreeMap<u64, Waker>,
}

impl Default for TurnState {
    fn default() -> Self {
        let (of_parties, waiting) = (BTreeMap::new(), BTreeMap::new());
        Self { cost_ns: FIRST_COST_NS, all_ns: 0, of_parties, next: 0, waiting }
    }
}

impl HandshakeTurns {
    /// A place in the queue, which [`HandshakeTurns::leave`] ends.
    pub(crate) fn enter(&self) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        state.next
    }

    /// The one with this place gives it up.
    pub(crate) fn leave(&self, place: u64) {
        self.lock().waiting.remove(&place);
    }

    /// Whether a handshake may take place now. If not, `waker` is woken by the next refill.
    pub(crate) fn may_begin(&self, place: u64, party: Party, waker: &Waker) -> bool {
        let mut state = self.lock();
        let (cost_ns, known) = (state.cost_ns, state.of_parties.get(&party).copied());
        let is_free = match known {
            None => state.of_parties.len() < PARTIES_MAX,
            Some(spent_ns) => spent_ns + cost_ns <= PARTY_NS_MAX && state.all_ns + cost_ns <= ALL_NS_MAX,
        };
        if is_free {
            state.waiting.remove(&place);
            state.all_ns += cost_ns;
            *state.of_parties.entry(party).or_default() += cost_ns;
        } else {
            state.waiting.insert(place, waker.clone());
        }
        is_free
    }

    /// A handshake has taken this time of the processor.
    pub(crate) fn took(&self, ns: u64) {
        let mut state = self.lock();
        state.cost_ns = (state.cost_ns * (COST_FOLLOWS - 1) + ns.min(COST_NS_MAX)) / COST_FOLLOWS;
    }

    /// From now on as much time as at first; those that wait try again.
    pub(crate) fn refill(&self) {
        let waiting = {
            let mut state = self.lock();
            state.all_ns = 0;
            state.of_parties.clear();
            std::mem::take(&mut state.waiting)
        };
        waiting.into_values().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, TurnState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
