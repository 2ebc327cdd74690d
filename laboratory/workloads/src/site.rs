//! What jobs need of the place they run in: a simulated machine, or an engine of another world.
//!
//! Owns: the seam below the planner and the runner.
//! Does not own: either place (`simulated`, `engine_run`), what jobs do (`sequence`, `runner`).
//! Invariants: planner and runner reach a world through this alone, so that a job is the same operations
//! in the same order in every world.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use afflux_engine::{Client, Error, Platform};

use super::outcome::CallWaits;
use super::sequence::Direction;

/// Which requests of its file a call waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    Reads,
    Writes,
}

/// Where jobs run.
pub(crate) trait Site: Send + Sync + 'static {
    /// Its clock and its tasks.
    type World: Platform;
    /// A file that jobs use.
    type File: Send + Sync + 'static;

    fn world(&self) -> &Arc<Self::World>;

    fn now_ns(&self) -> u64 {
        self.world().now().0
    }

    /// How large the device is that `path` names as a whole, if it names one.
    fn device_bytes(&self, path: &str) -> Option<u64>;

    /// Nobody checks what the file at `path` holds: some go past the cache to it, and some do not.
    fn leave_unchecked(&self, path: &str);

    /// The file at `path` is all holes where it is laid out, if this world can have such files.
    fn leave_holes(&self, path: &str);

    /// Sees to it that all files can be had, and that each holds so many bytes.
    ///
    /// # Errors
    /// When a path is on no device, or the bytes do not fit.
    fn lay_out(&self, layout: &BTreeMap<String, u64>) -> Result<(), String>;

    /// The file at `path`, the same at each call; made if there is none, with `bytes` bytes.
    ///
    /// # Errors
    /// When the path is on no device, or the file cannot be made.
    fn file(&self, path: &str, bytes: u64) -> Result<Arc<Self::File>, String>;

    /// The name of the device that the file is on.
    fn device_name(&self, file: &Self::File) -> String;

    /// When jobs are to stop.
    fn stop_ns(&self) -> u64;

    /// Whether something went wrong that ends the run.
    fn has_failed(&self) -> bool;

    /// Has the calls, reads or writes, cost what calls cost, where time is simulated.
    fn charge_calls(&self, calls: u64, direction: Direction);

    /// Has a CPU be busy for so long, where time is simulated.
    fn charge_ns(&self, ns: u64);

    /// Notes that a job uses the file from now on; whether one has before.
    fn begin_use(&self, file: &Self::File) -> bool;

    /// Forgets the file's clean pages.
    fn forget_clean(&self, file: &Self::File) -> impl Future<Output = ()> + Send;

    /// Reads into `buffer` for a task; returns how many bytes.
    fn read(
        &self,
        task: &Client,
        file: &Self::File,
        offset: u64,
        buffer: &mut [u8],
    ) -> impl Future<Output = Result<usize, Error>> + Send;

    /// Writes `buffer`, whose bytes the site may choose, for a task.
    fn write(
        &self,
        task: &Client,
        file: &Self::File,
        offset: u64,
        buffer: &mut [u8],
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Brings the page at `offset` into the cache for a task, as a fault does.
    fn fault(&self, task: &Client, file: &Self::File, offset: u64) -> impl Future<Output = Result<(), Error>> + Send;

    /// [`Site::read`] or [`Site::write`] past the cache, straight to the device.
    fn direct(
        &self,
        task: &Client,
        file: &Self::File,
        direction: Direction,
        offset: u64,
        buffer: &mut [u8],
    ) -> impl Future<Output = Result<usize, Error>> + Send;

    /// Gives bytes of a disk back to it: they read as zeros.
    fn trim(&self, file: &Self::File, offset: u64, bytes: u64) -> impl Future<Output = Result<(), Error>> + Send;

    /// Nobody needs the file any more: what of it was not written never will be.
    fn remove(&self, file: &Self::File);

    /// The causes of the wait of a task's call that began and ended at these instants, if this world can tell. The call waited
    /// for writes of the file, or for reads.
    fn waits(&self, _: &Client, _: &Self::File, _: WaitsFor, _: (u64, u64)) -> Option<CallWaits> {
        None
    }

    /// Makes the file durable for a task.
    fn sync(&self, task: &Client, file: &Self::File) -> impl Future<Output = Result<(), Error>> + Send;
}
