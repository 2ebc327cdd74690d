//! A literal model of the page caches of Linux 2.6.31 and 2.6.32, and of the memory of 2.6.39, over simulated CPUs and
//! disks; and of the page allocators of 2.6.31 to 6.1.
//!
//! It has the kernels' names and stores no bytes: dirty inodes on their lists, the pdflush pool and the flushers by
//! device, queues of requests with congestion, writers that write back themselves, and counters whose reads are
//! counted. Read `writer` first: a page becomes dirty, and `balance` decides about its writer. `fs_writeback` writes.
//! Reclaim has a machine of its own (`mm`) over a `zone`, since no thread compares it together with writeback.
//!
//! Owns: these kernels' decisions and mechanisms. Does not own: time, CPUs and disks (`simulator`); loads and figures
//! (`experiments`).
//! Invariants: integers only. The same seed and calls give the same run.

#![forbid(unsafe_code)]

pub mod mm;

mod balance;
mod figures;
mod flusher;
mod fs_writeback;
mod inode;
mod kernel;
mod pdflush;
mod proportions;
mod ranges;
mod release;
mod request_queue;
mod state;
mod sync;
mod sysctl;
mod vmstat;
mod wait;
mod writer;
pub mod zone;

pub use balance::Part;
pub use figures::{Figures, FirstEvents, Path};
pub use inode::InodeId;
pub use kernel::{Kernel, MachineOptions, SuperBlock, Task};
pub use release::{Release, UnknownName, release};
pub use request_queue::QueueOptions;
pub use sysctl::{PAGE_BYTES, Sysctl};
pub use vmstat::{Reads, VmStat};
