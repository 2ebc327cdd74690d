//! A thread's visit to its reactor, for one wait.
//!
//! Owns: entering the reactor, and what happens to operations in flight at the end.
//! Does not own: the reactor (`reactor`), the future that the thread waits for.
//! Invariants: a thread is in one visit at a time. After the visit no operation of the reactor is left unsubmitted
//! (`a_part_submits_what_it_leaves_in_flight`).

use std::rc::Rc;

use crate::reactor::{Reactor, ReactorEntered};

/// A wait inside a task or inside another wait would stop the thread that both need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a wait inside a task, or inside another wait, would stop its thread")]
pub struct WaitInside;

/// A thread's wait on its reactor. Its end waits for what is in flight there, also after a panic in the future: others
/// may wait for the same pages. If the reactor is kept, the end only submits it.
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
        // thread could be kept for ever.
        drop(self.entered.take());
        leave(&self.reactor);
    }
}

/// Waits for the operations in flight, or only submits them if the reactor is kept.
pub(super) fn leave(reactor: &Rc<Reactor>) {
    if reactor.is_retained() {
        reactor.submit();
    } else {
        reactor.drain();
    }
}
