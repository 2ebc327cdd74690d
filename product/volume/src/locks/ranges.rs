//! The locked bytes of one file.
//!
//! Owns: which owners exclude each other; splitting, joining and changing the ranges of an owner.
//! Does not own: bounds, the fate of a refused owner (`table`).
//! Invariants: an owner's ranges do not overlap, and two with one mode do not touch. A change that is refused has
//! changed nothing.

use std::collections::BTreeMap;

use super::span::Span;

/// The number of a holder of locks: a client of NFS, or a mount.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HolderId(pub u64);

/// Which of a holder's own locks exclude each other. As on a local file, a mount's `flock` does not see its `fcntl`
/// locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockFamily {
    /// All exclude each other: the protocol has one kind of lock.
    Single,
    /// Those of `fcntl`, on bytes.
    Bytes,
    /// Those of `flock`, on whole files.
    Files,
}

/// The owner of locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockOwner {
    /// Its party: all its locks may end together.
    pub holder: HolderId,
    /// The holder's number for it.
    pub number: u64,
    /// The kind of its locks.
    pub family: LockFamily,
}

impl LockOwner {
    /// Whether locks of the two can exclude each other.
    fn can_exclude(self, other: Self) -> bool {
        let is_blind =
            self.family != other.family && self.family != LockFamily::Single && other.family != LockFamily::Single;
        self != other && !is_blind
    }
}

/// How a lock excludes others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Others may have shared locks, too.
    Shared,
    /// Nobody else may have a lock.
    Exclusive,
}

/// A lock, held or wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lock {
    /// Its owner.
    pub owner: LockOwner,
    /// The bytes.
    pub span: Span,
    /// How it excludes others.
    pub mode: LockMode,
    /// The process on this host, if there is one. For display alone.
    pub process: u32,
}

impl Lock {
    /// Whether both cannot be held at once.
    pub(super) fn is_excluding(&self, other: &Self) -> bool {
        let are_shared = self.mode == LockMode::Shared && other.mode == LockMode::Shared;
        !are_shared && self.span.is_overlapping(other.span) && self.owner.can_exclude(other.owner)
    }
}

/// A change would make too many ranges.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct NoRoom;

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
}

impl Own {
    fn locks(&self) -> impl Iterator<Item = Lock> {
        self.ranges.iter().map(|(first, held)| self.lock(*first, held))
    }

    fn lock(&self, first: u64, held: &Held) -> Lock {
        let span = Span { first, last: held.last };
        Lock { owner: self.owner, span, mode: held.mode, process: held.process }
    }

    /// Drops the ranges that a change concerns.
    fn remove(&mut self, span: Span, wanted: Option<Lock>) {
        let (first, mut last) = around(span);
        loop {
            let next = self.between(first, last).next();
            let Some(held) = next else { return };
            if is_changed(&held, span, wanted) {
                self.ranges.remove(&held.span.first);
            }
            let Some(before) = held.span.first.checked_sub(1) else { return };
            last = before;
        }
    }

    /// The ranges from the last one that begins at or before `last` down to the first that ends at or behind `first`.
    fn between(&self, first: u64, last: u64) -> impl Iterator<Item = Lock> {
        let down = self.ranges.range(..=last).rev();
        down.take_while(move |(_, held)| held.last >= first).map(|(first, held)| self.lock(*first, held))
    }
}

/// Whether a change of bytes takes a held lock's place, in part or by joining with it.
fn is_changed(held: &Lock, span: Span, wanted: Option<Lock>) -> bool {
    let joins = wanted.is_some_and(|wanted| wanted.mode == held.mode) && held.span.can_join(span);
    joins || held.span.is_overlapping(span)
}

/// The bytes in which a range may be that a change concerns: one beside may join.
fn around(span: Span) -> (u64, u64) {
    (span.first.saturating_sub(1), span.last.saturating_add(1))
}

/// A change of an owner's ranges. Any number of ranges may go; three at most are new.
struct Plan {
    /// Number of ranges that go.
    removed: usize,
    /// The wanted lock, joined with others of its mode; the rest of ranges that go, before these bytes and behind.
    added: [Option<Lock>; 3],
}

