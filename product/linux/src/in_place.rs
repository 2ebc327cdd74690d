//! Host calls that a thread makes itself, instead of handing them to a pool.
//!
//! Owns: the mark of a thread that may block now, the work that it leaves for later.
//! Does not own: which thread may block (`fuse::session`), the calls (`pool`), tasks (`platform`).
//! Invariants: a thread is marked only while it polls one future, and its other duties are somebody else's meanwhile. Work
//! left for later is done on the same thread, after the future's result was used.
//!
//! A call of the host mostly ends within microseconds. Two hand-overs to other threads and back take several times as
//! long.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Work that is left for later.
type Work = Box<dyn FnOnce() + Send>;

thread_local! {
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
    static LATER: RefCell<Option<Vec<Work>>> = const { RefCell::new(None) };
}

/// Whether this thread may make the host's calls itself.
pub(crate) fn may_block() -> bool {
    MAY_BLOCK.get()
}

/// Leaves work for this thread, if it does such work. Otherwise the work comes back.
pub(crate) fn leave(work: Work) -> Option<Work> {
    let mut work = Some(work);
    let _ = LATER.try_with(|later| {
        if let Some(later) = &mut *later.borrow_mut() {
            later.extend(work.take());
        }
    });
    work
}

/// A thread that may block in parts of its work. The drop does the work that these parts left.
pub(crate) struct InPlace(());

impl InPlace {
    pub(crate) fn begin() -> Self {
        LATER.set(Some(Vec::new()));
        Self(())
    }

    /// Does a part of the work, which may block.
    pub(crate) fn run<T>(&self, part: impl FnOnce() -> T) -> T {
        let _marked = Marked::new();
        part()
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        for work in LATER.take().into_iter().flatten() {
            // It may panic; the thread goes on.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }
}

/// The mark, taken off also if the work panics.
struct Marked(());

impl Marked {
    fn new() -> Self {
        MAY_BLOCK.set(true);
        Self(())
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        MAY_BLOCK.set(false);
    }
}

#[cfg(test)]
mod tests;
