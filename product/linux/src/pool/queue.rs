//! The queue of a pool: whose work is begun next.
//!
//! Owns: the order of work, how many threads one object and one user have.
//! Does not own: threads, room in the queue (`pool`).
//! Invariants: the work of one user is begun in the order in which it came, but for work about an object that has all
//! the threads it may have. Users take turns. One object has at most half of the threads and one user at most three
//! quarters, so a call that blocks keeps others out only if many objects and several users block. One that belongs to no
//! user, such as the server's own, counts for its object alone.

use std::collections::{BTreeMap, VecDeque};

/// The object that a piece of work is about, and the user for whom it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lane {
    /// A number of the file or directory; none where the work cannot be held up by one.
    pub(crate) object: Option<u64>,
    /// A user of the host; none where that is not known, or the server itself.
    pub(crate) user: Option<u32>,
}

/// So many users keep the memory of their lines while they have no work: their next call allocates nothing.
const KEPT_LINES: usize = 64;

/// Work that waits for a thread, and the lanes of the work that has one.
pub(super) struct Queue<W> {
    lines: BTreeMap<Option<u32>, Line<W>>,
    /// The users with work in the queue; the first one's turn is next.
    turns: VecDeque<Option<u32>>,
    /// How many threads each object has.
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

impl<W> Queue<W> {
    /// An empty one, for so many threads.
    pub(super) fn new(threads_max: usize) -> Self {
        Self {
            lines: BTreeMap::new(),
            turns: VecDeque::new(),
            objects: BTreeMap::new(),
            queued: 0,
            object_threads_max: (threads_max / 2).max(1),
            user_threads_max: (threads_max * 3 / 4).max(1),
        }
    }

    /// How much work waits.
    pub(super) fn len(&self) -> usize {
        self.queued
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    pub(super) fn push(&mut self, lane: Lane, work: W) {
        let line = self.lines.entry(lane.user).or_insert_with(|| Line { queued: VecDeque::new(), threads: 0 });
        if line.queued.is_empty() {
            self.turns.push_back(lane.user);
        }
        line.queued.push_back((lane.object, work));
        self.queued += 1;
    }

    /// The next work that may have a thread. [`Queue::end`] is to be called when it is done.
    pub(super) fn take(&mut self) -> Option<(Lane, W)> {
        for _ in 0..self.turns.len() {
            let user = self.turns.pop_front()?;
            let line = self.lines.get_mut(&user)?;
            let may_have = |object: &Option<u64>| {
                object.is_none_or(|object| self.objects.get(&object).is_none_or(|held| *held < self.object_threads_max))
            };
            let has_all = user.is_some() && line.threads >= self.user_threads_max;
            let free = if has_all { None } else { line.queued.iter().position(|(object, _)| may_have(object)) };
            let taken = free.and_then(|at| line.queued.remove(at));
            if !line.queued.is_empty() {
                self.turns.push_back(user);
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

    /// The thread of work of this lane is free again.
    pub(super) fn end(&mut self, lane: Lane) {
        if let Some(line) = self.lines.get_mut(&lane.user) {
            line.threads -= 1;
            if line.threads == 0 && line.queued.is_empty() && self.lines.len() > KEPT_LINES {
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
