//! The page allocators of Linux that experiments compare: 2.6.31 before and after the three patches of S2, 2.6.39, 6.1.
//!
//! Owns: a zone with its buddy lists and per-CPU lists, the kernels' watermarks, the interface of every compared
//! allocator.
//! Does not own: memory, reclaim, the measurement. The product's own frames are in `frames`.
//! Invariants: a frame is either free or handed out, never both. A bad free is an error.

#![forbid(unsafe_code)]

mod allocator;
mod bad_free;
mod block;
mod buddy;
mod counters;
mod drift;
mod form;
mod lists;
mod slot;
mod table;
pub mod watermarks;
mod zone;

pub use allocator::Allocator;
pub use bad_free::BadFree;
pub use block::{Mobility, Order};
pub use counters::{Counters, ListCounters, ZoneCounters};
pub use drift::drift_threshold;
pub use form::{BatchedDrain, Drain, EmptyFirstDrain, Form, ListPerClass, ShortcutDrain, SingleList, ZoneTunables};
pub use lists::{Drained, Tunables, drained};
pub use zone::{Temperature, Zone};
