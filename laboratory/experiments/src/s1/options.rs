//! The options of s1.
//!
//! Owns: names, ranges, defaults; the queues and caches of a case, of which an option replaces all.
//! Does not own: reading a value (`options`), the cases.
//! Invariants: the values of a case are in range.

use super::machines::DiskQueue;
use crate::machine::{PAGE_BYTES, Queue};
use crate::options::{named, options, values};

const ALL_CASES: &str = "two-writers,pool-alone,two-superblocks,sync-of-two,twelve-disks,blocking-rival";

options! {
    pub(super) ALL {
        /// Which cases, separated by commas
        CASE: Case = choice("case", "LIST", ALL_CASES);
        /// Of each file of two-writers (32 GB; with --quick 4 GB)
        SIZE: u64 = size("size", "SIZE", "", 1_000_000_000..=1_000_000_000_000);
        /// The rate of each of twelve-disks in a second (60 MB)
        DISK_RATE: u64 = rate("disk-rate", "RATE", "", 1_000_000..=10_000_000_000);
        /// Requests that a queue holds, in place of the case's
        REQUESTS: u64 = number("requests", "NUMBER", "", 4..=65_536);
        /// Most bytes of a request, in whole KiB, in place of the case's
        REQUEST_SIZE: u64 = size("request-size", "SIZE", "", 4 << 10..=4 << 20);
        /// The write cache inside each disk, in whole KiB; 0 for none [8 MiB]
        DISK_CACHE: u64 = size("disk-cache", "SIZE", "", 0..=1 << 30);
        /// Memory of the machine, in place of the case's
        MEMORY: u64 = size("memory", "SIZE", "", 256 << 20..=64 << 30);
        /// Extents are laid out in the order of submission, so that interleaving costs later
        AT_SUBMISSION: bool = switch("allocate-at-submission", "", "");
        /// The elevator before each disk: deadline sorts and merges, none does neither
        ELEVATOR: Elevator = choice("elevator", "deadline|none", "deadline");
        /// The number of requests that a task may take in a row after it had to wait for one; 1: none in a row
        BATCH: u64 = number("request-batch", "NUMBER", "32", 1..=1024);
        /// The seed of all random numbers
        SEED: u64 = number("seed", "NUMBER", "1", 0..=u64::MAX);
    }
}

named! {
    /// A part of the experiment.
    pub(super) enum Case {
        TwoWriters = "two-writers",
        PoolAlone = "pool-alone",
        TwoSuperblocks = "two-superblocks",
        SyncOfTwo = "sync-of-two",
        TwelveDisks = "twelve-disks",
        BlockingRival = "blocking-rival",
    }
}

named! {
    pub(super) enum Elevator {
        Deadline = "deadline",
        None = "none",
    }
}

values! {
    /// The options that all cases share.
    #[derive(Clone, Debug)]
    pub(super) struct SharedOptions = read(request) {
        pub(super) cases: Vec<Case> = CASE.list(request)?,
        pub(super) quick: bool = request.quick,
        pub(super) seed: u64 = SEED.value(request)?,
        /// `None` for the value of the case.
        pub(super) file_bytes: Option<u64> = SIZE.value_if_given(request)?,
        pub(super) disk_rate: Option<u64> = DISK_RATE.value_if_given(request)?,
        memory_bytes: Option<u64> = MEMORY.value_if_given(request)?.map(|bytes| bytes / PAGE_BYTES * PAGE_BYTES),
        nr_requests: Option<u64> = REQUESTS.value_if_given(request)?,
        request_kib: Option<u64> = REQUEST_SIZE.value_if_given(request)?.map(|bytes| bytes >> 10),
        cache_kib: Option<u64> = DISK_CACHE.value_if_given(request)?.map(|bytes| bytes >> 10),
        pub(super) batch: u64 = BATCH.value(request)?,
        pub(super) at_submission: bool = AT_SUBMISSION.value(request)?,
        pub(super) is_sorted: bool = ELEVATOR.value(request)? == Elevator::Deadline,
    }
}

impl SharedOptions {
    /// A queue of so many requests of so many KiB, unless options say otherwise.
    pub(super) fn queue(&self, nr_requests: u64, request_kib: u64) -> Queue {
        let nr_requests = self.nr_requests.unwrap_or(nr_requests);
        let request_kib = self.request_kib.unwrap_or(request_kib);
        let (batch, at_submission, is_sorted) = (self.batch, self.at_submission, self.is_sorted);
        Queue { nr_requests, request_kib, batch, at_submission, is_sorted }
    }

    /// KiB of each disk's write cache.
    pub(super) fn cache_kib(&self, cache_kib: u64) -> u64 {
        self.cache_kib.unwrap_or(cache_kib)
    }

    /// The queues and caches of a case, from requests, KiB of a request and KiB of a cache.
    pub(super) fn queues(&self, of_case: &[(u64, u64, u64)]) -> Vec<DiskQueue> {
        let of = |&(requests, kib, cache_kib): &(u64, u64, u64)| DiskQueue {
            queue: self.queue(requests, kib),
            cache_kib: self.cache_kib(cache_kib),
        };
        of_case.iter().map(of).collect()
    }

    /// Memory of the machine.
    pub(super) fn memory_bytes(&self, memory_bytes: u64) -> u64 {
        self.memory_bytes.unwrap_or(memory_bytes)
    }
}

#[cfg(test)]
mod tests;
