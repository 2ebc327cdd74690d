//! The possible sizes of a file.
//!
//! Owns: the possible states: a size, and which of the changes in progress may have had their effect on it.
//! Does not own: bytes.
//! Invariants: the states are all that some order of the changes in progress leads to. A change in progress has its
//! whole effect once; a write may show the sizes of its first pages before that. A write that changes nothing at a size
//! leaves one state, not two, so that many writes in progress stay cheap. Of abandoned changes with the same effect one
//! stands for all (`equal_changes_without_callers_are_one`).

use std::collections::BTreeSet;

use crate::change::{Ending, Stamp};

const PAGE_BYTES: u64 = 4096;
/// Most changes of one file in progress at the same time, abandoned ones of different effects included; beyond it the
/// sizes of the file are no longer checked.
const UNDER_WAY_MAX: usize = 64;
/// Most states to follow; beyond it the sizes of the file are no longer checked.
const STATES_MAX: usize = 4_000;

#[derive(Clone, PartialEq, Debug)]
enum Effect {
    Set(u64),
    /// The sizes that a write may show in progress; the last is the whole effect.
    Grow(Vec<u64>),
}

/// A possible state of a file. The two sets contain slots, as bits; a change is in one of them or in both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct SizeState {
    size: u64,
    /// Changes that may have had their effect.
    may: u64,
    /// Changes that may still have their effect.
    open: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Sizes {
    states: BTreeSet<SizeState>,
    under_way: Vec<Option<(usize, Effect)>>,
    /// The slots of changes that lost their caller. Such a change may have its effect at any time. The model
    /// never learns of the end, so it treats the change as if the effect could come again.
    abandoned: u64,
    /// The possible sizes from each moment to the next.
    history: Vec<(Stamp, BTreeSet<u64>)>,
    /// Whether there were too many states or changes: every size then counts as possible.
    vague: bool,
}

impl Sizes {
    pub(super) fn new(size: u64) -> Self {
        Self {
            states: [SizeState { size, may: 0, open: 0 }].into(),
            under_way: vec![None; UNDER_WAY_MAX],
            abandoned: 0,
            vague: false,
            history: vec![(Stamp(0), [size].into())],
        }
    }

    pub(super) fn begin_write(&mut self, change: usize, offset: u64, len: u64, now: Stamp) {
        let end = offset + len;
        let first = (offset / PAGE_BYTES + 1) * PAGE_BYTES;
        // A long write continues in pieces of whole pages, counted from its first byte.
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
        if self.vague {
            return;
        }
        let Some(slot) = self.under_way.iter().position(Option::is_none) else { return self.lose_track() };
        self.under_way[slot] = Some((change, effect));
        self.close(1 << slot);
        self.note(now);
    }

    pub(super) fn end(&mut self, change: usize, ending: Ending, now: Stamp) {
        let is_it = |entry: &Option<(usize, Effect)>| entry.as_ref().is_some_and(|(own, _)| *own == change);
        let Some(slot) = self.under_way.iter().position(is_it) else { return };
        let bit = 1_u64 << slot;
        if ending == Ending::Abandoned && !self.is_like_another(slot) {
            self.abandoned |= bit;
            let forget = |state: SizeState| SizeState { may: state.may & !bit, ..state };
            self.states = std::mem::take(&mut self.states).into_iter().map(forget).collect();
            self.close(bit);
            return self.note(now);
        }
        // A closed set of states stays closed after a filter.
        self.under_way[slot] = None;
        self.abandoned &= !bit;
        self.states = std::mem::take(&mut self.states)
            .into_iter()
            .filter(|state| ending != Ending::Done || state.may & bit != 0)
            .map(|state| SizeState { may: state.may & !bit, open: state.open & !bit, ..state })
            .collect();
        self.note(now);
    }

    /// Whether an abandoned change has the same effect as the one in the slot.
    fn is_like_another(&self, slot: usize) -> bool {
        let effect = |slot: usize| self.under_way[slot].as_ref().map(|(_, effect)| effect);
        (0..UNDER_WAY_MAX).any(|other| self.abandoned & 1 << other != 0 && effect(other) == effect(slot))
    }

    fn lose_track(&mut self) {
        self.vague = true;
        self.states.clear();
        self.under_way.fill(None);
    }

    /// Adds all states that the changes in progress may lead to, with the new one of bit `new`.
    fn close(&mut self, new: u64) {
        let mut open: Vec<SizeState> = std::mem::take(&mut self.states).into_iter().collect();
        for state in &mut open {
            *state = self.settled(SizeState { open: state.open | new, ..*state });
            self.states.insert(*state);
        }
        while let Some(state) = open.pop().filter(|_| self.states.len() <= STATES_MAX) {
            for slot in (0..UNDER_WAY_MAX).filter(|slot| state.open & 1 << slot != 0) {
                self.follow(state, slot, &mut open);
            }
        }
    }

    /// Adds the states that one change leads to from `state`; new states go to `open`, to be followed as well.
    fn follow(&mut self, state: SizeState, slot: usize, open: &mut Vec<SizeState>) {
        let bit = 1_u64 << slot;
        let Some((_, effect)) = &self.under_way[slot] else { return };
        let after = |size| match self.abandoned & bit {
            0 => SizeState { size, may: state.may | bit, open: state.open & !bit },
            _ => SizeState { size, ..state },
        };
        let mut next = Vec::new();
        match effect {
            Effect::Set(to) => next.push(after(*to)),
            Effect::Grow(sizes) => {
                let (last, first) = sizes.split_last().unwrap_or((&0, &[]));
                if *last <= state.size {
                    return;
                }
                next.push(after(*last));
                next.extend(first.iter().filter(|at| **at > state.size).map(|at| SizeState { size: *at, ..state }));
            }
        }
        for state in next {
            let state = self.settled(state);
            if self.states.insert(state) {
                open.push(state);
            }
        }
    }

    /// A write that ends within the size may have had its effect. If it ends before the size, other changes made the
    /// size, with or without its effect: it may also come later.
    fn settled(&self, mut state: SizeState) -> SizeState {
        for (slot, entry) in self.under_way.iter().enumerate() {
            if let Some((_, Effect::Grow(sizes))) = entry
                && let Some(end) = sizes.last()
                && *end <= state.size
            {
                state.may |= (1 << slot) & !self.abandoned;
                state.open |= u64::from(*end < state.size) << slot;
            }
        }
        state
    }

    fn note(&mut self, now: Stamp) {
        if self.states.len() > STATES_MAX {
            return self.lose_track();
        }
        self.history.push((now, self.states.iter().map(|state| state.size).collect()));
    }

    /// `None` if the sizes are unknown.
    pub(super) fn since(&self, since: Stamp) -> Option<BTreeSet<u64>> {
        if self.vague {
            return None;
        }
        let first = self.history.partition_point(|(at, _)| *at <= since).saturating_sub(1);
        Some(self.history[first..].iter().flat_map(|(_, sizes)| sizes.iter().copied()).collect())
    }
}
