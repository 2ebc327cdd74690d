//! The message about a frame that must not be freed.
//!
//! Owns: the message. Does not own: the detection (`zone`).
//! Invariants: names the frame, the request, and the last event of the frame.

use std::fmt;

/// The fault of a bad free: the memory may have two holders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadFree {
    pub(crate) frame: u32,
    pub(crate) order: u8,
    pub(crate) fault: Fault,
    pub(crate) last: Option<Event>,
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

/// An event of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Allocated { order: u8 },
    Freed,
}

impl fmt::Display for BadFree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {} was freed as a block of order {}, but ", self.frame, self.order)?;
        match self.fault {
            Fault::Foreign { total } => write!(f, "the arena has no such block: it has {total} frames")?,
            Fault::NotAllocated => write!(f, "is free already, or inside a block")?,
            Fault::OtherOrder { allocated } => write!(f, "was allocated as one of order {allocated}")?,
        }
        match self.last {
            None => write!(f, " (nothing happened to it before)"),
            Some(Event::Allocated { order }) => write!(f, " (its last event: allocated as order {order})"),
            Some(Event::Freed) => write!(f, " (its last event: freed)"),
        }
    }
}
