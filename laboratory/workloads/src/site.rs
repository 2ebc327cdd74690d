//! The interface of jobs to their site: a simulated machine, or an engine of another world.
//!
//! Owns: the seam below the planner and the runner.
//! Does not own: either site (`simulated`, `engine_run`), the work of jobs (`sequence`, `runner`).
//! Invariants: planner and runner reach a world only through this interface, so that a job has the same operations in
//! the same order in every world.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use afflux_engine::{Client, Error, Platform};

use super::outcome::CallWaits;
use super::sequence::Direction;

/// The kind of requests of its file that a call waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    Reads,
    Writes,
}

/// A site where jobs run.
pub(crate) trait Site: Send + Sync + 'static {
    /// Its clock and its tasks.
    type World: Platform;
    /// A file that jobs use.
    type File: Send + Sync + 'static;

    fn world(&self) -> &Arc<Self::World>;

    fn now_ns(&self) -> u64 {
        self.world().now().0
    }

    /// The size of the device that `path` names as a whole, if it names one.
    fn device_bytes(&self, path: &str) -> Option<u64>;

    /// The contents of the file at `path` are not checked, since jobs use it both past and through the cache.
    fn leave_unchecked(&self, path: &str);

    /// The file at `path` is laid out as a hole, if this world supports that.
    fn leave_holes(&self, path: &str);

    /// Prepares all files, each with this many bytes.
    ///
    /// # Errors
    /// When a path is on no device, or the bytes do not fit.
    fn lay_out(&self, layout: &BTreeMap<String, u64>) -> Result<(), String>;

    /// The file at `path`, the same at each call. If there is none it is created with `bytes` bytes.
    ///
    /// # Errors
    /// When the path is on no device, or the file cannot be created.
    fn file(&self, path: &str, bytes: u64) -> Result<Arc<Self::File>, String>;

    /// The name of the file's device.
    fn device_name(&self, file: &Self::File) -> String;

    /// The time at which jobs have to stop.
    fn stop_ns(&self) -> u64;

    /// Whether an error has occurred that ends the run.
    fn has_failed(&self) -> bool;

    /// Charges the cost of these read or write calls, if time is simulated.
    fn charge_calls(&self, calls: u64, direction: Direction);

    /// Keeps a CPU busy for this long, if time is simulated.
    fn charge_ns(&self, ns: u64);

    /// Notes that a job uses the file from now on; returns whether a job has used it before.
    fn begin_use(&self, file: &Self::File) -> bool;

    /// Drops the file's clean pages.
    fn forget_clean(&self, file: &Self::File) -> impl Future<Output = ()> + Send;

    /// Reads into `buffer` for a task; returns the number of bytes.
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

    /// Gives bytes back to a disk; they read as zeros.
    fn trim(&self, file: &Self::File, offset: u64, bytes: u64) -> impl Future<Output = Result<(), Error>> + Send;

    /// The file is no longer needed: its unwritten data is never written.
    fn remove(&self, file: &Self::File);

    /// The causes of the wait of a task's call that began and ended at these instants, if this world records them. The
    /// call waited for writes of the file, or for reads.
    fn waits(&self, _: &Client, _: &Self::File, _: WaitsFor, _began_ns: u64, _ended_ns: u64) -> Option<CallWaits> {
        None
    }

    /// Makes the file durable for a task.
    fn sync(&self, task: &Client, file: &Self::File) -> impl Future<Output = Result<(), Error>> + Send;
}
