//! Host calls that a thread makes itself, instead of handing them to a pool.
//!
//! Owns: the mark of a thread that asks before it blocks, its permission, the work that it leaves for later.
//! Does not own: which thread gets a permission (`fuse::resting`), the calls (`pool`), tasks (`platform`).
//! Invariants: a thread is marked only while it polls one future. From the permission on, its other duties are somebody
//! else's. Deferred work is done on the same thread, after the future's result was used, under the permission.
//!
//! A call of the host mostly ends within microseconds. Two hand-overs to other threads and back take several times as
//! long.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Deferred work.
type Work = Box<dyn FnOnce() + Send>;

/// The giver of permissions to block.
pub trait Leave: Send + Sync {
    /// Permits this thread to block, until [`Leave::end`].
    fn try_permit(&self) -> bool;
    /// The thread blocks no more.
    fn end(&self);
}

/// The state of a thread that makes host calls itself.
struct ThreadState {
    leave: Arc<dyn Leave>,
    /// The answer to the first question.
    permitted: Option<bool>,
    later: Vec<Work>,
}

impl ThreadState {
    fn try_permit(&mut self) -> bool {
        *self.permitted.get_or_insert_with(|| self.leave.try_permit())
    }

    fn end(self) {
        if self.permitted == Some(true) {
            self.leave.end();
        }
    }
}

thread_local! {
    static IS_MARKED: Cell<bool> = const { Cell::new(false) };
    static THREAD: RefCell<Option<ThreadState>> = const { RefCell::new(None) };
}

/// Whether this thread is in a part of its work that may ask for the permission to block.
pub(crate) fn is_marked() -> bool {
    IS_MARKED.get()
}

/// Whether this thread may make a call of the host itself, now.
pub fn may_block() -> bool {
    is_marked() && THREAD.with_borrow_mut(|thread| thread.as_mut().is_some_and(ThreadState::try_permit))
}

/// Leaves work for this thread, if it may do such work. Otherwise the work comes back.
pub fn leave(work: Work) -> Option<Work> {
    let mut work = Some(work);
    let _ = THREAD.try_with(|thread| {
        if let Some(thread) = &mut *thread.borrow_mut()
            && thread.try_permit()
        {
            thread.later.extend(work.take());
        }
    });
    work
}

/// Does work that may block in parts, and may ask `leave`. Then does the work that these parts deferred, and ends the
/// permission; also after a panic.
pub fn scope<T>(leave: Arc<dyn Leave>, work: impl FnOnce(&InPlace) -> T) -> T {
    THREAD.set(Some(ThreadState { leave, permitted: None, later: Vec::new() }));
    let result = catch_unwind(AssertUnwindSafe(|| work(&InPlace(()))));
    if let Some(mut thread) = THREAD.take() {
        for left in thread.later.drain(..) {
            // It may panic; the thread goes on.
            let _ = catch_unwind(AssertUnwindSafe(left));
        }
        thread.end();
    }
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// A thread that may block in parts of its work: see [`scope`].
pub struct InPlace(());

impl InPlace {
    /// Does a part of the work, which may block.
    pub fn run<T>(&self, part: impl FnOnce() -> T) -> T {
        let _marked = Marked::new();
        part()
    }

    /// The thread makes no more host calls, but for work that it deferred. Without such work the permission ends here.
    pub fn end_calls(&self) {
        let thread = THREAD.take();
        match thread {
            Some(thread) if thread.later.is_empty() => thread.end(),
            thread => THREAD.set(thread),
        }
    }
}

/// The mark, taken off also if the work panics.
struct Marked(());

impl Marked {
    fn new() -> Self {
        IS_MARKED.set(true);
        Self(())
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        IS_MARKED.set(false);
    }
}

#[cfg(test)]
mod tests;
