//! The causes of a call's wait at the disk, found after the call has ended.
//!
//! Owns: the last requests that ended and the last that the disk began, each with its instants.
//! Does not own: the instants (`timing`); waits outside the disk.
//! Invariants: at most [`REQUESTS_MAX`] of each are stored, the last ones. Requests are numbered in the order in which
//! they came.

use std::collections::VecDeque;

use afflux_engine::Operation;

/// Requests that are stored: some minutes of a disk, some seconds of a fast drive.
const REQUESTS_MAX: usize = 1 << 16;

/// The parts of a call's wait at the disk, in nanoseconds. In the rest of its time the disk had no request of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskWait {
    /// The call's request was in the queue while the disk worked on a request that had come later.
    pub elevator_ns: u64,
    /// The rest of the request's time in the queue.
    pub queue_ns: u64,
    /// The disk worked on the call's request.
    pub disk_ns: u64,
}

/// A request that has ended.
struct Passage {
    id: u64,
    file: u64,
    reads: bool,
    submitted_ns: u64,
    started_ns: u64,
    ended_ns: u64,
}

#[derive(Default)]
pub(super) struct Timeline {
    /// In the order of their ends.
    passages: VecDeque<Passage>,
    /// The start of each request, and its number.
    starts: VecDeque<(u64, u64)>,
}

fn push<T>(to: &mut VecDeque<T>, one: T) {
    if to.len() == REQUESTS_MAX {
        to.pop_front();
    }
    to.push_back(one);
}

impl Timeline {
    pub(super) fn started(&mut self, id: u64, now_ns: u64) {
        push(&mut self.starts, (now_ns, id));
    }

    /// A request has ended. A request without a start was no work, so all its time is the disk's.
    pub(super) fn ended(
        &mut self,
        id: u64,
        file: u64,
        operation: Operation,
        submitted_ns: u64,
        started_ns: Option<u64>,
        ended_ns: u64,
    ) {
        let reads = matches!(operation, Operation::Read { .. });
        let started_ns = started_ns.unwrap_or(submitted_ns);
        push(&mut self.passages, Passage { id, file, reads, submitted_ns, started_ns, ended_ns });
    }

    /// The wait of a call on a file that began and ended at these instants. The walk goes back from the end: to the
    /// request that ended last, and from its submission to the request that ended last before.
    pub(super) fn waited(&self, file: u64, reads: bool, began_ns: u64, ended_ns: u64) -> DiskWait {
        let (mut waited, mut until_ns) = (DiskWait::default(), ended_ns);
        let within = self.passages.iter().rev().take_while(|passage| passage.ended_ns > began_ns);
        for passage in within.filter(|passage| passage.file == file && passage.reads == reads) {
            if passage.ended_ns > until_ns {
                continue;
            }
            let from_ns = passage.submitted_ns.max(began_ns);
            let started_ns = passage.started_ns.clamp(from_ns, passage.ended_ns);
            let elevator_ns = self.overtaken_ns(passage.id, from_ns, started_ns);
            waited.elevator_ns += elevator_ns;
            waited.queue_ns += started_ns - from_ns - elevator_ns;
            waited.disk_ns += passage.ended_ns - started_ns;
            until_ns = from_ns;
        }
        waited
    }

    /// The part of an interval in which the disk worked on a request that had come after request `id`.
    fn overtaken_ns(&self, id: u64, from_ns: u64, to_ns: u64) -> u64 {
        let first = self.starts.partition_point(|(at_ns, _)| *at_ns <= from_ns);
        let (mut since_ns, mut came_later) = (from_ns, first > 0 && self.starts[first - 1].1 > id);
        let mut ns = 0;
        for (at_ns, other) in self.starts.range(first..).take_while(|(at_ns, _)| *at_ns < to_ns) {
            ns += if came_later { at_ns - since_ns } else { 0 };
            (since_ns, came_later) = (*at_ns, *other > id);
        }
        ns + if came_later { to_ns - since_ns } else { 0 }
    }
}

#[cfg(test)]
mod tests;
