//! The parameters of a request for frames: its use, and its end of a list. Its size is 2^order frames.
//!
//! Owns: the closed sets of a request's values. Does not own: frames. Invariants: an order is 0 to 10.

/// The largest order: 1,024 frames, 4 MiB.
pub const MAX_ORDER: u8 = 10;

/// The order of a pageblock, the unit of the mobility class: 2 MiB.
pub(super) const PAGEBLOCK_ORDER: u8 = 9;

/// Whether a frame's contents can be moved or dropped (`MIGRATE_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mobility {
    /// Is not moved while it is used.
    Unmovable,
    /// Can be dropped and brought back.
    Reclaimable,
    /// Can be copied elsewhere. File pages.
    Movable,
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

    /// The classes to take from when this one has nothing left, best first (`fallbacks`).
    pub(super) const fn fallbacks(self) -> [Self; 2] {
        match self {
            Self::Unmovable => [Self::Reclaimable, Self::Movable],
            Self::Reclaimable => [Self::Unmovable, Self::Movable],
            Self::Movable => [Self::Reclaimable, Self::Unmovable],
        }
    }
}

/// Whether the frame's contents are still in this CPU's cache: the end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Temperature {
    /// They are: take and give at the head.
    Hot,
    /// They are not, or it does not matter: take and give at the tail.
    Cold,
}