impl Plan {
    fn of(own: Option<&Own>, span: Span, wanted: Option<Lock>) -> Self {
        let mut plan = Self { removed: 0, added: [wanted, None, None] };
        let (first, last) = around(span);
        let near = own.into_iter().flat_map(|own| own.between(first, last));
        for held in near.filter(|held| is_changed(held, span, wanted)) {
            plan.removed += 1;
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

/// The ranges of a file. An owner with many costs a search among them, and no walk over all.
#[derive(Default)]
pub(super) struct LockedRanges {
    owners: Vec<Own>,
    len: usize,
}

impl LockedRanges {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The owners, each with its number of ranges.
    pub(super) fn owners(&self) -> impl Iterator<Item = (LockOwner, usize)> {
        self.owners.iter().map(|own| (own.owner, own.ranges.len()))
    }

    fn own(&self, owner: LockOwner) -> Option<&Own> {
        self.owners.iter().find(|own| own.owner == owner)
    }

    /// The ranges of an owner, from the first byte on.
    pub(super) fn of(&self, owner: LockOwner) -> impl Iterator<Item = Lock> {
        self.own(owner).into_iter().flat_map(Own::locks)
    }

    /// The number of an owner's ranges.
    pub(super) fn count(&self, owner: LockOwner) -> usize {
        self.own(owner).map_or(0, |own| own.ranges.len())
    }

    /// The locks that are in the way of another.
    pub(super) fn conflicts(&self, wanted: Lock) -> impl Iterator<Item = Lock> {
        let others = self.owners.iter().filter(move |own| own.owner.can_exclude(wanted.owner));
        let near = others.flat_map(move |own| own.between(wanted.span.first, wanted.span.last));
        near.filter(move |held| held.is_excluding(&wanted))
    }

    /// All owners' ranges with any of these bytes, whole.
    pub(super) fn overlapping(&self, span: Span) -> impl Iterator<Item = Lock> {
        self.owners.iter().flat_map(move |own| own.between(span.first, span.last))
    }

    /// Whether an owner has any.
    pub(super) fn has(&self, owner: LockOwner) -> bool {
        self.own(owner).is_some()
    }

    /// Gives an owner these bytes in this mode, in place of earlier modes. Nobody's lock is in the way. `room` tells
    /// how many more ranges there may be.
    pub(super) fn lock(&mut self, wanted: Lock, room: impl FnOnce(&Self) -> usize) -> Result<(), NoRoom> {
        self.change(wanted.owner, wanted.span, Some(wanted), room)
    }

    /// Takes these bytes out of an owner's locks. That may make two ranges of one.
    pub(super) fn unlock(
        &mut self,
        owner: LockOwner,
        span: Span,
        room: impl FnOnce(&Self) -> usize,
    ) -> Result<(), NoRoom> {
        self.change(owner, span, None, room)
    }

    fn change(
        &mut self,
        owner: LockOwner,
        span: Span,
        wanted: Option<Lock>,
        room: impl FnOnce(&Self) -> usize,
    ) -> Result<(), NoRoom> {
        let at = self.owners.iter().position(|own| own.owner == owner);
        let plan = Plan::of(at.map(|at| &self.owners[at]), span, wanted);
        let added = plan.added.iter().filter(|lock| lock.is_some()).count();
        if added > plan.removed && added > plan.removed + room(self) {
            return Err(NoRoom);
        }
        self.len = self.len + added - plan.removed;
        if at.is_none() && wanted.is_none() {
            return Ok(());
        }
        let at = at.unwrap_or_else(|| {
            self.owners.push(Own { owner, ranges: BTreeMap::new() });
            self.owners.len() - 1
        });
        let own = &mut self.owners[at];
        match plan.removed {
            0 => {}
            // No search for each.
            all if all == own.ranges.len() => own.ranges.clear(),
            _ => own.remove(span, wanted),
        }
        for Lock { span, mode, process, .. } in plan.added.into_iter().flatten() {
            own.ranges.insert(span.first, Held { last: span.last, mode, process });
        }
        if own.ranges.is_empty() {
            self.owners.swap_remove(at);
        }
        Ok(())
    }

    /// Drops the locks that are meant.
    pub(super) fn release(&mut self, is_meant: impl Fn(&LockOwner) -> bool) {
        self.owners.retain(|own| !is_meant(&own.owner));
        self.len = self.owners.iter().map(|own| own.ranges.len()).sum();
    }
}

#[cfg(test)]
mod tests;
