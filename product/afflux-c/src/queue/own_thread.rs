//! A queue's own thread, whose ring makes the reads of the queue's calls.
//!
//! Owns: the reactors of this thread's queues, the check that a call comes from the queue's thread.
//! Does not own: the calls (`queue`), driving the ring (`afflux`).
//! Invariants: only the thread that began it uses a reactor, which ends with the thread at the latest
//! (`a_queue_whose_thread_has_ended_keeps_nobody_waiting`).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Instant;

use afflux::{Cache, ThreadReactor};

use crate::border::{Answer, CallFailure, guarded};

/// Lives as long as the reactor.
struct Mark;

struct OwnReactor {
    mark: Arc<Mark>,
    cache: Cache,
    reactor: ThreadReactor,
}

thread_local! {
    /// The reactors of this thread's queues.
    static REACTORS: RefCell<Vec<Rc<OwnReactor>>> = const { RefCell::new(Vec::new()) };
}

/// The thread of a queue.
pub(super) struct OwnThread(Weak<Mark>);

impl OwnThread {
    /// Makes this thread the queue's own.
    pub(super) fn begin(cache: &Cache) -> Answer<Self> {
        let mark = Arc::new(Mark);
        let own = Self(Arc::downgrade(&mark));
        let reactor = Rc::new(OwnReactor { mark, cache: cache.clone(), reactor: cache.thread_reactor() });
        REACTORS.try_with(|all| all.borrow_mut().push(reactor)).map_err(|_| ending())?;
        Ok(own)
    }

    fn find(&self) -> Option<Rc<OwnReactor>> {
        let is_mine = |known: &&Rc<OwnReactor>| std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&known.mark));
        REACTORS.try_with(|all| all.borrow().iter().find(is_mine).cloned()).ok().flatten()
    }

    fn reactor(&self) -> Answer<Rc<OwnReactor>> {
        self.find().ok_or_else(|| CallFailure::invalid("this queue is for the thread that made it".to_owned()))
    }

    /// Runs a future of the queue on its thread.
    pub(super) fn drive<T>(&self, future: impl Future<Output = Answer<T>>) -> Answer<T> {
        let own = self.reactor()?;
        guarded(|| own.cache.clone(), || own.reactor.drive(future)?)
    }

    /// As [`OwnThread::drive`], until the deadline at most.
    pub(super) fn drive_until(&self, deadline: Instant, future: impl Future<Output = Answer<()>>) -> Answer<()> {
        let own = self.reactor()?;
        let left = deadline.saturating_duration_since(Instant::now());
        guarded(|| own.cache.clone(), || own.reactor.drive_for(future, left)?.unwrap_or(Ok(())))
    }

    /// Whether this thread may close the queue.
    pub(super) fn check_closable(&self) -> Answer<()> {
        if self.0.strong_count() == 0 { Ok(()) } else { self.reactor().map(drop) }
    }

    /// Waits for reads in flight, and ends the reactor.
    pub(super) fn end(&self) {
        let Some(own) = self.find() else { return };
        // Its drop runs wakers, which may call the library.
        let _ = REACTORS.try_with(|all| all.borrow_mut().retain(|known| !Rc::ptr_eq(known, &own)));
    }
}

fn ending() -> CallFailure {
    CallFailure::invalid("a thread that ends has no queue of its own".to_owned())
}
