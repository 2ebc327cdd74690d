//! Notices to the kernel about changes by others: it forgets its copies.
//!
//! Owns: the changes that wait to be told, each once.
//! Does not own: the finding of changes (the volume), the sending (worlds).
//! Invariants: noting a change waits for nothing and calls nobody but the sender's waker. At most [`OBJECTS_MAX`] objects
//! and [`NAMES_MAX`] names wait. Further ones are dropped: the kernel asks again by itself after its short time. Changes
//! are told before unused nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;

const OBJECTS_MAX: usize = 1 << 20;
const NAMES_MAX: usize = 4096;
/// Unused nodes are named again later, so few wait.
const UNUSED_MAX: usize = 1024;

/// The kernel forgets its copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Notice {
    /// The attributes of a node.
    Attributes(u64),
    /// The attributes and all bytes of a node.
    Bytes(u64),
    /// A name in the directory of a node.
    Name(u64, Bytes),
    /// Nodes. The kernel forgets those of them that no program uses.
    Unused(Vec<u64>),
}

#[derive(Default)]
struct Waiting {
    /// Whether the bytes changed, too.
    objects: BTreeMap<u64, bool>,
    names: BTreeSet<(u64, Bytes)>,
    unused: Vec<u64>,
    closed: bool,
}

#[derive(Default)]
pub(crate) struct Notices {
    waiting: Mutex<Waiting>,
    sender: AtomicWaker,
}

impl Notices {
    pub(crate) fn note(&self, notice: Notice) {
        let mut waiting = self.lock();
        match notice {
            Notice::Name(node, name) => {
                if waiting.names.len() < NAMES_MAX {
                    waiting.names.insert((node, name));
                }
            }
            Notice::Unused(nodes) => {
                if waiting.unused.len() < UNUSED_MAX {
                    waiting.unused.extend(nodes);
                }
            }
            Notice::Attributes(node) | Notice::Bytes(node) => {
                let bytes = matches!(notice, Notice::Bytes(_));
                if let Some(noted) = waiting.objects.get_mut(&node) {
                    *noted |= bytes;
                } else if waiting.objects.len() < OBJECTS_MAX {
                    waiting.objects.insert(node, bytes);
                }
            }
        }
        drop(waiting);
        self.sender.wake();
    }

    /// Ends the sender's wait for good.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.sender.wake();
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        // Registered before the look, so that no change in between is missed.
        self.sender.register(cx.waker());
        let mut waiting = self.lock();
        if waiting.closed {
            return Poll::Ready(None);
        }
        if let Some((node, name)) = waiting.names.pop_first() {
            return Poll::Ready(Some(Notice::Name(node, name)));
        }
        match waiting.objects.pop_first() {
            Some((node, true)) => Poll::Ready(Some(Notice::Bytes(node))),
            Some((node, false)) => Poll::Ready(Some(Notice::Attributes(node))),
            None if waiting.unused.is_empty() => Poll::Pending,
            None => Poll::Ready(Some(Notice::Unused(std::mem::take(&mut waiting.unused)))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
