//! Notices to the kernel about changes by others: it forgets its copies.
//!
//! Owns: the changes of which the kernel is still to be notified, each once; the waits until the kernel has taken a
//! notice.
//! Does not own: the finding of changes (the volume), the sending (worlds).
//! Invariants: noting a change waits for nothing and calls nobody but the sender's waker. Of each disk at most
//! [`OBJECTS_MAX`] objects, [`NAMES_MAX`] names and [`PAGES_MAX`] pages wait. Further ones are dropped: the kernel asks
//! again by itself after its short time. The kernel may wait for a disk while it takes a notice, so each disk has at
//! most one under way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;

const OBJECTS_MAX: usize = 1 << 20;
const NAMES_MAX: usize = 4096;
/// A page has a call that waits for it, and few calls make a file larger at a time.
const PAGES_MAX: usize = 4096;
/// Unused nodes are named again later, so few wait.
const UNUSED_MAX: usize = 1024;

/// The number of no disk: unused nodes are of any.
pub(crate) const NO_DISK: u64 = u64::MAX;

/// The kernel forgets its copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NodeNotice {
    /// The attributes of a node.
    Attributes(u64),
    /// The attributes and all bytes of a node. It writes changed bytes back first.
    Bytes(u64),
    /// A page of a node, by its offset: the kernel writes it back first.
    Page(u64, u64),
    /// A name in the directory of a node.
    Name(u64, Bytes),
    /// Nodes. The kernel forgets those of them that no program uses.
    Unused(Vec<u64>),
}

/// A notice that a call waits for.
#[derive(Default)]
pub(crate) struct AwaitedNotice {
    has_ended: AtomicBool,
    call: AtomicWaker,
}

impl AwaitedNotice {
    /// Waits until the kernel has taken it, or the mount has ended. One call waits.
    pub(crate) async fn ended(&self) {
        poll_fn(|cx| {
            // Registered before the check, so that no end in between is missed.
            self.call.register(cx.waker());
            if self.has_ended.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.call.wake();
    }
}

#[derive(Default)]
struct Waiting {
    disks: BTreeMap<u64, OfDisk>,
    closed: bool,
}

/// The notices of one disk.
#[derive(Default)]
struct OfDisk {
    /// Whether the bytes changed, too.
    objects: BTreeMap<u64, bool>,
    names: BTreeSet<(u64, Bytes)>,
    unused: Vec<u64>,
    /// The pages, by node and offset.
    pages: VecDeque<(u64, u64, Arc<AwaitedNotice>)>,
    /// The one under way has a call that waits for it.
    awaited: Option<Arc<AwaitedNotice>>,
    /// The kernel has not taken the last one yet.
    is_under_way: bool,
}

impl OfDisk {
    fn note(&mut self, notice: NodeNotice) {
        match notice {
            NodeNotice::Name(node, name) => {
                if self.names.len() < NAMES_MAX {
                    self.names.insert((node, name));
                }
            }
            NodeNotice::Unused(nodes) => {
                if self.unused.len() < UNUSED_MAX {
                    self.unused.extend(nodes);
                }
            }
            NodeNotice::Attributes(node) | NodeNotice::Bytes(node) => {
                let bytes = matches!(notice, NodeNotice::Bytes(_));
                if let Some(noted) = self.objects.get_mut(&node) {
                    *noted |= bytes;
                } else if self.objects.len() < OBJECTS_MAX {
                    self.objects.insert(node, bytes);
                }
            }
            NodeNotice::Page(node, offset) => drop(self.note_page(node, offset)),
        }
    }

    /// Notes a page; none if too many wait.
    fn note_page(&mut self, node: u64, offset: u64) -> Option<Arc<AwaitedNotice>> {
        let awaited = (self.pages.len() < PAGES_MAX).then(Arc::<AwaitedNotice>::default)?;
        self.pages.push_back((node, offset, Arc::clone(&awaited)));
        Some(awaited)
    }

    /// The kernel takes no more notices.
    fn end(&mut self) {
        let pages = self.pages.drain(..).map(|(_, _, awaited)| awaited);
        pages.chain(self.awaited.take()).for_each(|awaited| awaited.end());
    }

    /// The kernel has taken the one under way.
    fn taken(&mut self) {
        self.is_under_way = false;
        self.awaited.take().into_iter().for_each(|awaited| awaited.end());
    }

    fn next(&mut self) -> Option<NodeNotice> {
        if let Some((node, offset, awaited)) = self.pages.pop_front() {
            self.awaited = Some(awaited);
            return Some(NodeNotice::Page(node, offset));
        }
        if let Some((node, name)) = self.names.pop_first() {
            return Some(NodeNotice::Name(node, name));
        }
        match self.objects.pop_first() {
            Some((node, true)) => Some(NodeNotice::Bytes(node)),
            Some((node, false)) => Some(NodeNotice::Attributes(node)),
            None => Some(std::mem::take(&mut self.unused)).filter(|nodes| !nodes.is_empty()).map(NodeNotice::Unused),
        }
    }
}

#[derive(Default)]
pub(crate) struct Notices {
    waiting: Mutex<Waiting>,
    sender: AtomicWaker,
}

impl Notices {
    pub(crate) fn note(&self, disk: u64, notice: NodeNotice) {
        self.lock().disks.entry(disk).or_default().note(notice);
        self.sender.wake();
    }

    /// Notes a page that the kernel shall write back and drop. Nobody can wait for it if the mount has ended, or if too
    /// many pages wait.
    pub(crate) fn note_page(&self, disk: u64, node: u64, offset: u64) -> Option<Arc<AwaitedNotice>> {
        let awaited = {
            let mut waiting = self.lock();
            if waiting.closed {
                return None;
            }
            waiting.disks.entry(disk).or_default().note_page(node, offset)
        };
        self.sender.wake();
        awaited
    }

    /// Ends the sender's wait for good, and the waits for notices.
    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.disks.values_mut().for_each(OfDisk::end);
        drop(waiting);
        self.sender.wake();
    }

    /// The next notice of a disk that has none under way.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<(u64, NodeNotice)>> {
        // Registered before the check, so that no change in between is missed.
        self.sender.register(cx.waker());
        let mut waiting = self.lock();
        if waiting.closed {
            return Poll::Ready(None);
        }
        for (disk, of_disk) in waiting.disks.iter_mut().filter(|(_, of_disk)| !of_disk.is_under_way) {
            if let Some(notice) = of_disk.next() {
                of_disk.is_under_way = true;
                return Poll::Ready(Some((*disk, notice)));
            }
        }
        Poll::Pending
    }

    /// The kernel has taken the notice of this disk.
    pub(crate) fn taken(&self, disk: u64) {
        self.lock().disks.get_mut(&disk).into_iter().for_each(OfDisk::taken);
        self.sender.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
