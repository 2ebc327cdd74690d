//! Objects in use, and objects that nobody needs.
//!
//! Owns: the holders of each object, the queue of objects to reap.
//! Does not own: reaping (`reaper`), names.
//! Invariants: an object has one [`Held`] at a time. An object without a name enters the queue when its last holder
//! goes, or at once if it has none. The queue has a bound: objects beyond it are found by their marks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// Most objects in the queue.
const QUEUE_MAX: usize = 16_384;

/// An object that somebody uses: a node of the tree, or a request of the engine.
#[derive(Debug)]
pub struct Held {
    ino: u64,
    /// Its last name is gone.
    is_unnamed: AtomicBool,
    holders: Arc<Holders>,
}

impl Held {
    /// The object's number.
    pub fn ino(&self) -> u64 {
        self.ino
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut inside = self.holders.lock();
        // Another holder may have come since the last one went.
        if inside.held.get(&self.ino).is_some_and(|held| held.strong_count() == 0) {
            inside.held.remove(&self.ino);
        }
        if self.is_unnamed.load(Ordering::Acquire) {
            inside.push(self.ino);
        }
    }
}

#[derive(Debug, Default)]
struct Inside {
    held: BTreeMap<u64, Weak<Held>>,
    queue: VecDeque<u64>,
    /// Marks have to be read: at the beginning, and after an object found no room in the queue.
    is_incomplete: bool,
    is_closed: bool,
    reaper: Option<Waker>,
}

impl Inside {
    fn push(&mut self, ino: u64) {
        if self.queue.len() < QUEUE_MAX {
            self.queue.push_back(ino);
        } else {
            self.is_incomplete = true;
        }
        if let Some(reaper) = self.reaper.take() {
            reaper.wake();
        }
    }
}

/// The next work of the reaper.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// This object has neither name nor holder.
    Object(u64),
    /// All marks are to be read.
    Marks,
    /// The tree has ended.
    Nothing,
}

/// All holders.
#[derive(Debug, Default)]
pub(super) struct Holders(Mutex<Inside>);

impl Holders {
    pub(super) fn new() -> Arc<Self> {
        let holders = Self::default();
        holders.lock().is_incomplete = true;
        Arc::new(holders)
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds an object that has a name.
    pub(super) fn hold(self: &Arc<Self>, ino: u64) -> Arc<Held> {
        let mut inside = self.lock();
        if let Some(held) = inside.held.get(&ino).and_then(Weak::upgrade) {
            return held;
        }
        let held = Arc::new(Held { ino, is_unnamed: AtomicBool::new(false), holders: Arc::clone(self) });
        inside.held.insert(ino, Arc::downgrade(&held));
        held
    }

    /// The last name of an object is gone.
    pub(super) fn unname(&self, ino: u64) {
        let mut inside = self.lock();
        let held = inside.held.get(&ino).and_then(Weak::upgrade);
        match &held {
            Some(held) => held.is_unnamed.store(true, Ordering::Release),
            None => inside.push(ino),
        }
        // If this was the last holder, its drop takes the lock.
        drop(inside);
    }

    /// Notes the object of a mark.
    pub(super) fn found_mark(&self, ino: u64) {
        let mut inside = self.lock();
        if !inside.held.contains_key(&ino) {
            inside.push(ino);
        }
    }

    /// Waits for work of the reaper.
    pub(super) fn poll_due(&self, cx: &Context<'_>) -> Poll<Due> {
        let mut inside = self.lock();
        if inside.is_closed {
            return Poll::Ready(Due::Nothing);
        }
        if let Some(ino) = inside.queue.pop_front() {
            return Poll::Ready(Due::Object(ino));
        }
        if std::mem::take(&mut inside.is_incomplete) {
            return Poll::Ready(Due::Marks);
        }
        inside.reaper = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ends the reaper.
    pub(super) fn close(&self) {
        let mut inside = self.lock();
        inside.is_closed = true;
        if let Some(reaper) = inside.reaper.take() {
            reaper.wake();
        }
    }
}

#[cfg(test)]
mod tests;
