//! An allocation request: its size and its use.
//!
//! Owns: the closed sets of a request's values.
//! Does not own: frames.
//! Invariants: an order is 0 to 10.

/// A block of 2^order contiguous frames, order 0 to 10.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Order(u8);

impl Order {
    /// One frame.
    pub const SINGLE: Self = Self(0);
    /// 512 frames, 2 MiB: the unit of the mobility class, and the memory of one huge page.
    pub const PAGEBLOCK: Self = Self(9);
    /// The largest order: 1,024 frames, 4 MiB.
    pub const MAX: u8 = 10;

    /// The order; `None` above [`Order::MAX`].
    pub const fn new(order: u8) -> Option<Self> {
        if order <= Self::MAX { Some(Self(order)) } else { None }
    }

    /// The order as a number, 0 to 10.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number of frames in a block of this order.
    pub const fn frames(self) -> u32 {
        1 << self.0
    }
}

/// Whether a frame's contents can be moved or dropped, so that like is kept with like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mobility {
    /// Stays in place while it is used.
    Unmovable = 0,
    /// Can be dropped and brought back.
    Reclaimable = 1,
    /// Can be copied elsewhere. File pages.
    Movable = 2,
}

impl Mobility {
    /// The number of classes.
    pub const COUNT: usize = 3;

    /// All classes, in the order of Linux 2.6.31; the drain vectors depend on it.
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

    /// The classes to take from when this one has nothing left, best first (Linux, `fallbacks`).
    pub const fn fallbacks(self) -> [Self; 2] {
        match self {
            Self::Unmovable => [Self::Reclaimable, Self::Movable],
            Self::Reclaimable => [Self::Unmovable, Self::Movable],
            Self::Movable => [Self::Reclaimable, Self::Unmovable],
        }
    }
}
