//! Wakers of other programs' tasks: foreign code that this program has to run.
//!
//! Owns: a waker that stands for a foreign one; where and when the foreign one is cloned, woken and dropped.
//! Does not own: the waiting. Queues everywhere hold the stand-in, and know of no foreign waker.
//! Invariants: foreign code runs with no lock of ours held, so it may call us again. A panic in it ends at our call
//! site. Only a panic in a clone goes on, to the polling caller, since that caller passed the waker. A queue never
//! drops a foreign waker.
//!
//! A waker may be woken under the lock of a file, deep in a call. So waking the stand-in only notes that the foreign
//! waker is due. A reactor, a thread of a pool, and a call from outside each make the due wakes at a point where they
//! hold no lock ([`DeferredWakes`]). Any other thread may hold locks, so there a reactor makes the wake.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Runs foreign code. A panic in it is printed and ends here.
pub fn contain(call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        // The panic's payload may panic again when it is dropped.
        std::mem::forget(panic);
    }
}

/// A thread that makes wakes at a point where it holds no lock.
pub(crate) trait WakeThread: Send + Sync {
    /// Passes the wake to that thread, or gives it back if the thread has ended.
    fn make(&self, due: DueWake) -> Result<(), DueWake>;
}

/// A foreign wake that is due.
pub(crate) struct DueWake(Arc<ProxyWaker>);

impl DueWake {
    /// Wakes the foreign task. Call it only with no lock held.
    pub(crate) fn make(self) {
        self.0.make_wake();
    }
}

/// The engine's queues hold this in place of a foreign waker.
struct ProxyWaker {
    /// Present between a poll and the wake after it, while a caller has the future.
    theirs: Mutex<Option<Waker>>,
    /// A wake is on its way to the thread that makes it.
    due: AtomicBool,
    /// Makes the wake if this thread cannot.
    elsewhere: Arc<dyn WakeThread>,
}

impl ProxyWaker {
    fn theirs(&self) -> MutexGuard<'_, Option<Waker>> {
        self.theirs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes `waker` from now on. Call it only with no lock held.
    fn set_target(&self, waker: &Waker) {
        if self.theirs().as_ref().is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        let new = waker.clone();
        let old = self.theirs().replace(new);
        contain(|| drop(old));
    }

    /// Drops the foreign waker. Call it only with no lock held.
    fn clear_target(&self) {
        let theirs = self.theirs().take();
        contain(|| drop(theirs));
    }

    fn make_wake(&self) {
        // An exchange: either the task sees everything that its waker did before, or the wake becomes due once more.
        self.due.swap(false, Ordering::AcqRel);
        let theirs = self.theirs().take();
        contain(|| theirs.into_iter().for_each(Waker::wake));
    }
}

impl Wake for ProxyWaker {
    fn wake(self: Arc<Self>) {
        if !self.due.swap(true, Ordering::AcqRel) {
            make_later(DueWake(self));
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Arc::clone(self).wake();
    }
}

/// The wakes of one thread.
struct WakeQueue {
    /// Nested parts of a call that hold wakes back.
    depth: Cell<u32>,
    due: RefCell<VecDeque<DueWake>>,
}

thread_local! {
    static HELD: WakeQueue = const { WakeQueue { depth: Cell::new(0), due: RefCell::new(VecDeque::new()) } };
}

fn make_later(due: DueWake) {
    let mut due = Some(due);
    let _ = HELD.try_with(|held| {
        if held.depth.get() > 0 {
            held.due.borrow_mut().extend(due.take());
        }
    });
    due.into_iter().for_each(make_elsewhere);
}

fn make_elsewhere(due: DueWake) {
    let elsewhere = Arc::clone(&due.0.elsewhere);
    // If that thread has ended, so has the engine, and its locks are not taken any more.
    elsewhere.make(due).unwrap_or_else(DueWake::make);
}

/// Makes the foreign wakes that are due on this thread, which holds no lock. Wakes that become due meanwhile wait for
/// the next call.
pub(crate) fn make_wakes() {
    let count = HELD.try_with(|held| held.due.borrow().len()).unwrap_or(0);
    for _ in 0..count {
        let Some(due) = next_due() else { return };
        due.make();
    }
}

fn next_due() -> Option<DueWake> {
    HELD.try_with(|held| held.due.borrow_mut().pop_front()).ok().flatten()
}

/// While this guard lives, foreign wakes on this thread are held back. The drop of the outermost guard makes them.
/// Create and drop a guard only where the thread holds no lock.
pub struct DeferredWakes {
    _of_this_thread: PhantomData<*const ()>,
}

impl DeferredWakes {
    /// Holds wakes back from here on.
    #[expect(clippy::new_without_default, reason = "a guard, not a value")]
    pub fn new() -> Self {
        let _ = HELD.try_with(|held| held.depth.update(|depth| depth + 1));
        Self { _of_this_thread: PhantomData }
    }
}

impl Drop for DeferredWakes {
    fn drop(&mut self) {
        let depth = HELD.try_with(|held| held.depth.get()).unwrap_or(0);
        if depth == 1 {
            make_wakes();
        }
        let _ = HELD.try_with(|held| held.depth.set(depth.saturating_sub(1)));
        // A waker may run a task at once, which wakes others as well. This thread does not make wakes without end.
        while depth == 1
            && let Some(due) = next_due()
        {
            make_elsewhere(due);
        }
    }
}

/// A foreign waker and its stand-in, for as long as a caller has the future.
struct ForeignWaker {
    stand_in: Arc<ProxyWaker>,
    waker: Waker,
}

impl ForeignWaker {
    fn new(elsewhere: Arc<dyn WakeThread>) -> Self {
        let (theirs, due) = (Mutex::new(None), AtomicBool::new(false));
        let stand_in = Arc::new(ProxyWaker { theirs, due, elsewhere });
        Self { waker: Waker::from(Arc::clone(&stand_in)), stand_in }
    }
}

impl Drop for ForeignWaker {
    fn drop(&mut self) {
        self.stand_in.clear_target();
    }
}

/// Does work that a foreign task awaits. The work never sees the task's waker.
pub(crate) async fn awaited<T>(
    mut work: Pin<&mut impl Future<Output = T>>,
    elsewhere: impl Fn() -> Arc<dyn WakeThread>,
) -> T {
    let mut foreign = None;
    poll_fn(|cx| {
        let _held = DeferredWakes::new();
        // Most work ends at once. Then it needs no waker and no memory.
        if foreign.is_none()
            && let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            return Poll::Ready(done);
        }
        let foreign = foreign.get_or_insert_with(|| ForeignWaker::new(elsewhere()));
        foreign.stand_in.set_target(cx.waker());
        work.as_mut().poll(&mut Context::from_waker(&foreign.waker))
    })
    .await
}

#[cfg(test)]
mod tests;
