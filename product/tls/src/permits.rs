//! Permits of handshakes: a handshake costs a signature, on the thread that answers the calls of others.
//!
//! Owns: the processor's time that handshakes may take until the next refill, those of one party and all together; the
//! queue of handshakes; the cost of one.
//! Does not own: handshakes (`machine`), the moment of a refill (the command refills once a second).
//! Invariants: a party has at most [`PARTY_NS_MAX`] between two refills, and all together [`ALL_NS_MAX`], however many
//! parties there are. A handshake that took more than its permit was charged with makes the next ones wait. A refill
//! gives permits to the queue, first to the party that had the least time lately, and in order of arrival among equals.
//! So parties that begin many exclude no other, and a newcomer overtakes nobody. At most [`PARTIES_MAX`] parties are
//! known.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use afflux_frontend::Party;

/// Most time of one party's handshakes.
const PARTY_NS_MAX: u64 = 50_000_000;
/// Most time of all.
const ALL_NS_MAX: u64 = 500_000_000;
/// Parties whose time is known.
const PARTIES_MAX: usize = 4096;
/// The cost of a handshake until one is measured, and the most that counts.
const FIRST_COST_NS: u64 = 1_000_000;
const COST_NS_MAX: u64 = PARTY_NS_MAX / 4;
/// The cost follows the measured ones by this part of the difference.
const COST_FOLLOWS: u64 = 8;
/// A party is forgotten when it had less time lately.
const FORGOTTEN_NS: u64 = 10_000;

/// The permits of a server.
#[derive(Default)]
pub(crate) struct HandshakePermits(Mutex<PermitState>);

struct PermitState {
    cost_ns: u64,
    /// Since the last refill.
    all_ns: u64,
    of_parties: BTreeMap<Party, PartyTime>,
    next: u64,
    /// The queue, the oldest first.
    waiting: BTreeMap<u64, (Party, Waker)>,
    /// Numbers in the queue that were given a permit.
    given: BTreeSet<u64>,
}

/// The time of one party's handshakes.
#[derive(Clone, Copy, Default)]
struct PartyTime {
    /// Since the last refill.
    since_refill_ns: u64,
    /// Lately: each refill halves it.
    lately_ns: u64,
}

/// A permit of one handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakePermit {
    party: Party,
    charged_ns: u64,
}

impl Default for PermitState {
    fn default() -> Self {
        let (of_parties, waiting, given) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { cost_ns: FIRST_COST_NS, all_ns: 0, of_parties, next: 0, waiting, given }
    }
}

impl PermitState {
    fn time(&self, party: Party) -> PartyTime {
        self.of_parties.get(&party).copied().unwrap_or_default()
    }

    /// Charges a handshake of this party, if there is time for it.
    fn try_charge(&mut self, party: Party) -> bool {
        let is_known = self.of_parties.contains_key(&party) || self.of_parties.len() < PARTIES_MAX;
        let has_time = self.time(party).since_refill_ns + self.cost_ns <= PARTY_NS_MAX;
        let may_begin = is_known && has_time && self.all_ns + self.cost_ns <= ALL_NS_MAX;
        if may_begin {
            self.charge(party, self.cost_ns);
        }
        may_begin
    }

    fn charge(&mut self, party: Party, ns: u64) {
        self.all_ns += ns;
        if let Some(time) = self.of_parties.get_mut(&party) {
            time.since_refill_ns += ns;
            time.lately_ns += ns;
        } else if self.of_parties.len() < PARTIES_MAX {
            self.of_parties.insert(party, PartyTime { since_refill_ns: ns, lately_ns: ns });
        }
    }

    /// Begins the next second. Time that was taken beyond the bounds counts there, but makes nobody wait for longer.
    fn begin_second(&mut self) {
        self.all_ns = self.all_ns.saturating_sub(ALL_NS_MAX).min(ALL_NS_MAX);
        self.of_parties.retain(|_, time| {
            time.since_refill_ns = time.since_refill_ns.saturating_sub(PARTY_NS_MAX).min(PARTY_NS_MAX);
            time.lately_ns /= 2;
            time.since_refill_ns > 0 || time.lately_ns >= FORGOTTEN_NS
        });
        if self.of_parties.len() > PARTIES_MAX / 2 {
            // New parties need entries: parties with little time lately count as new.
            let mut lately: Vec<u64> = self.of_parties.values().map(|time| time.lately_ns).collect();
            let (_, middle, _) = lately.select_nth_unstable(self.of_parties.len() / 2);
            let middle = *middle;
            self.of_parties.retain(|_, time| time.lately_ns > middle);
        }
    }

    /// Gives permits to the queue while there is time. Returns the wakers to wake.
    fn give(&mut self) -> Vec<Waker> {
        let mut queues: BTreeMap<Party, VecDeque<u64>> = BTreeMap::new();
        for (place, (party, _)) in &self.waiting {
            queues.entry(*party).or_default().push_back(*place);
        }
        let first = |state: &Self, party: Party, places: &VecDeque<u64>| {
            places.front().map(|place| (state.time(party).lately_ns, *place, party))
        };
        let mut order: BTreeSet<_> = queues.iter().filter_map(|(party, places)| first(self, *party, places)).collect();
        let mut woken = Vec::new();
        while let Some((_, place, party)) = order.pop_first() {
            if !self.try_charge(party) {
                continue;
            }
            self.given.insert(place);
            woken.extend(self.waiting.remove(&place).map(|(_, waker)| waker));
            if let Some(places) = queues.get_mut(&party) {
                places.pop_front();
                order.extend(first(self, party, places));
            }
        }
        woken
    }
}

impl HandshakePermits {
    /// A number in the queue, which [`HandshakePermits::leave`] ends.
    pub(crate) fn enter(&self) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        state.next
    }

    /// The handshake leaves the queue.
    pub(crate) fn leave(&self, place: u64) {
        let mut state = self.lock();
        state.waiting.remove(&place);
        state.given.remove(&place);
    }

    /// The permit of the handshake with this number, if there is one now. If not, the refill that gives one wakes
    /// `waker`.
    pub(crate) fn try_begin(&self, place: u64, party: Party, waker: &Waker) -> Option<HandshakePermit> {
        let mut state = self.lock();
        let begins = state.given.remove(&place) || state.try_charge(party);
        if begins {
            state.waiting.remove(&place);
        } else {
            state.waiting.insert(place, (party, waker.clone()));
        }
        begins.then_some(HandshakePermit { party, charged_ns: state.cost_ns })
    }

    /// A handshake has taken this time of the processor, finished or not.
    pub(crate) fn took(&self, permit: HandshakePermit, ns: u64) {
        let mut state = self.lock();
        let ns = ns.min(COST_NS_MAX);
        state.cost_ns = (state.cost_ns * (COST_FOLLOWS - 1) + ns) / COST_FOLLOWS;
        state.charge(permit.party, ns.saturating_sub(permit.charged_ns));
    }

    /// From now on there is as much time as at first, also for the queue.
    pub(crate) fn refill(&self) {
        let woken = {
            let mut state = self.lock();
            state.begin_second();
            state.give()
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// The present cost of a handshake.
    #[cfg(test)]
    pub(crate) fn cost_ns(&self) -> u64 {
        self.lock().cost_ns
    }

    fn lock(&self) -> MutexGuard<'_, PermitState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
