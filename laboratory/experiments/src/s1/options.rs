//! The options of s1.
//!
//! Owns: names, ranges, defaults; the queues and caches of a case, of which an option replaces all.
//! Does not own: reading a value (`options`), the cases.
//! Invariants: the values of a case are in range.

use crate::experiment::{LabError, OptionInfo, Request};
use crate::machine::{PAGE_BYTES, Queue};
use crate::options::{self, TypedOption, info};

const CASE: TypedOption<Case> = options::choice(
    info(
        "case",
        "LIST",
        "two-writers,pool-alone,two-superblocks,sync-of-two,twelve-disks,blocking-rival",
        "Which cases, separated by commas",
    ),
    &[
        ("two-writers", Case::TwoWriters),
        ("pool-alone", Case::PoolAlone),
        ("two-superblocks", Case::TwoSuperblocks),
        ("sync-of-two", Case::SyncOfTwo),
        ("twelve-disks", Case::TwelveDisks),
        ("blocking-rival", Case::BlockingRival),
    ],
    "there is no case '{value}'; there are {default}",
);
const SIZE: TypedOption<u64> = options::size(
    info("size", "SIZE", "", "Of each file of two-writers (32 GB; with --quick 4 GB)"),
    1_000_000_000..=1_000_000_000_000,
);
const DISK_RATE: TypedOption<u64> = options::rate(
    info("disk-rate", "RATE", "", "The rate of each of twelve-disks in a second (60 MB)"),
    1_000_000..=10_000_000_000,
);
const REQUESTS: TypedOption<u64> =
    options::number(info("requests", "NUMBER", "", "Requests that a queue holds, in place of the case's"), 4..=65_536);
const REQUEST_SIZE: TypedOption<u64> = options::size(
    info("request-size", "SIZE", "", "Most bytes of a request, in whole KiB, in place of the case's"),
    4 << 10..=4 << 20,
);
const DISK_CACHE: TypedOption<u64> = options::size(
    info("disk-cache", "SIZE", "", "The write cache inside each disk, in whole KiB; 0 for none [8 MiB]"),
    0..=1 << 30,
);
const MEMORY: TypedOption<u64> =
    options::size(info("memory", "SIZE", "", "Memory of the machine, in place of the case's"), 256 << 20..=64 << 30);
const AT_SUBMISSION: TypedOption<bool> = options::choice(
    info(
        "allocate-at-submission",
        "yes|no",
        "no",
        "Extents are laid out in the order of submission, so that interleaving costs later",
    ),
    &[("yes", true), ("no", false)],
    "allowed are yes and no",
);
const BATCH: TypedOption<u64> = options::number(
    info(
        "request-batch",
        "NUMBER",
        "32",
        "The number of requests that a task may take in a row after it had to wait for one; 1: none in a row",
    ),
    1..=1024,
);
const SEED: TypedOption<u64> =
    options::number(info("seed", "NUMBER", "1", "The seed of all random numbers"), 0..=u64::MAX);

/// All of them.
pub(super) const ALL: &[OptionInfo] = &[
    CASE.info,
    SIZE.info,
    DISK_RATE.info,
    REQUESTS.info,
    REQUEST_SIZE.info,
    DISK_CACHE.info,
    MEMORY.info,
    AT_SUBMISSION.info,
    BATCH.info,
    SEED.info,
];

/// A part of the experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Case {
    TwoWriters,
    PoolAlone,
    TwoSuperblocks,
    SyncOfTwo,
    TwelveDisks,
    BlockingRival,
}

/// The options that all cases share.
#[derive(Clone, Debug)]
pub(super) struct SharedOptions {
    pub(super) cases: Vec<Case>,
    pub(super) quick: bool,
    pub(super) seed: u64,
    /// `None` for the value of the case.
    pub(super) file_bytes: Option<u64>,
    pub(super) disk_rate: Option<u64>,
    memory_bytes: Option<u64>,
    nr_requests: Option<u64>,
    request_kib: Option<u64>,
    cache_kib: Option<u64>,
    pub(super) at_submission: bool,
    pub(super) batch: u64,
}

impl SharedOptions {
    /// Reads all options.
    ///
    /// # Errors
    /// [`LabError::Value`] for the first that cannot be used.
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        Ok(Self {
            cases: CASE.list(request)?,
            quick: request.quick,
            seed: SEED.value(request)?,
            file_bytes: SIZE.value_if_given(request)?,
            disk_rate: DISK_RATE.value_if_given(request)?,
            memory_bytes: MEMORY.value_if_given(request)?.map(|bytes| bytes / PAGE_BYTES * PAGE_BYTES),
            nr_requests: REQUESTS.value_if_given(request)?,
            request_kib: REQUEST_SIZE.value_if_given(request)?.map(|bytes| bytes >> 10),
            cache_kib: DISK_CACHE.value_if_given(request)?.map(|bytes| bytes >> 10),
            batch: BATCH.value(request)?,
            at_submission: AT_SUBMISSION.value(request)?,
        })
    }

    /// A queue of so many requests of so many KiB, unless options say otherwise.
    pub(super) fn queue(&self, nr_requests: u64, request_kib: u64) -> Queue {
        let nr_requests = self.nr_requests.unwrap_or(nr_requests);
        let request_kib = self.request_kib.unwrap_or(request_kib);
        Queue { nr_requests, request_kib, batch: self.batch, at_submission: self.at_submission }
    }

    /// KiB of each disk's write cache.
    pub(super) fn cache_kib(&self, cache_kib: u64) -> u64 {
        self.cache_kib.unwrap_or(cache_kib)
    }

    /// The queues and caches of a case, from requests, KiB of a request and KiB of a cache.
    pub(super) fn queues(&self, of_case: &[(u64, u64, u64)]) -> Vec<(Queue, u64)> {
        of_case.iter().map(|(requests, kib, cache)| (self.queue(*requests, *kib), self.cache_kib(*cache))).collect()
    }

    /// Memory of the machine.
    pub(super) fn memory_bytes(&self, memory_bytes: u64) -> u64 {
        self.memory_bytes.unwrap_or(memory_bytes)
    }
}

#[cfg(test)]
mod tests;
