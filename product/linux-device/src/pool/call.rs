//! Calls that a pool's threads make for waiting tasks.
//!
//! Owns: a call's work and its result, in one piece of memory, and the stage of the call.
//! Does not own: the queue, threads, free slots (`pool`).
//! Invariants: queued work is done once, whether a task waits for it or not; work dropped before that is not done. No
//! lock of a call is held while its pool's is taken, nor while work is done or a task is woken. A thread that may block
//! does the work itself, and never queues it.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::{Entrance, Job, Lane, PoolTask, WorkerPool};
use crate::foreign_wakers::make_wakes;
use crate::in_place;

/// The work of a call, on its thread: it returns the result, and more work for the thread after that.
pub trait PoolWork<R>: Send {
    /// Does the work.
    fn carry_out(self) -> (R, Option<PoolTask>);
}

impl<R, F: FnOnce() -> (R, Option<PoolTask>) + Send> PoolWork<R> for F {
    fn carry_out(self) -> (R, Option<PoolTask>) {
        self()
    }
}

impl WorkerPool {
    /// Runs `work` on a thread of the pool and returns its result. Nothing happens before the first poll; while the
    /// queue is full the future waits for a slot, first come first served. If the future is dropped before the work was
    /// queued, the work never runs; a later drop discards its result. A panic of the work comes out of the future.
    pub fn run<R: Send + 'static, W: FnOnce() -> R + Send + 'static>(
        &self,
        work: W,
    ) -> impl Future<Output = R> + Send + use<R, W> {
        Waited::of(Arc::new(PoolCall::new(self, Lane::default(), move || (work(), None))))
    }
}

/// A blocking call that a worker of the pool makes.
pub struct PoolCall<W, R>(Mutex<Stage<W, R>>);

enum Stage<W, R> {
    /// Not queued yet; with its ticket if it waits for a slot.
    New {
        pool: WorkerPool,
        lane: Lane,
        work: W,
        ticket: Option<u64>,
    },
    /// In the queue, with the waiting task, if there still is one.
    Queued {
        work: W,
        waiter: Waiter,
    },
    Running {
        waiter: Waiter,
    },
    Done(Result<R, Box<dyn Any + Send>>),
    /// The result was taken, or is not wanted.
    Over,
}

enum Waiter {
    Waits(Waker),
    LetGo,
}

impl<W: PoolWork<R> + 'static, R: Send + 'static> PoolCall<W, R> {
    /// A call that has not begun.
    pub fn new(pool: &WorkerPool, lane: Lane, work: W) -> Self {
        Self(Mutex::new(Stage::New { pool: pool.clone(), lane, work, ticket: None }))
    }

    /// Makes it another call. Nobody else may have it.
    pub fn renew(&mut self, pool: &WorkerPool, lane: Lane, work: W) {
        let stage = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        *stage = Stage::New { pool: pool.clone(), lane, work, ticket: None };
    }

