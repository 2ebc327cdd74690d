//! Objects in use, and objects that nobody needs.
//!
//! Owns: the holders of each object, the queue of objects to reap.
//! Does not own: reaping and names (`remove`).
//! Invariants: an object has one [`HeldNode`] at a time. An object without a name is due when its last holder goes, or
//! at once if it has none. It is due once at a time. The queue has a bound: objects beyond it are found by their marks.
//! No lock is held while the reaper is woken.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// Most objects in the queue.
const QUEUE_MAX: usize = 16_384;

/// An object that somebody uses: a node of the tree, or a request of the engine.
#[derive(Debug)]
pub struct HeldNode {
    ino: u64,
    /// It has no name.
    is_unnamed: AtomicBool,
    /// Nobody has named it yet. It may get its first name.
    is_nameless: AtomicBool,
    held_nodes: Arc<HeldNodes>,
}

impl HeldNode {
    fn new(ino: u64, is_nameless: bool, held_nodes: Arc<HeldNodes>) -> Arc<Self> {
        let flag = || AtomicBool::new(is_nameless);
        Arc::new(Self { ino, is_unnamed: flag(), is_nameless: flag(), held_nodes })
    }

    /// A file of a volume without names. It is never reaped.
    pub(crate) fn without_tree(ino: u64) -> Arc<Self> {
        Self::new(ino, false, Arc::default())
    }

    /// The object's number.
    pub fn ino(&self) -> u64 {
        self.ino
    }
}

impl Drop for HeldNode {
    fn drop(&mut self) {
        let reaper = {
            let mut inside = self.held_nodes.lock();
            // Another holder may have come since the last one went.
            if inside.held.get(&self.ino).is_some_and(|held| held.strong_count() == 0) {
                inside.held.remove(&self.ino);
            }
            if self.is_unnamed.load(Ordering::Acquire) { inside.push(self.ino) } else { None }
        };
        reaper.into_iter().for_each(Waker::wake);
    }
}

#[derive(Debug, Default)]
struct Inside {
    held: BTreeMap<u64, Weak<HeldNode>>,
    queue: VecDeque<u64>,
    /// The objects in the queue, and those that are being reaped.
    due: BTreeSet<u64>,
    /// Marks have to be read: at the beginning, and after an object did not fit into the queue.
    is_incomplete: bool,
    is_closed: bool,
    reaper: Option<Waker>,
}

impl Inside {
    /// Makes an object due. Returns the reaper if it waits.
    fn push(&mut self, ino: u64) -> Option<Waker> {
        if self.queue.len() >= QUEUE_MAX {
            self.is_incomplete = true;
        } else if self.due.insert(ino) {
            self.queue.push_back(ino);
        }
        self.reaper.take()
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

#[derive(Debug, Default)]
pub(super) struct HeldNodes(Mutex<Inside>);

impl HeldNodes {
    pub(super) fn new() -> Arc<Self> {
        let held_nodes = Self::default();
        held_nodes.lock().is_incomplete = true;
        Arc::new(held_nodes)
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds an object that has a name.
    pub(super) fn hold(self: &Arc<Self>, ino: u64) -> Arc<HeldNode> {
        let mut inside = self.lock();
        if let Some(held) = inside.held.get(&ino).and_then(Weak::upgrade) {
            return held;
        }
        let held = HeldNode::new(ino, false, Arc::clone(self));
        inside.held.insert(ino, Arc::downgrade(&held));
        held
    }

    /// Holds a new object without a name.
    pub(super) fn hold_nameless(self: &Arc<Self>, ino: u64) -> Arc<HeldNode> {
        let held = HeldNode::new(ino, true, Arc::clone(self));
        self.lock().held.insert(ino, Arc::downgrade(&held));
        held
    }

    /// Whether an object has had no name yet.
    pub(super) fn is_nameless(&self, ino: u64) -> bool {
        let held = self.lock().held.get(&ino).and_then(Weak::upgrade);
        held.is_some_and(|held| held.is_nameless.load(Ordering::Acquire))
    }

    /// An object got its first name. A holder has it.
    pub(super) fn name(&self, ino: u64) {
        let held = self.lock().held.get(&ino).and_then(Weak::upgrade);
        if let Some(held) = held {
            held.is_nameless.store(false, Ordering::Release);
            held.is_unnamed.store(false, Ordering::Release);
        }
    }

    /// The last name of an object is gone.
    pub(super) fn unname(&self, ino: u64) {
        // If this is the last holder, its drop takes the lock.
        let (_held, reaper) = {
            let mut inside = self.lock();
            let held = inside.held.get(&ino).and_then(Weak::upgrade);
            let reaper = match &held {
                Some(held) => {
                    held.is_unnamed.store(true, Ordering::Release);
                    None
                }
                None => inside.push(ino),
            };
            (held, reaper)
        };
        reaper.into_iter().for_each(Waker::wake);
    }

    /// Notes the object of a mark. Only the reaper calls it.
    pub(super) fn found_mark(&self, ino: u64) {
        let mut inside = self.lock();
        if !inside.held.contains_key(&ino) {
            inside.push(ino);
        }
    }

    /// Whether an object did not fit into the queue since the marks were read.
    pub(super) fn has_pending_marks(&self) -> bool {
        self.lock().is_incomplete
    }

    /// An object was reaped, or cannot be.
    pub(super) fn reaped(&self, ino: u64) {
        self.lock().due.remove(&ino);
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
        let reaper = {
            let mut inside = self.lock();
            inside.is_closed = true;
            inside.reaper.take()
        };
        reaper.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
