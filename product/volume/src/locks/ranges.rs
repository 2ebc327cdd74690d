//! The locked bytes of one file.
//!
//! Owns: splitting, joining and changing the ranges of an owner.
//! Does not own: which owners exclude each other (`owner`), the search for a conflicting lock (`index`), bounds, the
//! fate of a refused owner (`table`).
//! Invariants: an owner's ranges do not overlap, and two with one mode do not touch. A change that is refused has
//! changed nothing. A change is made at once: the owner of many ranges has paid for its steps with as many calls.
//!
//! A general map of ranges (the crate `rangemap`) does not serve. The bound and the index must know which ranges come
//! and go, before the change; the map does not tell. It joins equal values only, but ranges of two processes join here.

use std::collections::{BTreeMap, BTreeSet};

use super::index::LockIndex;
use super::owner::{HolderId, Lock, LockFamily, LockMode, LockOwner};
use crate::locks::index::step;
use crate::locks::owner::Span;

/// A change would make too many ranges.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct TooManyRanges;

/// A range of an owner, without its first byte.
#[derive(Clone, Copy)]
struct Held {
    last: u64,
    mode: LockMode,
    process: u32,
}

/// The ranges of one owner, by their first bytes.
struct Own {
    owner: LockOwner,
    ranges: BTreeMap<u64, Held>,
    /// The first bytes of the exclusive ranges.
    exclusive: BTreeSet<u64>,
}

impl Own {
    fn locks(&self) -> impl Iterator<Item = Lock> {
        self.ranges.iter().map(|(first, held)| self.lock(*first, held))
    }

    fn lock(&self, first: u64, held: &Held) -> Lock {
        let span = Span { first, last: held.last };
        Lock { owner: self.owner, span, mode: held.mode, process: held.process }
    }

    fn insert(&mut self, lock: &Lock) {
        let Lock { span, mode, process, .. } = *lock;
        self.ranges.insert(span.first, Held { last: span.last, mode, process });
        if mode == LockMode::Exclusive {
            self.exclusive.insert(span.first);
        }
    }

    fn remove(&mut self, first: u64) {
        self.ranges.remove(&first);
        self.exclusive.remove(&first);
    }

    /// Removes the ranges that are meant, in one walk.
    fn remove_all(&mut self, is_meant: impl Fn(&Lock) -> bool) {
        let all = std::mem::take(&mut self.ranges);
        let rest = all.into_iter().inspect(|_| step()).filter(|(first, held)| !is_meant(&self.lock(*first, held)));
        self.ranges = rest.collect();
        let exclusive = self.ranges.iter().filter(|(_, held)| held.mode == LockMode::Exclusive);
        self.exclusive = exclusive.map(|(first, _)| *first).collect();
    }

    /// The range that begins last at or before a byte, of these first bytes.
    fn last_from(&self, first: Option<u64>) -> Option<Lock> {
        let first = first?;
        self.ranges.get(&first).map(|held| self.lock(first, held))
    }

    /// Whether one of the ranges excludes a lock.
    fn is_in_the_way(&self, of: &Lock) -> bool {
        step();
        let up_to = ..=of.span.last;
        let last = match of.mode {
            LockMode::Exclusive => self.ranges.range(up_to).next_back().map(|(first, _)| *first),
            LockMode::Shared => self.exclusive.range(up_to).next_back().copied(),
        };
        self.last_from(last).is_some_and(|held| held.is_excluding(of))
    }

    /// The ranges with bytes from `first` to `last`, the last range first.
    fn between(&self, first: u64, last: u64) -> impl Iterator<Item = Lock> {
        let down = self.ranges.range(..=last).rev();
        down.take_while(move |(_, held)| held.last >= first).map(|(first, held)| {
            step();
            self.lock(*first, held)
        })
    }
}

/// Whether a change of bytes replaces a held lock, in part or by joining with it.
fn is_changed(held: &Lock, span: Span, wanted: Option<Lock>) -> bool {
    let joins = wanted.is_some_and(|wanted| wanted.mode == held.mode) && held.span.can_join(span);
    joins || held.span.is_overlapping(span)
}

