//! Background and direct reclaim of Linux 2.6.39, and the forms of it that seed S3 tried.
//!
//! A task that needs a page frame takes one if more than the low mark is free. Otherwise it wakes kswapd, and takes
//! frames down to the min mark. Below that it reclaims itself (`direct`). It scans the lists of pages by priority, from
//! 1/4096 of each list in a first pass to all of it in a thirteenth, in batches of 32. Between passes it checks whether
//! it has done enough.
//!
//! The forms differ in this check ([`ReclaimPolicy`]). In the original kernel 32 pages are enough, and the first pass
//! gives some 160. The patches require a whole watermark, so that one stall pays for dozens of others. Then the task
//! tries to allocate again; one form drains the lists of all CPUs and tries once more. An allocation that may not
//! retry, such as readahead, then fails; others repeat. A slab's first requests, to its own node alone, already fail at
//! the low mark.
//!
//! Owns: the forms by name (`policy`), the size of a pass (`pass`), the loops of an allocation (`allocate`), a direct
//! reclaim (`direct`) and kswapd (`background`); the forms behind an engine's seam (`on_engine`).
//! Does not own: frames, lists, CPUs and time: a simulated kernel implements them as [`Mechanisms`], an engine by its
//! own seam.
//! Invariants: integers only. A decision depends on its arguments. The loops hold only their counts across an await.

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
