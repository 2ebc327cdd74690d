//! A thread's reactor that keeps operations in flight between two waits.
//!
//! Owns: the wait for what is in flight at the end.
//! Does not own: the reactor (`reactor`), one wait (`visit`), the program's futures.
//! Invariants: the thread comes back for the reads of an earlier part
//! (`a_thread_leaves_its_reads_in_flight_and_comes_back_for_them`). A blocking call on this thread drives the same
//! ring, so the call can wait for such a read (`a_blocking_call_gets_a_page_that_its_thread_left_in_flight`). The drop
//! waits for all of them, except in a forked child, which has none.

use std::rc::Rc;

use super::visit::{Visit, WaitInside};
use crate::foreign_wakers::DeferredWakes;
use crate::reactor::Reactor;

/// This thread's reactor of a platform, for a thread that comes back to it.
pub struct RetainedReactor {
    reactor: Rc<Reactor>,
    /// The process that made it.
    process: u32,
}

impl RetainedReactor {
    pub(super) fn new(reactor: Rc<Reactor>) -> Self {
        reactor.retain();
        Self { reactor, process: std::process::id() }
    }

    /// Polls `future` until it ends, and drives this thread's operations meanwhile, those of earlier futures too. No
    /// part of the future waits in the host while another could go on.
    ///
    /// # Errors
    /// On a thread that a reactor drives already.
    pub fn drive<F: Future>(&self, future: F) -> Result<F::Output, WaitInside> {
        let _held = DeferredWakes::new();
        Ok(Visit::begin(Rc::clone(&self.reactor), false)?.reactor.block_on(future))
    }
}

impl Drop for RetainedReactor {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.reactor.release();
        } else {
            // The operations are the parent's: nobody reports them here.
            std::mem::forget(Rc::clone(&self.reactor));
        }
    }
}
