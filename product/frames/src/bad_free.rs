//! The message about a frame that must not be freed.
//!
//! Owns: the message. Does not own: the detection (the allocators), the abort (`Frames::free`).
//! Invariants: names the frame, the request, and the last events of the frame.

use std::fmt;

/// The fault of a bad free: the memory may have two holders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadFree {
    pub(crate) frame: u32,
    pub(crate) order: u8,
    pub(crate) fault: Fault,
    /// The last event is first.
    pub(crate) events: [Option<Event>; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The arena has no such block.
    Foreign { total: u32 },
    /// The frame is not handed out, or lies inside a block that is.
    NotAllocated,
    /// The frame was handed out as a block of another order.
    OtherOrder { allocated: u8 },
}

/// An event of a frame, with its slot if that is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Allocated { order: u8, slot: Option<u8> },
    Freed { slot: Option<u8> },
}

impl fmt::Display for BadFree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {} was freed as a block of order {}, but ", self.frame, self.order)?;
        match self.fault {
            Fault::Foreign { total } => write!(f, "the arena has no such block: it has {total} frames")?,
            Fault::NotAllocated => write!(f, "is free already, or inside a block")?,
            Fault::OtherOrder { allocated } => write!(f, "was allocated as one of order {allocated}")?,
        }
        match self.events {
            [None, _] => write!(f, " (nothing happened to it before)"),
            [Some(last), None] => write!(f, " (its last event: {last})"),
            [Some(last), Some(earlier)] => write!(f, " (its last events: {earlier}, then {last})"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allocated { order, .. } => write!(f, "allocated as order {order}")?,
            Self::Freed { .. } => write!(f, "freed")?,
        }
        let (Self::Allocated { slot, .. } | Self::Freed { slot }) = self;
        slot.map_or(Ok(()), |slot| write!(f, " in slot {slot}"))
    }
}
