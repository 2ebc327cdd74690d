//! The door of the old kernels: mechanisms that only laws of Linux 3.6 to 6.1 need, and no policy of Afflux.
//!
//! Such a law decides about a writer *after* it dirtied pages, and reads counters of all devices. Older kernels have a
//! model of their own (`kernels`).
//!
//! Owns: all of that, each part in a file of its own.
//! Does not own: the laws (`linux-policies`); paths that a policy of Afflux takes.
//! Invariants: this folder can be deleted with its callers: the compiler names each. An engine without a kernel's
//! policy calls nothing here but plain loads.

mod counts;
mod decision;
mod readahead;
mod state;
mod two_lists;
mod view;
mod writers;

pub(crate) use counts::SharedCounts;
pub use counts::{Global, GlobalCounts, Reads};
pub use decision::{AfterPause, EXCEEDED_PAGES, WriterPace, WriterPause};
pub(crate) use readahead::Window;
pub(crate) use state::{CpuAccount, OldKernelState};
pub(crate) use two_lists::TwoLists;
