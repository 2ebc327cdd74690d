//! The door of the old kernels: mechanisms that only laws of Linux 2.6.31 to 6.1 need, and no policy of Afflux.
//!
//! Such a law decides about a writer *after* it dirtied pages, and may have the writer write back itself. It reads
//! counters of all devices. Before 2.6.32, threads of no device write in the background and pass over congested queues.
//! A task without a frame reclaims in passes.
//!
//! Owns: all of that, each part in a file of its own, and the trait of a kernel.
//! Does not own: the laws (`linux-policies`); paths that a policy of Afflux takes.
//! Invariants: this folder can be deleted with its callers: the compiler names each. An engine without a kernel's
//! policy calls nothing here but plain loads.

mod congestion;
mod counts;
mod decision;
mod flush;
mod readahead;
mod reclaim;
mod redirty;
mod state;
mod two_lists;
mod view;
mod writers;

use std::sync::Arc;

use afflux_frames::Watermarks;

pub(crate) use congestion::Congestion;
pub(crate) use counts::SharedCounts;
pub use counts::{Global, GlobalCounts, Reads};
pub use decision::{AfterPause, EXCEEDED_PAGES, WokenBy, WriterCall, WriterDecision, WriterPace, WriterPause};
pub(crate) use flush::FlushOf;
pub use flush::{Boxed, Flush, PutBack, RunEnd};
pub(crate) use readahead::Window;
pub(crate) use state::{CpuAccount, OldKernelState};
pub(crate) use two_lists::TwoLists;

use crate::platform::Nanos;

/// A kernel's own ways of background writeback and of reclaim. The default is the engine's ways.
pub trait OldKernel: Send + Sync + 'static {
    /// Whether the kernel's threads write in the background. The devices' flushers then serve only syncs, retries,
    /// drains and tasks that are short of frames.
    fn has_own_threads(&self) -> bool {
        false
    }

    /// Starts the threads, once, before there is a device. `flush` keeps the engine alive: tasks may hold it, the
    /// kernel itself must not.
    fn start(&self, _flush: Arc<dyn Flush>) {}

    /// A policy wants background writeback to start. Does not wait.
    fn kick(&self, _flush: Arc<dyn Flush>) {}

    /// Whether a task that finds no frame reclaims in passes. Readers then do not make up for the frames they took, and
    /// background reclaim does not go ahead of readers.
    fn reclaims_in_passes(&self) -> bool {
        false
    }

    /// Pages to look at in the next pass of a task's reclaim; 0 to stop.
    fn next_pass(&self, _so_far: &Passes) -> u64 {
        0
    }
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