/// The bytes in which a range may be that a change concerns: an adjacent one may join.
fn around(span: Span) -> (u64, u64) {
    (span.first.saturating_sub(1), span.last.saturating_add(1))
}

/// A change of an owner's ranges. Any number of ranges may go; three at most are new.
struct Plan {
    /// The ranges that go.
    removed: Vec<Lock>,
    /// The wanted lock, joined with ranges of its mode; the rest of changed ranges, before the bytes and behind.
    added: [Option<Lock>; 3],
}

impl Plan {
    fn of(own: Option<&Own>, span: Span, wanted: Option<Lock>) -> Self {
        let mut plan = Self { removed: Vec::new(), added: [wanted, None, None] };
        let (first, last) = around(span);
        let near = own.into_iter().flat_map(|own| own.between(first, last));
        for held in near.filter(|held| is_changed(held, span, wanted)) {
            plan.removed.push(held);
            match &mut plan.added[0] {
                Some(new) if new.mode == held.mode => new.span = new.span.with(held.span),
                _ => {
                    // At most one range begins before the bytes, and one ends behind them.
                    if let Some(span) = held.span.before(span) {
                        plan.added[1] = Some(Lock { span, ..held });
                    }
                    if let Some(span) = held.span.behind(span) {
                        plan.added[2] = Some(Lock { span, ..held });
                    }
                }
            }
        }
        plan
    }
}

/// Most locks of holders that are gone which a search examines.
const LOOKS_MAX: usize = 256;
/// A change that drops more than this fraction of the ranges of a file, or of an owner, goes through all of these.
const SEARCHED_PART: usize = 16;

/// The ranges of a file. The steps of a change are searches, one for each range that goes or comes.
#[derive(Default)]
pub(super) struct LockedRanges {
    owners: BTreeMap<LockOwner, Own>,
    index: LockIndex,
    len: usize,
}

impl LockedRanges {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The ranges of an owner, from the first byte on.
    pub(super) fn of(&self, owner: LockOwner) -> impl Iterator<Item = Lock> {
        self.owners.get(&owner).into_iter().flat_map(Own::locks)
    }

    /// The number of an owner's ranges.
    pub(super) fn count(&self, owner: LockOwner) -> usize {
        self.owners.get(&owner).map_or(0, |own| own.ranges.len())
    }

    /// A found range, with its process.
    fn lock_at(&self, owner: LockOwner, span: Span, mode: LockMode) -> Lock {
        let held = self.owners.get(&owner).and_then(|own| own.ranges.get(&span.first));
        Lock { owner, span, mode, process: held.map_or(0, |held| held.process) }
    }

    /// A lock that conflicts with a wanted lock.
    pub(super) fn conflict(&self, wanted: &Lock) -> Option<Lock> {
        self.index.conflict(wanted).map(|(owner, span, mode)| self.lock_at(owner, span, mode))
    }

    /// A conflicting lock of a meant owner. After [`LOOKS_MAX`] locks any conflicting lock counts.
    pub(super) fn conflict_of(&self, wanted: &Lock, is_meant: impl Fn(&LockOwner) -> bool) -> Option<Lock> {
        let (mut found, mut looks) = (None, 0);
        self.index.show_conflicts(wanted, &mut |owner, span, mode| {
            looks += 1;
            let is_one = is_meant(&owner) || looks == LOOKS_MAX;
            found = is_one.then_some((owner, span, mode));
            !is_one
        });
        found.map(|(owner, span, mode)| self.lock_at(owner, span, mode))
    }

    /// All owners' ranges with any of these bytes, whole.
    pub(super) fn overlapping(&self, span: Span) -> impl Iterator<Item = Lock> {
        self.index.overlapping(span).into_iter().map(|(owner, span, mode)| self.lock_at(owner, span, mode))
    }

    /// Whether an owner has any.
    pub(super) fn has(&self, owner: LockOwner) -> bool {
        self.owners.contains_key(&owner)
    }

