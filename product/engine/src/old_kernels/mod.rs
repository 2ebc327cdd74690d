//! The door of the old kernels: mechanisms that only laws of Linux 2.6.39 to 6.1 need, and no policy of Afflux.
//!
//! Such a law decides about a writer *after* it dirtied pages, and reads counters of all devices. A task without a frame
//! may reclaim in passes. Kernels before 2.6.39 have a model of their own (`kernels`).
//!
//! Owns: all of that, each part in a file of its own, and the trait of a kernel's reclaim.
//! Does not own: the laws (`linux-policies`); paths that a policy of Afflux takes.
//! Invariants: this folder can be deleted with its callers: the compiler names each. An engine without a kernel's
//! policy calls nothing here but plain loads.

mod counts;
mod decision;
mod readahead;
mod reclaim;
mod state;
mod two_lists;
mod view;
mod writers;

use afflux_frames::Watermarks;

pub(crate) use counts::SharedCounts;
pub use counts::{Global, GlobalCounts, Reads};
pub use decision::{AfterPause, EXCEEDED_PAGES, WriterPace, WriterPause};
pub(crate) use readahead::Window;
pub(crate) use state::{CpuAccount, OldKernelState};
pub(crate) use two_lists::TwoLists;

use crate::platform::Nanos;

/// A kernel's reclaim: a task that finds no frame reclaims in passes. Readers then do not make up for the frames they
/// took, and background reclaim does not go ahead of readers.
pub trait OldKernel: Send + Sync + 'static {
    /// Pages to look at in the next pass of a task's reclaim; 0 to stop.
    fn next_pass(&self, so_far: &Passes) -> u64;
}

/// The state of a task's reclaim between two of its passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passes {
    /// Passes made.
    pub made: u32,
    /// Pages looked at.
    pub scanned: u64,
    /// Pages evicted.
    pub reclaimed: u64,
    /// When it began.
    pub began: Nanos,
    /// Now.
    pub now: Nanos,
    /// Free frames.
    pub free: u32,
    /// Pages in the cache.
    pub cached: u64,
    /// The marks on free frames.
    pub marks: Watermarks,
}