    fn lock(&self) -> MutexGuard<'_, Stage<W, R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace(&self, stage: Stage<W, R>) -> Stage<W, R> {
        std::mem::replace(&mut *self.lock(), stage)
    }

    /// Queues it as `job`, or lets it wait for a slot.
    fn begin(&self, cx: &Context<'_>, pool: WorkerPool, lane: Lane, work: W, job: Arc<dyn Job>, ticket: Option<u64>) {
        self.replace(Stage::Queued { work, waiter: Waiter::Waits(cx.waker().clone()) });
        match pool.enter(lane, job, ticket, cx.waker()) {
            Entrance::Queued => {}
            Entrance::Waits(ticket) => {
                let mut stage = self.lock();
                if let Stage::Queued { work, .. } = std::mem::replace(&mut *stage, Stage::Over) {
                    *stage = Stage::New { pool, lane, work, ticket: Some(ticket) };
                }
            }
            // The work is never done; the code that stopped the pool informs the waiting tasks.
            Entrance::Closed => drop(self.replace(Stage::Running { waiter: Waiter::LetGo })),
        }
    }

    /// The result, once; until then, its arrival wakes the task. The first poll begins the call. `job` shares the call
    /// with its pool.
    ///
    /// # Panics
    /// If the result was returned before.
    pub fn poll_result(&self, cx: &mut Context<'_>, job: impl FnOnce() -> Arc<dyn Job>) -> Poll<R> {
        let mut stage = self.lock();
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::New { pool, work, ticket: None, .. } if in_place::may_block() => {
                drop(stage);
                let begun = pool.underway().begin();
                let (result, more) = work.carry_out();
                drop(begun);
                // It may take long, and the result does not wait for it.
                more.into_iter().for_each(|more| pool.post_work(Lane::default(), more));
                Poll::Ready(result)
            }
            Stage::New { pool, lane, work, ticket } => {
                drop(stage);
                self.begin(cx, pool, lane, work, job(), ticket);
                Poll::Pending
            }
            Stage::Done(Ok(result)) => Poll::Ready(result),
            Stage::Done(Err(panic)) => {
                drop(stage);
                resume_unwind(panic)
            }
            Stage::Queued { work, .. } => {
                *stage = Stage::Queued { work, waiter: Waiter::Waits(cx.waker().clone()) };
                Poll::Pending
            }
            Stage::Running { .. } => {
                *stage = Stage::Running { waiter: Waiter::Waits(cx.waker().clone()) };
                Poll::Pending
            }
            Stage::Over => unreachable!("polled after it was ready"),
        }
    }

    /// The waiter has gone. A call that has not begun is not made.
    pub fn let_go(&self) {
        let mut stage = self.lock();
        let before = std::mem::replace(&mut *stage, Stage::Over);
        match before {
            Stage::Queued { work, .. } => *stage = Stage::Queued { work, waiter: Waiter::LetGo },
            Stage::Running { .. } => *stage = Stage::Running { waiter: Waiter::LetGo },
            Stage::New { pool, work, ticket, .. } => {
                drop(stage);
                drop(work);
                ticket.into_iter().for_each(|ticket| pool.leave(ticket));
            }
            before @ (Stage::Done(_) | Stage::Over) => {
                drop(stage);
                drop(before);
            }
        }
    }
}

/// The waiter for a call.
struct Waited<W: PoolWork<R> + 'static, R: Send + 'static>(Arc<PoolCall<W, R>>);

impl<W: PoolWork<R> + 'static, R: Send + 'static> Waited<W, R> {
    /// The call's only waiter.
    fn of(call: Arc<PoolCall<W, R>>) -> Self {
        Self(call)
    }
}

impl<W: PoolWork<R> + 'static, R: Send + 'static> Future for Waited<W, R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        self.0.poll_result(cx, || Arc::clone(&self.0) as _)
    }
}

impl<W: PoolWork<R> + 'static, R: Send + 'static> Drop for Waited<W, R> {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

impl<W: PoolWork<R> + 'static, R: Send + 'static> Job for PoolCall<W, R> {
    fn run(&self) {
        let mut stage = self.lock();
        let Stage::Queued { work, waiter } = std::mem::replace(&mut *stage, Stage::Over) else {
            unreachable!("it is in the queue once")
        };
        *stage = Stage::Running { waiter };
        drop(stage);
        let (result, more) = match catch_unwind(AssertUnwindSafe(|| work.carry_out())) {
            Ok((result, more)) => (Ok(result), more),
            Err(panic) => (Err(panic), None),
        };
        let mut stage = self.lock();
        match std::mem::replace(&mut *stage, Stage::Done(result)) {
            Stage::Running { waiter: Waiter::Waits(waker) } => {
                drop(stage);
                waker.wake();
                // The remaining work may take long.
                make_wakes();
            }
            _ => {
                let unwanted = std::mem::replace(&mut *stage, Stage::Over);
                drop(stage);
                drop(unwanted);
            }
        }
        more.into_iter().for_each(PoolTask::run);
    }
}
