//! What is asked of an allocator: how large, for what, how hard.
//!
//! Owns: the closed sets that a request is made of.
//! Does not own: frames.
//! Invariants: an order is 0 to 10.

/// A block of 2^order contiguous frames, order 0 to 10.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Order(u8);

impl Order {
    /// One frame.
    pub const SINGLE: Self = Self(0);
    /// 512 frames, 2 MiB: what the mobility class is kept for, and what one huge page backs.
    pub const PAGEBLOCK: Self = Self(9);
    /// The largest order: 1,024 frames, 4 MiB.
    pub const MAX: u8 = 10;

    /// The order, or nothing if it is above [`Order::MAX`].
    pub const fn new(order: u8) -> Option<Self> {
        if order <= Self::MAX { Some(Self(order)) } else { None }
    }

    /// The order as a number, 0 to 10.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// How many frames a block of this order has.
    pub const fn frames(self) -> u32 {
        1 << self.0
    }
}

/// Whether what a frame holds can be moved or dropped, so that like is kept with like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mobility {
    /// Stays where it is for as long as it is used.
    Unmovable = 0,
    /// Can be dropped and brought back.
    Reclaimable = 1,
    /// Can be copied elsewhere. File pages.
    Movable = 2,
}

impl Mobility {
    /// How many classes there are.
    pub const COUNT: usize = 3;

    /// All classes, in the order of Linux 2.6.31, which the drain vectors depend on.
    pub const ALL: [Self; Self::COUNT] = [Self::Unmovable, Self::Reclaimable, Self::Movable];

    /// The class as a table subscript.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The class with this subscript; anything above the last is movable.
    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Unmovable,
            1 => Self::Reclaimable,
            _ => Self::Movable,
        }
    }

    /// Which classes to take from when this one has nothing left, best first (Linux, `fallbacks`).
    pub const fn fallbacks(self) -> [Self; 2] {
        match self {
            Self::Unmovable => [Self::Reclaimable, Self::Movable],
            Self::Reclaimable => [Self::Unmovable, Self::Movable],
            Self::Movable => [Self::Reclaimable, Self::Unmovable],
        }
    }
}

/// How hard an allocation may try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// May use the reserve: progress of writeback depends on it.
    Reserve,
    /// What a demand read or a write asks for.
    Normal,
    /// Fails at once when frames are short: readahead.
    NoRetry,
}
