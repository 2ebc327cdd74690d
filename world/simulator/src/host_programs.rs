//! Locks of a tree's files as programs of its host see them.
//!
//! Owns: the calls of the server in their order, the lock of a program, files whose file system stands still.
//! Does not own: the server's table of locks (the volume).
//! Invariants: a file that stands still makes no call; the calls are made when it goes on. Nothing here waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_volume::{HostLocks, HostRefusal, LockMode, LockWaker, Span};

/// A mode that the server gave to bytes; none unlocks.
pub type HostLockCall = (Span, Option<LockMode>);

#[derive(Default)]
struct OfFile {
    calls: Vec<HostLockCall>,
    program: Option<(Span, LockMode)>,
    stands: bool,
    left: Vec<Box<dyn FnOnce() + Send>>,
    waiting: Vec<Arc<dyn LockWaker>>,
}

/// The programs of a host, by the numbers of the tree's objects.
#[derive(Default)]
pub struct HostPrograms(Mutex<BTreeMap<u64, OfFile>>);

impl HostPrograms {
    fn files(&self) -> MutexGuard<'_, BTreeMap<u64, OfFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, file: u64, change: impl FnOnce(&mut OfFile) -> T) -> T {
        change(self.files().entry(file).or_default())
    }

    /// The file system of a file answers nothing from now on.
    pub fn stand_still(&self, file: u64) {
        self.with(file, |it| it.stands = true);
    }

    /// The file system of a file answers again.
    pub fn go_on(&self, file: u64) {
        let left = self.with(file, |it| {
            it.stands = false;
            std::mem::take(&mut it.left)
        });
        left.into_iter().for_each(|work| work());
    }

    /// A program locks bytes in place of those that one had before; none unlocks.
    pub fn lock(&self, file: u64, lock: Option<(Span, LockMode)>) {
        let waiting = self.with(file, |it| {
            it.program = lock;
            std::mem::take(&mut it.waiting)
        });
        waiting.iter().for_each(|waiter| waiter.wake());
    }

    /// The calls of the server up to now.
    pub fn calls(&self, file: u64) -> Vec<HostLockCall> {
        self.with(file, |it| it.calls.clone())
    }
}

/// The server's locks of one file.
pub(crate) struct OfServer {
    pub(crate) programs: Arc<HostPrograms>,
    pub(crate) file: u64,
}

impl HostLocks for OfServer {
    fn start(&self, work: Box<dyn FnOnce() + Send>) {
        let now = self.programs.with(self.file, |it| match it.stands {
            true => {
                it.left.push(work);
                None
            }
            false => Some(work),
        });
        now.into_iter().for_each(|work| work());
    }

    fn set(&self, span: Span, mode: Option<LockMode>) -> Result<(), HostRefusal> {
        if mode.is_some_and(|mode| self.conflict(span, mode).is_some()) {
            return Err(HostRefusal::Held);
        }
        self.programs.with(self.file, |it| it.calls.push((span, mode)));
        Ok(())
    }

    fn conflict(&self, span: Span, mode: LockMode) -> Option<(Span, LockMode, u32)> {
        let (their, their_mode) = self.programs.with(self.file, |it| it.program)?;
        let excludes = their_mode == LockMode::Exclusive || mode == LockMode::Exclusive;
        let meets = span.first() <= their.last() && their.first() <= span.last();
        (excludes && meets).then_some((their, their_mode, 77))
    }

    fn wake_when_free(&self, _: Span, _: LockMode, waker: Arc<dyn LockWaker>) {
        self.programs.with(self.file, |it| it.waiting.push(waker));
    }
}
