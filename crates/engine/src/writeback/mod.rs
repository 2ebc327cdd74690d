//! Writeback: dirty pages become durable.
//!
//! Owns: one flusher a device, what it writes next and how much, what a finished write means for its
//! pages, syncs.
//! Does not own: how dirty pages come to be (`write`), how long writers wait (`dirty`).
//! Invariants: only the flusher submits writes; it waits for a free request and never polls. A page
//! that failed to write stays dirty and its file says so until it has been written.

pub(crate) mod batch;
pub(crate) mod complete;
pub(crate) mod device;
pub(crate) mod flusher;
pub(crate) mod schedule;
pub(crate) mod sync;
