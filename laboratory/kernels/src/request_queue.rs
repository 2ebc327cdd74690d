//! The list of write requests of a disk's queue, and its congestion (`block/blk-core.c`).
//!
//! Of n requests, the queue is congested from n − n/8 + 1 on, until fewer than n − n/8 − n/16 − 1 are taken. A task
//! that takes the last request marks the queue as full, and becomes a batcher. Others then wait for a request, one
//! woken for each request that ends, and become batchers, too. A batcher may take `batch` requests in a row within 20
//! ms, up to half as many again as the queue has.
//!
//! Owns: the count, both flags, the batches. Does not own: the disk, which gets the requests.
//! Invariants: on and off differ, and a queue that runs empty is neither congested nor full.

use crate::sysctl::HZ;
use crate::wait::WaitQueue;

/// Ticks of a batch (`BLK_BATCH_TIME`).
const BATCH_JIFFIES: u64 = HZ / 50;

/// The parameters of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Write requests until others wait.
    pub nr_requests: u64,
    /// Pages of the largest request.
    pub request_pages: u64,
    /// Requests in a row of a task that waited (`BLK_BATCH_REQ` is 32).
    pub batch: u64,
}

/// A task's memory of its batches (`struct io_context`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IoContext {
    nr_batch_requests: u64,
    last_waited: u64,
}

impl IoContext {
    fn is_batching(&self, batch: u64, jiffies: u64) -> bool {
        // The first request of a batch is certain, however late.
        self.nr_batch_requests == batch || self.nr_batch_requests > 0 && jiffies < self.last_waited + BATCH_JIFFIES
    }

    /// `ioc_set_batching`: the task has waited, or took the last request.
    pub(crate) fn set_batching(&mut self, batch: u64, jiffies: u64) {
        if !self.is_batching(batch, jiffies) {
            (self.nr_batch_requests, self.last_waited) = (batch, jiffies);
        }
    }
}

/// The list of write requests.
pub(crate) struct RequestQueue {
    pub(crate) options: QueueOptions,
    count: u64,
    congested: bool,
    full: bool,
    /// Tasks that wait for a request.
    pub(crate) wait: WaitQueue,
}

/// The consequences of a request's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Freed {
    /// The queue has stopped being congested.
    pub(crate) cleared: bool,
    /// One waiting task may take a request.
    pub(crate) wakes: bool,
}

impl RequestQueue {
    pub(crate) fn new(options: QueueOptions) -> Self {
        Self { options, count: 0, congested: false, full: false, wait: WaitQueue::default() }
    }

    fn congestion_on(&self) -> u64 {
        let n = self.options.nr_requests;
        (n - n / 8 + 1).min(n)
    }

    fn congestion_off(&self) -> u64 {
        let n = self.options.nr_requests;
        (n - n / 8).saturating_sub(n / 16 + 1).max(1)
    }

    /// `bdi_write_congested`.
    pub(crate) fn is_congested(&self) -> bool {
        self.congested
    }

    /// `get_request`: takes a request; false if the task has to wait.
    pub(crate) fn get_request(&mut self, io: &mut IoContext, jiffies: u64) -> bool {
        let (n, batch) = (self.options.nr_requests, self.options.batch);
        if self.count + 1 >= self.congestion_on() {
            if self.count + 1 >= n {
                if !self.full {
                    io.set_batching(batch, jiffies);
                    self.full = true;
                } else if !io.is_batching(batch, jiffies) {
                    return false;
                }
            }
            self.congested = true;
        }
        if self.count >= 3 * n / 2 {
            return false;
        }
        self.count += 1;
        if io.is_batching(batch, jiffies) {
            io.nr_batch_requests -= 1;
        }
        true
    }

    /// `freed_request`.
    pub(crate) fn freed_request(&mut self) -> Freed {
        self.count -= 1;
        let cleared = self.congested && self.count < self.congestion_off();
        self.congested &= !cleared;
        let wakes = self.count < self.options.nr_requests;
        self.full &= !wakes;
        Freed { cleared, wakes }
    }
}

#[cfg(test)]
mod tests;
