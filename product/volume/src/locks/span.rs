//! Bytes of a file, from one to another.
//!
//! Owns: the order of spans, their forms by length and by last byte.
//! Does not own: their owners (`ranges`).
//! Invariants: a span has at least one byte. One that ends with the largest offset has no end.

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

    /// The bytes from `first` to `last`; none if they are the wrong way round.
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
