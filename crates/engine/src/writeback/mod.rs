//! Writeback: dirty pages become durable.
//!
//! Owns: one flusher a device, what it writes next and how much, what a finished write means for its
//! pages, syncs; the seam for those who drive background writeback otherwise.
//! Does not own: how dirty pages come to be (`write`), how long writers wait (`dirty`, `throttle`).
//! Invariants: whoever submits writes has a free request in hand before it claims pages. A page
//! that failed to write stays dirty and its file says so until it has been written.

pub(crate) mod bandwidth;
pub(crate) mod batch;
pub(crate) mod complete;
pub(crate) mod congestion;
pub(crate) mod device;
pub(crate) mod driver;
pub(crate) mod flusher;
pub(crate) mod schedule;
pub(crate) mod sync;
