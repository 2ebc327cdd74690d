//! The two threads on which the adapters run.
//!
//! Owns: the runtime, its size, its end.
//! Does not own: the tasks.
//! Invariants: a future that `run` returns works on any executor. A task goes on when its future is dropped. The
//! runtime ends with its last owner and waits for nobody.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;

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
