//! A process of a world: a runtime of its own with the world's time.
//!
//! Owns: its steps, its end by a kill.
//! Does not own: its work (`writer`).
//! Invariants: it takes steps only while the world lets it, so a frozen process takes none. Its runtime never moves
//! time by itself.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use chrono::{DateTime, Utc};
use slatedb_common::clock::{SystemClock, SystemClockTicker};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::world::now_ns;

/// All ready tasks have run after so many parks in a row: a park wakes the tasks of timers that are due.
const PARKS: usize = 3;

/// The database's clock.
#[derive(Debug)]
pub(super) struct SimClock;

impl SystemClock for SimClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + Duration::from_nanos(now_ns())
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}

impl afflux_object::Clock for SimClock {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn wall_ns(&self) -> u64 {
        now_ns()
    }

    async fn sleep_until_ns(&self, at_ns: u64) {
        while now_ns() < at_ns {
            tokio::time::sleep(Duration::from_nanos(at_ns - now_ns())).await;
        }
    }
}

/// The waker of the future that waits for a park.
type Parked = Arc<Mutex<Option<Waker>>>;

pub(super) struct Process {
    runtime: Runtime,
    parked: Parked,
    task: JoinHandle<()>,
    born: Instant,
    born_ns: u64,
    pub(super) frozen_until_ns: u64,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Process")
    }
}

impl Process {
    /// Starts a process. It takes its first step later.
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(life: impl FnOnce(Handle) -> F) -> Self {
        let parked = Parked::default();
        let of_park = Arc::clone(&parked);
        let wake = move || {
            let waker = of_park.lock().unwrap_or_else(PoisonError::into_inner).take();
            waker.into_iter().for_each(Waker::wake);
        };
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).on_thread_park(wake).build().unwrap();
        let born = runtime.block_on(async { Instant::now() });
        let task = runtime.spawn(life(runtime.handle().clone()));
        Self { runtime, parked, task, born, born_ns: now_ns(), frozen_until_ns: 0 }
    }

    /// Runs all that is ready at the world's time. Returns whether the process has ended.
    pub(super) fn step(&mut self) -> bool {
        let passed = Duration::from_nanos(now_ns() - self.born_ns);
        self.runtime.block_on(async {
            let due = passed.saturating_sub(self.born.elapsed());
            if !due.is_zero() {
                tokio::time::advance(due).await;
            }
            for _ in 0..PARKS {
                self.parks().await;
            }
            assert!(self.born.elapsed() <= passed + Duration::from_millis(1), "the runtime moved time by itself");
        });
        self.task.is_finished()
    }

    async fn parks(&self) {
        let mut waits = true;
        let park = |cx: &mut Context<'_>| {
            if std::mem::take(&mut waits) {
                *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let has_parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner).is_none();
            if has_parked { Poll::Ready(()) } else { Poll::Pending }
        };
        poll_fn(park).await;
    }

    pub(super) fn is_frozen(&self) -> bool {
        now_ns() < self.frozen_until_ns
    }
}
