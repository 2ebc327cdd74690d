//! Background and direct reclaim of Linux 2.6.39, and the forms of it that seed S3 tried.
//!
//! A task that needs a page frame looks whether more than the low mark is free, wakes kswapd if not, and goes on down
//! to the min mark. Below that it reclaims itself (`direct`): it scans the lists of pages by priority, from 1/4096 of
//! each list in a first pass to all of it in a thirteenth, in batches of 32, and asks between passes whether it has
//! done enough. That is where the forms differ ([`ReclaimPolicy`]): as the kernel was, 32 pages are enough, of which
//! the first pass gives some 160; the patches want a whole watermark's worth, so that a stall pays for dozens of
//! others. Then it tries to allocate again, and one form has the lists of all CPUs drained and tries once more. Who
//! may not retry, readahead, fails there; others go round. A slab's first requests, to its own node alone, fail at the low
//! mark already.
//!
//! Owns: the forms by name (`policy`), how much a pass scans (`pass`), the three loops: an allocation (`allocate`), a
//! direct reclaim (`direct`), kswapd (`background`); the forms as an engine asks them (`on_engine`).
//! Does not own: frames, lists, CPUs, time: whoever has them offers them as [`Mechanisms`], an engine by its own seam.
//! Invariants: integers only. A decision depends on what is passed in. The loops hold nothing across an await but
//! what they have counted.

mod allocate;
mod background;
mod direct;
mod mechanisms;
mod on_engine;
mod pass;
mod policy;
#[cfg(test)]
mod tests;

pub use allocate::{MayRetry, allocate, allocate_slab};
pub use background::background;
pub use direct::reclaim_directly;
pub use mechanisms::{Event, List, Mechanisms, Scanned, Scanner, Sizes};
pub use pass::{BATCH_PAGES, PRIORITY_START};
pub use policy::{Progress, RECLAIM_POLICIES, ReclaimPolicy, Target, UnknownReclaimPolicy, reclaim_policy};
