//! The two threads on which the adapters run, and the clock of an open volume.
//!
//! Owns: the runtime, its size, its end; the reading of the host's clocks, waits.
//! Does not own: the tasks, the meaning of the times.
//! Invariants: a future that `run` returns works on any executor. A task goes on when its future is dropped. The
//! runtime ends with its last owner and waits for nobody. `now_ns` goes on while the machine sleeps. A wait never ends
//! early.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use afflux_object::Clock;
use rustix::time::{ClockId, clock_gettime};
use slatedb_common::clock::SystemClock;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::StoreError;

const THREADS: usize = 2;
/// Threads that wait in the host's file system, for directories.
const BLOCKING_THREADS_MAX: usize = 16;

/// The runtime ended, or the task panicked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone;

/// Runs a future of this crate on the calling thread, which needs no executor then.
///
/// # Errors
/// If the host gives no thread.
pub fn wait<T>(future: impl Future<Output = T>) -> Result<T, StoreError> {
    let runtime = Builder::new_current_thread().build();
    Ok(runtime.map_err(|error| StoreError::Threads { why: error.to_string() })?.block_on(future))
}

/// A handle to the runtime. The last one ends it.
#[derive(Clone, Debug)]
pub(crate) struct Threads(Arc<Ending>);

#[derive(Debug)]
struct Ending {
    /// Absent if it belongs to a test.
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Threads {
    pub(crate) fn start() -> std::io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).max_blocking_threads(BLOCKING_THREADS_MAX).thread_name("afflux-store");
        let runtime = builder.enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        Ok(Self(Arc::new(Ending { runtime: Some(runtime), handle })))
    }

    /// Threads that wait for a local disk, and one that computes checksums.
    pub(crate) fn for_disk(waiting_max: usize) -> std::io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(waiting_max).thread_name("afflux-disk");
        let runtime = builder.enable_time().build()?;
        let handle = runtime.handle().clone();
        Ok(Self(Arc::new(Ending { runtime: Some(runtime), handle })))
    }

    /// Uses a runtime of a test, which ends it.
    #[cfg(test)]
    pub(crate) fn of(handle: Handle) -> Self {
        Self(Arc::new(Ending { runtime: None, handle }))
    }

    /// Runs a task on the calling thread, for a task that mostly ends without a wait. It may use the runtime. A dropped
    /// future ends it.
    pub(crate) async fn here<T>(&self, task: impl Future<Output = T>) -> T {
        let mut task = pin!(task);
        let poll = |context: &mut Context<'_>| {
            let _inside = self.0.handle.enter();
            task.as_mut().poll(context)
        };
        poll_fn(poll).await
    }

    /// Runs a task. Its result arrives through the returned future.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Result<T, Gone>> + Send + 'static {
        let task = self.0.handle.spawn(task);
        async move { task.await.map_err(|_| Gone) }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // A plain drop waits, and panics on a thread of the runtime itself.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The runtime's timers stop while the machine sleeps, so a long wait reads the clock once in this time.
const LONGEST_TIMER_NS: u64 = 1_000_000_000;

/// The time of the adapters: the host's, or a test's.
#[derive(Clone, Debug)]
pub(crate) struct Time {
    pub(crate) now_ns: fn() -> u64,
    /// A clock and a seed for the database, which has the host's without them.
    pub(crate) replay: Option<(Arc<dyn SystemClock>, u64)>,
}

impl Time {
    pub(crate) fn of_host() -> Self {
        Self { now_ns, replay: None }
    }
}

/// A clock that counts the sleep of the machine.
#[derive(Clone, Debug)]
pub struct StoreClock {
    pub(crate) threads: Threads,
}

impl Clock for StoreClock {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn wall_ns(&self) -> u64 {
        read_ns(ClockId::Realtime)
    }

    async fn sleep_until_ns(&self, at_ns: u64) {
        let wait = async move {
            while let Some(left_ns) = at_ns.checked_sub(now_ns()).filter(|left_ns| *left_ns > 0) {
                tokio::time::sleep(Duration::from_nanos(left_ns.min(LONGEST_TIMER_NS))).await;
            }
        };
        if self.threads.run(wait).await.is_err() {
            // The runtime ended: nothing may go on as if the time had passed.
            std::future::pending::<()>().await;
        }
    }
}

pub(crate) fn now_ns() -> u64 {
    read_ns(ClockId::Boottime)
}

fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)).unwrap_or(0)
}
