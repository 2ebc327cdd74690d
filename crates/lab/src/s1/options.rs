//! The options of s1.
//!
//! Owns: names, ranges, defaults, what is said when a value cannot be used.
//! Does not own: what the cases do with them.
//! Invariants: what a case is given is in range.

use crate::experiment::{LabError, OptionInfo, Request};
use crate::machine::Queue;
use crate::options::{number, or_nothing, rate, size};

const CASE: OptionInfo = OptionInfo {
    name: "case",
    value: "LIST",
    default: "two-writers,pool-alone,two-superblocks,twelve-disks,blocking-rival",
    doc: "Which cases, separated by commas",
};
const SIZE: OptionInfo = OptionInfo {
    name: "size",
    value: "SIZE",
    default: "",
    doc: "Of each file of two-writers (32 GB; with --quick 2 GB)",
};
const REQUEST: OptionInfo = OptionInfo {
    name: "request",
    value: "SIZE",
    default: "",
    doc: "The largest request, in place of what a case has (64 and 24 KiB, 64 and 512 KiB, 64 KiB)",
};
const DISK_RATE: OptionInfo = OptionInfo {
    name: "disk-rate",
    value: "RATE",
    default: "",
    doc: "What each of twelve-disks writes in a second (60 MB)",
};
const DISK_CACHE: OptionInfo = OptionInfo {
    name: "disk-cache",
    value: "SIZE",
    default: "",
    doc: "The write cache inside each disk (8 MiB; some runs have none)",
};
const MEMORY: OptionInfo =
    OptionInfo { name: "memory", value: "SIZE", default: "", doc: "Of the machine of twelve-disks (8 GiB)" };
const AT_SUBMISSION: OptionInfo = OptionInfo {
    name: "allocate-at-submission",
    value: "yes|no",
    default: "no",
    doc: "Extents are laid out in the order of submission, so that interleaving costs later",
};
const BATCH: OptionInfo = OptionInfo {
    name: "request-batch",
    value: "NUMBER",
    default: "32",
    doc: "Requests that who had to wait for one takes in a row; 1: none in a row",
};
const SEED: OptionInfo =
    OptionInfo { name: "seed", value: "NUMBER", default: "1", doc: "What everything is drawn from" };

/// All of them.
pub(super) const ALL: &[OptionInfo] = &[CASE, SIZE, REQUEST, DISK_RATE, DISK_CACHE, MEMORY, AT_SUBMISSION, BATCH, SEED];

/// A part of the experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Case {
    TwoWriters,
    PoolAlone,
    TwoSuperblocks,
    TwelveDisks,
    BlockingRival,
}

/// What all cases are asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) cases: Vec<Case>,
    pub(super) quick: bool,
    pub(super) seed: u64,
    /// `None`: what the case has.
    pub(super) file_bytes: Option<u64>,
    pub(super) request_kib: Option<u64>,
    pub(super) disk_rate: Option<u64>,
    /// Of each disk; `None`: what the run has.
    pub(super) cache_kib: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) at_submission: bool,
    pub(super) batch: u64,
}

fn case(text: &str) -> Result<Case, String> {
    match text {
        "two-writers" => Ok(Case::TwoWriters),
        "pool-alone" => Ok(Case::PoolAlone),
        "two-superblocks" => Ok(Case::TwoSuperblocks),
        "twelve-disks" => Ok(Case::TwelveDisks),
        "blocking-rival" => Ok(Case::BlockingRival),
        _ => Err(format!("there is no case '{text}'; there are {}", CASE.default)),
    }
}

fn request_kib(text: &str) -> Result<u64, String> {
    match size(4096, 1 << 20)(text)? {
        bytes if !bytes.is_multiple_of(4096) => Err(format!("'{text}' is no multiple of 4 KiB")),
        bytes => Ok(bytes / 1024),
    }
}

fn yes(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("allowed are yes and no".to_owned()),
    }
}

impl Asked {
    /// Reads all options.
    ///
    /// # Errors
    /// [`LabError::Value`] for the first that cannot be used.
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        Ok(Self {
            cases: request.list(&CASE, case)?,
            quick: request.quick,
            seed: request.value(&SEED, number(0, u64::MAX))?,
            file_bytes: request.value(&SIZE, or_nothing(size(1_000_000_000, 1_000_000_000_000)))?,
            request_kib: request.value(&REQUEST, or_nothing(request_kib))?,
            disk_rate: request.value(&DISK_RATE, or_nothing(rate(1_000_000, 10_000_000_000)))?,
            cache_kib: request.value(&DISK_CACHE, or_nothing(size(0, 1 << 30)))?.map(|bytes| bytes / 1024),
            memory_bytes: request.value(&MEMORY, or_nothing(size(512 << 20, 64 << 30)))?,
            batch: request.value(&BATCH, number(1, 1024))?,
            at_submission: request.value(&AT_SUBMISSION, yes)?,
        })
    }

    /// The queue that a case asks for, as far as the options leave it.
    pub(super) fn queue(&self, nr_requests: u64, request_kib: u64) -> Queue {
        let request_kib = self.request_kib.unwrap_or(request_kib);
        Queue { nr_requests, request_kib, batch: self.batch, at_submission: self.at_submission }
    }
}

#[cfg(test)]
mod tests;
