//! Which sizes a file may have.
//!
//! Owns: the states that are possible: a size, and which of the changes under way have had their
//! effect on it.
//! Does not own: bytes.
//! Invariants: the states are all that some order of the changes under way leads to. A change under
//! way has its whole effect once; a write may show the sizes of its first pages before that.

use std::collections::BTreeSet;

use super::{Ending, Stamp};

const PAGE_BYTES: u64 = 4096;
/// Changes of one file that may be under way at once, abandoned ones included.
const UNDER_WAY_MAX: usize = 64;

#[derive(Clone, Debug)]
enum Effect {
    Set(u64),
    /// The sizes that a write may stop at on its way; the last one is its whole effect.
    Grow(Vec<u64>),
}

#[derive(Clone, Debug)]
pub(super) struct Sizes {
    /// A size and the set of slots whose change has had its effect, as bits.
    states: BTreeSet<(u64, u64)>,
    under_way: Vec<Option<(usize, Effect)>>,
    /// The sizes possible from each moment on to the next.
    history: Vec<(Stamp, BTreeSet<u64>)>,
}

impl Sizes {
    pub(super) fn new(size: u64) -> Self {
        Self {
            states: [(size, 0)].into(),
            under_way: vec![None; UNDER_WAY_MAX],
            history: vec![(Stamp(0), [size].into())],
        }
    }

    pub(super) fn begin_write(&mut self, change: usize, offset: u64, len: u64, now: Stamp) {
        let end = offset + len;
        let first = (offset / PAGE_BYTES + 1) * PAGE_BYTES;
        // A long write goes on in pieces of whole pages, counted from its first byte.
        let starts = [first, offset + PAGE_BYTES].into_iter();
        let mut sizes: Vec<u64> = starts
            .flat_map(|start| (0..).map(move |page| start + page * PAGE_BYTES).take_while(|at| *at < end))
            .collect();
        sizes.push(end);
        self.begin(change, Effect::Grow(sizes), now);
    }

    pub(super) fn begin_set(&mut self, change: usize, size: u64, now: Stamp) {
        self.begin(change, Effect::Set(size), now);
    }

    fn begin(&mut self, change: usize, effect: Effect, now: Stamp) {
        let slot = self.under_way.iter().position(Option::is_none);
        assert!(slot.is_some(), "at most {UNDER_WAY_MAX} changes of a file's size are under way");
        let slot = slot.unwrap_or(0);
        self.under_way[slot] = Some((change, effect));
        self.close(slot);
        self.note(now);
    }

    pub(super) fn end(&mut self, change: usize, ending: Ending, now: Stamp) {
        let is_it = |entry: &Option<(usize, Effect)>| entry.as_ref().is_some_and(|(own, _)| *own == change);
        let Some(slot) = self.under_way.iter().position(is_it) else { return };
        if ending == Ending::Abandoned {
            return;
        }
        let bit = 1_u64 << slot;
        self.states = std::mem::take(&mut self.states)
            .into_iter()
            .filter(|(_, had)| ending == Ending::Failed || had & bit != 0)
            .map(|(size, had)| (size, had & !bit))
            .collect();
        // What is left of a set that was closed is closed.
        self.under_way[slot] = None;
        self.note(now);
    }

    /// Adds all states that the changes under way may lead to now that there is the one of `slot`.
    fn close(&mut self, slot: usize) {
        let slots: Vec<usize> = (0..UNDER_WAY_MAX).filter(|slot| self.under_way[*slot].is_some()).collect();
        let mut open = Vec::new();
        for state in self.states.clone() {
            self.follow(state, slot, &mut open);
        }
        while let Some(state) = open.pop() {
            slots.iter().for_each(|slot| self.follow(state, *slot, &mut open));
        }
    }

    /// Adds the states that one change leads to from a state; those that are new are to be followed.
    fn follow(&mut self, (size, had): (u64, u64), slot: usize, open: &mut Vec<(u64, u64)>) {
        let bit = 1_u64 << slot;
        let Some((_, effect)) = self.under_way[slot].as_ref().filter(|_| had & bit == 0) else { return };
        let (first, whole): (&[u64], u64) = match effect {
            Effect::Set(to) => (&[], *to),
            Effect::Grow(sizes) => {
                let (last, first) = sizes.split_last().unwrap_or((&size, &[]));
                (first, size.max(*last))
            }
        };
        let partly = first.iter().filter(|at| **at > size).map(|at| (*at, had));
        for state in partly.chain([(whole, had | bit)]) {
            if self.states.insert(state) {
                open.push(state);
            }
        }
    }

    fn note(&mut self, now: Stamp) {
        self.history.push((now, self.states.iter().map(|state| state.0).collect()));
    }

    pub(super) fn since(&self, since: Stamp) -> BTreeSet<u64> {
        let first = self.history.partition_point(|(at, _)| *at <= since).saturating_sub(1);
        self.history[first..].iter().flat_map(|(_, sizes)| sizes.iter().copied()).collect()
    }
}