    /// Whether a range of this owner excludes a lock.
    pub(super) fn is_in_the_way(&self, owner: LockOwner, of: &Lock) -> bool {
        self.owners.get(&owner).is_some_and(|own| own.is_in_the_way(of))
    }

    fn first_owner_of(&self, holder: HolderId) -> Option<LockOwner> {
        let first = LockOwner { holder, number: 0, family: LockFamily::Single };
        let last = LockOwner { holder, number: u64::MAX, family: LockFamily::Files };
        self.owners.range(first..=last).next().map(|(owner, _)| *owner)
    }

    /// Whether a holder has any.
    pub(super) fn has_any_of(&self, holder: HolderId) -> bool {
        self.first_owner_of(holder).is_some()
    }

    /// The ranges of its owner that a lock would change, or join with.
    pub(super) fn changed_by(&self, wanted: &Lock) -> Vec<Lock> {
        let (first, last) = around(wanted.span);
        let near = self.owners.get(&wanted.owner).into_iter().flat_map(|own| own.between(first, last));
        near.filter(|held| is_changed(held, wanted.span, Some(*wanted))).collect()
    }

    /// Gives an owner these bytes in this mode, in place of earlier modes. No other lock conflicts. `quota` is how many
    /// more ranges there may be.
    pub(super) fn lock(&mut self, wanted: Lock, quota: usize) -> Result<(), TooManyRanges> {
        self.change(wanted.owner, wanted.span, Some(wanted), quota)
    }

    /// Takes these bytes out of an owner's locks. That may make two ranges of one.
    pub(super) fn unlock(&mut self, owner: LockOwner, span: Span, quota: usize) -> Result<(), TooManyRanges> {
        self.change(owner, span, None, quota)
    }

    fn change(
        &mut self,
        owner: LockOwner,
        span: Span,
        wanted: Option<Lock>,
        quota: usize,
    ) -> Result<(), TooManyRanges> {
        let plan = Plan::of(self.owners.get(&owner), span, wanted);
        let added = plan.added.iter().filter(|lock| lock.is_some()).count();
        if added > plan.removed.len() && added > plan.removed.len() + quota {
            return Err(TooManyRanges);
        }
        self.remove(owner, &plan.removed, |held| is_changed(held, span, wanted));
        for lock in plan.added.iter().flatten() {
            self.index.insert(lock);
            let new = || Own { owner, ranges: BTreeMap::new(), exclusive: BTreeSet::new() };
            self.owners.entry(owner).or_insert_with(new).insert(lock);
        }
        self.len += added;
        Ok(())
    }

    /// Drops these ranges of an owner, which are all that a change concerns.
    fn remove(&mut self, owner: LockOwner, concerned: &[Lock], is_concerned: impl Fn(&Lock) -> bool) {
        let Some(own) = self.owners.get_mut(&owner).filter(|_| !concerned.is_empty()) else { return };
        if concerned.len() > self.len / SEARCHED_PART {
            self.index.remove_all(owner, &is_concerned);
        } else {
            concerned.iter().for_each(|held| self.index.remove(held));
        }
        if concerned.len() == own.ranges.len() {
            self.owners.remove(&owner);
        } else if concerned.len() > own.ranges.len() / SEARCHED_PART {
            own.remove_all(is_concerned);
        } else {
            concerned.iter().for_each(|held| own.remove(held.span.first));
        }
        self.len -= concerned.len();
    }

    /// Drops `most` locks of a holder, or all that it has. Returns their number.
    pub(super) fn release(&mut self, holder: HolderId, most: usize) -> usize {
        let mut count = 0;
        while count < most
            && let Some(owner) = self.first_owner_of(holder)
            && let Some(own) = self.owners.get_mut(&owner)
        {
            let some: Vec<Lock> = own.locks().take(most - count).collect();
            for held in &some {
                step();
                self.index.remove(held);
                own.remove(held.span.first);
            }
            count += some.len();
            if own.ranges.is_empty() {
                self.owners.remove(&owner);
            }
        }
        self.len -= count;
        count
    }
}

#[cfg(test)]
mod tests;
