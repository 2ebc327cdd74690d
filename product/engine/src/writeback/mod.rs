//! Writeback: dirty pages become durable.
//!
//! Owns: one flusher a device, the choice and size of its next write, the effect of a finished write on its pages,
//! syncs; what a request holds while it is in flight.
//! Does not own: how pages get dirty (`writing`), how long writers wait (`throttle`), which amounts are too much
//! (`policy`).
//! Invariants: a task that submits writes has a free request before it claims pages. A page that failed to write stays
//! dirty and its file says so until it has been written.

mod batch;
mod complete;
mod direct_sync;
mod flush;
mod flusher;
mod hang_watch;
mod idle;
mod requests;
mod round;
mod slice;
mod sync;

use std::sync::{Arc, Mutex};

use afflux_device::error::DeviceError;
use afflux_device::platform::Platform;
use afflux_pages::wait::Answer;

use crate::base::Base;
use crate::devices::file::FileInner;
use crate::recycler::{IDLE_MAX, IdleTask, RecycledMemory, Recycler};

pub(crate) struct Writeback<P: Platform> {
    pub(crate) base: Base<P>,
    spare: RecycledMemory<WriteEnds<P>, CallEnds<P>>,
    idle_tasks: Recycler<Arc<IdleTask>>,
    /// Held while a range gets its position in the order, so that no two make a circle.
    pub(crate) ordering: Mutex<()>,
}

impl<P: Platform> Writeback<P> {
    pub(crate) fn new(base: Base<P>) -> Arc<Self> {
        let (spare, idle_tasks) = (RecycledMemory::default(), Recycler::new(IDLE_MAX));
        Arc::new(Self { base, spare, idle_tasks, ordering: Mutex::default() })
    }
}

/// The end of a write (`complete`).
struct WriteEnds<P: Platform> {
    writeback: Arc<Writeback<P>>,
    file: Arc<FileInner>,
    /// Its number among the file's writes, and at the device.
    sequence: u64,
    number: u64,
    /// Writes in flight at the submission, including this one.
    in_flight: u64,
}

/// The end of an operation without data (`requests`).
struct CallEnds<P: Platform> {
    writeback: Arc<Writeback<P>>,
    file: Arc<FileInner>,
    answer: Arc<Answer<Result<(), DeviceError>>>,
    number: u64,
}
