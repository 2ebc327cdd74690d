//! The options of s1.
//!
//! Owns: names, ranges, defaults; the queues and caches of a case, of which an option replaces all.
//! Does not own: reading a value (`options`), the cases.
//! Invariants: the values of a case are in range.

use clap::ValueEnum;

use super::machines::DiskQueue;
use crate::experiment::{LabError, Request};
use crate::machine::{PAGE_BYTES, Queue};
use crate::options::{List, list, named, number, rate, size};

const ALL_CASES: &str = "two-writers,pool-alone,two-superblocks,sync-of-two,twelve-disks,blocking-rival";

/// A part of the experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Case {
    TwoWriters,
    PoolAlone,
    TwoSuperblocks,
    SyncOfTwo,
    TwelveDisks,
    BlockingRival,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Elevator {
    Deadline,
    None,
}

/// The options that all cases share; `None` for the value of the case.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct SharedOptions {
    /// Which cases, separated by commas
    #[arg(long = "case", value_name = "LIST", default_value = ALL_CASES, value_parser = list(named::<Case>))]
    pub(super) cases: List<Case>,
    /// Of each file of two-writers (32 GB; with --quick 4 GB)
    #[arg(long = "size", value_name = "SIZE", value_parser = size(1_000_000_000..=1_000_000_000_000))]
    pub(super) file_bytes: Option<u64>,
    /// The rate of each of twelve-disks in a second (60 MB)
    #[arg(long, value_name = "RATE", value_parser = rate(1_000_000..=10_000_000_000))]
    pub(super) disk_rate: Option<u64>,
    /// Requests that a queue holds, in place of the case's
    #[arg(long = "requests", value_name = "NUMBER", value_parser = number(4..=65_536))]
    nr_requests: Option<u64>,
    /// Most bytes of a request, in whole KiB, in place of the case's
    #[arg(long = "request-size", value_name = "SIZE", value_parser = size(4 << 10..=4 << 20))]
    request_bytes: Option<u64>,
    /// The write cache inside each disk, in whole KiB; 0 for none [8 MiB]
    #[arg(long = "disk-cache", value_name = "SIZE", value_parser = size(0..=1 << 30))]
    cache_bytes: Option<u64>,
    /// Memory of the machine, in place of the case's
    #[arg(long = "memory", value_name = "SIZE", value_parser = size(256 << 20..=64 << 30))]
    memory_bytes: Option<u64>,
    /// Extents are laid out in the order of submission, so that interleaving costs later
    #[arg(long = "allocate-at-submission")]
    pub(super) at_submission: bool,
    /// The elevator before each disk: deadline sorts and merges, none does neither
    #[arg(long, value_name = "deadline|none", default_value = "deadline", value_parser = named::<Elevator>)]
    pub(super) elevator: Elevator,
    /// The number of requests that a task may take in a row after it had to wait for one; 1: none in a row
    #[arg(long = "request-batch", value_name = "NUMBER", default_value = "32", value_parser = number(1..=1024))]
    pub(super) batch: u64,
    /// The seed of all random numbers
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number(0..=u64::MAX))]
    pub(super) seed: u64,
    #[arg(skip)]
    pub(super) quick: bool,
}

impl SharedOptions {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        Ok(Self { quick: request.quick, ..request.read()? })
    }

    /// A queue of so many requests of so many KiB, unless options say otherwise.
    pub(super) fn queue(&self, nr_requests: u64, request_kib: u64) -> Queue {
        let nr_requests = self.nr_requests.unwrap_or(nr_requests);
        let request_kib = self.request_bytes.map_or(request_kib, |bytes| bytes >> 10);
        let (batch, at_submission) = (self.batch, self.at_submission);
        let is_sorted = self.elevator == Elevator::Deadline;
        Queue { nr_requests, request_kib, batch, at_submission, is_sorted }
    }

    /// KiB of each disk's write cache.
    pub(super) fn cache_kib(&self, cache_kib: u64) -> u64 {
        self.cache_bytes.map_or(cache_kib, |bytes| bytes >> 10)
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
        self.memory_bytes.map_or(memory_bytes, |bytes| bytes / PAGE_BYTES * PAGE_BYTES)
    }
}

#[cfg(test)]
mod tests;
