//! Cached pages, below files and devices.
//!
//! Owns: the states of pages and their legal changes (`page`), the index of a file's pages, hits, guards (`cache`), the
//! choice of victims (`eviction`), the memory that requests carry (`memory`), the forms of waiting (`wait`).
//! Does not own: free frames (`afflux-frames`), files beyond their pages, devices, the decision to read, write or
//! evict: the engine makes it, and calls in.
//! Invariants: nothing here waits for a device, and nothing reads a clock. A hit takes no lock, allocates nothing and
//! calls nobody. States change with the lock of the page's file held, which the caller has.

pub mod cache;
pub mod eviction;
pub mod hazards;
pub mod memory;
mod named;
pub mod page;
pub mod rare;
pub mod sync;
pub mod units;
pub mod wait;
