//! The queue of a pool: the order in which work begins.
//!
//! Owns: the order of work, the threads of each object and each user.
//! Does not own: threads, free slots in the queue (`pool`).
//! Invariants: the work of one user begins in order of arrival, except for work about an object that has all its
//! threads. Users are served one after the other. An object has at most half of the threads and a user at most three
//! quarters. So blocking calls stop others only if many objects and several users block. Work of no user, such as the
//! server's own, counts for its object alone.

use std::collections::{BTreeMap, VecDeque};

/// The object that a piece of work is about, and the user who asked for the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lane {
    /// A number of the file or directory; none if no object can hold up the work.
    pub object: Option<u64>,
    /// A user of the host; none if it is unknown, or for the server itself.
    pub user: Option<u32>,
}

/// Users without work whose lines' memory is pooled; their next call allocates nothing.
const POOLED_LINES: usize = 64;

/// Work that waits for a thread, and the lanes of running work.
pub(super) struct WorkQueue<W> {
    lines: BTreeMap<Option<u32>, Line<W>>,
    /// The users with work in the queue; the first one is served next.
    order: VecDeque<Option<u32>>,
    /// The number of threads that each object has.
    objects: BTreeMap<u64, usize>,
    queued: usize,
    object_threads_max: usize,
    user_threads_max: usize,
}

/// The work of one user.
struct Line<W> {
    queued: VecDeque<(Option<u64>, W)>,
    threads: usize,
}

impl<W> WorkQueue<W> {
    /// An empty queue for a pool with `threads_max` threads.
    pub(super) fn new(threads_max: usize) -> Self {
        Self {
            lines: BTreeMap::new(),
            order: VecDeque::new(),
            objects: BTreeMap::new(),
            queued: 0,
            object_threads_max: (threads_max / 2).max(1),
            user_threads_max: (threads_max * 3 / 4).max(1),
        }
    }

    /// The number of waiting pieces of work.
    pub(super) fn len(&self) -> usize {
        self.queued
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    pub(super) fn push(&mut self, lane: Lane, work: W) {
        let line = self.lines.entry(lane.user).or_insert_with(|| Line { queued: VecDeque::new(), threads: 0 });
        if line.queued.is_empty() {
            self.order.push_back(lane.user);
        }
        line.queued.push_back((lane.object, work));
        self.queued += 1;
    }

    /// The next work that may have a thread. The caller calls [`WorkQueue::end`] when it is done.
    pub(super) fn take(&mut self) -> Option<(Lane, W)> {
        for _ in 0..self.order.len() {
            let user = self.order.pop_front()?;
            let line = self.lines.get_mut(&user)?;
            let may_have = |object: &Option<u64>| {
                object.is_none_or(|object| self.objects.get(&object).is_none_or(|held| *held < self.object_threads_max))
            };
            let has_all = user.is_some() && line.threads >= self.user_threads_max;
            let free = if has_all { None } else { line.queued.iter().position(|(object, _)| may_have(object)) };
            let taken = free.and_then(|at| line.queued.remove(at));
            if !line.queued.is_empty() {
                self.order.push_back(user);
            }
            let Some((object, work)) = taken else { continue };
            line.threads += 1;
            if let Some(object) = object {
                *self.objects.entry(object).or_insert(0) += 1;
            }
            self.queued -= 1;
            return Some((Lane { object, user }, work));
        }
        None
    }

    /// Frees the thread of finished work of this lane.
    pub(super) fn end(&mut self, lane: Lane) {
        if let Some(line) = self.lines.get_mut(&lane.user) {
            line.threads -= 1;
            if line.threads == 0 && line.queued.is_empty() && self.lines.len() > POOLED_LINES {
                self.lines.remove(&lane.user);
            }
        }
        if let Some(object) = lane.object
            && let Some(held) = self.objects.get_mut(&object)
        {
            *held -= 1;
            if *held == 0 {
                self.objects.remove(&object);
            }
        }
    }
}

#[cfg(test)]
mod tests;
