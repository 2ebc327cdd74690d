//! A thread's visit to its reactor, for one wait; the reactor that a thread retains between two waits.
//!
//! Owns: entering the reactor, what happens to operations in flight at the end of a visit; the wait for them at the end
//! of a retained reactor.
//! Does not own: the reactor (`reactor`), the futures that the thread waits for.
//! Invariants: a thread is in one visit at a time. After the visit every operation of the reactor is submitted
//! (`a_part_submits_what_it_leaves_in_flight`). A thread with a retained reactor comes back for the reads of an earlier
//! part (`a_thread_leaves_its_reads_in_flight_and_comes_back_for_them`). A blocking call on this thread drives the same
//! ring, so the call can wait for such a read (`a_blocking_call_gets_a_page_that_its_thread_left_in_flight`). The drop
//! of a retained reactor waits for all of them, except in a forked child, which has none.

use std::rc::Rc;

use crate::foreign_wakers::DeferredWakes;
use crate::reactor::{Reactor, ReactorEntered};

/// A wait inside a task or inside another wait would stop the thread that both need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a wait inside a task, or inside another wait, would stop its thread")]
pub struct WaitInside;

/// A thread's wait on its reactor. Its end waits for what is in flight there, also after a panic in the future: others
/// may wait for the same pages. If the reactor is retained, the end only submits it.
pub(super) struct Visit {
    pub(super) reactor: Rc<Reactor>,
    entered: Option<ReactorEntered>,
}

impl Visit {
    pub(super) fn begin(reactor: Rc<Reactor>, is_one_call: bool) -> Result<Self, WaitInside> {
        let entered = reactor.try_enter().ok_or(WaitInside)?;
        reactor.drive_one_call(is_one_call);
        Ok(Self { reactor, entered: Some(entered) })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        // Completions from here on may submit more I/O. That goes to the platform's reactors, since otherwise this
        // thread could be held for ever.
        drop(self.entered.take());
        leave(&self.reactor);
    }
}

/// Waits for the operations in flight, or only submits them if the reactor is retained.
pub(super) fn leave(reactor: &Rc<Reactor>) {
    if reactor.is_retained() {
        reactor.submit();
    } else {
        reactor.drain();
    }
}

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
