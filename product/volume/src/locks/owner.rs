//! Plain values of locks: owners, modes, spans of bytes, and the rule by which locks exclude each other.
//!
//! Owns: holders and their owners, the kinds and the modes of locks, the rule; the order of spans, their forms by
//! length and by last byte.
//! Does not own: the locks that are held (`ranges`) or waited for (`queue`).
//! Invariants: an owner's own locks do not exclude each other (`ranges/tests.rs`). A span has at least one byte. One
//! that ends with the largest offset has no end.

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

/// Bytes of a file: both ends belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Span {
    /// The whole file, however long it becomes.
    pub const WHOLE: Self = Self { first: 0, last: u64::MAX };

    /// `len` bytes from `offset` on; `u64::MAX` means all of them. None if that is no byte, or one behind the largest
    /// offset.
    pub fn of(offset: u64, len: u64) -> Option<Self> {
        match len {
            0 => None,
            u64::MAX => Some(Self { first: offset, last: u64::MAX }),
            _ => Some(Self { first: offset, last: offset.checked_add(len)? - 1 }),
        }
    }

    /// The bytes from `first` to `last`; none if `last` is less than `first`.
    pub fn between(first: u64, last: u64) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// The first byte.
    pub fn first(self) -> u64 {
        self.first
    }

    /// The last byte.
    pub fn last(self) -> u64 {
        self.last
    }

    /// The number of bytes, in the form of [`Span::of`].
    pub fn length(self) -> u64 {
        if self.last == u64::MAX { u64::MAX } else { self.last - self.first + 1 }
    }

    pub(super) fn is_overlapping(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Whether both together are one span.
    pub(super) fn can_join(self, other: Self) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// The part of this span before an overlapping one.
    pub(super) fn before(self, other: Self) -> Option<Self> {
        (self.first < other.first).then(|| Self { first: self.first, last: other.first - 1 })
    }

    /// The part of this span behind an overlapping one.
    pub(super) fn behind(self, other: Self) -> Option<Self> {
        (self.last > other.last).then(|| Self { first: other.last + 1, last: self.last })
    }
}
