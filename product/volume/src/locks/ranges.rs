//! The locked bytes of one file.
//!
//! Owns: which owners exclude each other; splitting, joining and changing the ranges of an owner.
//! Does not own: bounds, the fate of a refused owner (`table`).
//! Invariants: an owner's ranges do not overlap, and two with one mode do not touch. A change that is refused has
//! changed nothing.

use super::span::Span;

/// The number of a holder of locks: a client of NFS, or a mount.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HolderId(pub u64);

/// Which of a holder's own locks exclude each other. As on a local file, a mount's `flock` does not see its `fcntl` locks.
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
    fn minds(self, other: Self) -> bool {
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
    pub(super) fn excludes(&self, other: &Self) -> bool {
        let are_shared = self.mode == LockMode::Shared && other.mode == LockMode::Shared;
        !are_shared && self.span.overlaps(other.span) && self.owner.minds(other.owner)
    }
}

/// A change would make too many ranges.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct NoRoom;

/// The ranges of a file.
#[derive(Default)]
pub(super) struct Ranges(Vec<Lock>);

impl Ranges {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lock> {
        self.0.iter()
    }

    /// A lock that is in the way of another.
    pub(super) fn conflict(&self, wanted: &Lock) -> Option<&Lock> {
        self.0.iter().find(|held| held.excludes(wanted))
    }

    /// Whether an owner has any.
    pub(super) fn has(&self, owner: LockOwner) -> bool {
        self.0.iter().any(|held| held.owner == owner)
    }

    /// Gives an owner these bytes in this mode, in place of earlier modes. Nobody's lock is in the way.
    pub(super) fn lock(&mut self, wanted: Lock, room: usize) -> Result<(), NoRoom> {
        self.change(wanted.owner, wanted.span, Some(wanted), room)
    }

    /// Takes these bytes out of an owner's locks. That may make two ranges of one.
    pub(super) fn unlock(&mut self, owner: LockOwner, span: Span, room: usize) -> Result<(), NoRoom> {
        self.change(owner, span, None, room)
    }

    fn change(&mut self, owner: LockOwner, span: Span, wanted: Option<Lock>, room: usize) -> Result<(), NoRoom> {
        let mut added: Vec<Lock> = wanted.into_iter().collect();
        let is_changed = |held: &Lock| {
            let joins = wanted.is_some_and(|wanted| wanted.mode == held.mode) && held.span.joins(span);
            held.owner == owner && (joins || held.span.overlaps(span))
        };
        let mut removed = 0;
        for held in self.0.iter().filter(|held| is_changed(held)) {
            removed += 1;
            match added.first_mut() {
                Some(new) if wanted.is_some() && new.mode == held.mode => new.span = new.span.with(held.span),
                _ => {
                    let rest = [held.span.before(span), held.span.behind(span)];
                    added.extend(rest.into_iter().flatten().map(|span| Lock { span, ..*held }));
                }
            }
        }
        if added.len() > removed + room {
            return Err(NoRoom);
        }
        self.0.retain(|held| !is_changed(held));
        self.0.append(&mut added);
        Ok(())
    }

    /// Drops the locks that are meant.
    pub(super) fn release(&mut self, is_meant: impl Fn(&LockOwner) -> bool) {
        self.0.retain(|held| !is_meant(&held.owner));
    }
}

#[cfg(test)]
mod tests;
