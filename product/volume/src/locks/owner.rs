//! Owners of locks, and the rule by which their locks exclude each other.
//!
//! Owns: holders and their owners, the kinds and the modes of locks, the rule.
//! Does not own: the locks that are held (`ranges`) or waited for (`queue`).
//! Invariants: an owner's own locks do not exclude each other (`ranges/tests.rs`).

use super::span::Span;

/// The number of a holder of locks: a client of NFS, or a mount.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HolderId(pub u64);

/// Which of a holder's own locks exclude each other. As on a local file, a mount's `flock` does not see its `fcntl`
/// locks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockFamily {
    /// All exclude each other: the protocol has one kind of lock.
    Single,
    /// Those of `fcntl`, on bytes.
    Bytes,
    /// Those of `flock`, on whole files.
    Files,
}

impl LockFamily {
    /// Whether locks of both see each other.
    pub(super) fn can_exclude(self, other: Self) -> bool {
        self == other || self == Self::Single || other == Self::Single
    }
}

/// The owner of locks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
        self != other && self.family.can_exclude(other.family)
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
    /// Owner of the lock.
    pub owner: LockOwner,
    /// Byte range that is locked.
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
