//! The options of s1.
//!
//! Owns: names, ranges, defaults. Does not own: reading a value (`options`), the cases.
//! Invariants: the values of a case are in range.

use crate::experiment::{LabError, OptionInfo, Request};
use crate::machine::Queue;
use crate::options::{self, TypedOption};

const CASE: TypedOption<Case> = options::choice(
    OptionInfo {
        name: "case",
        value: "LIST",
        default: "two-writers,pool-alone,two-superblocks,sync-of-two,twelve-disks,blocking-rival",
        doc: "Which cases, separated by commas",
    },
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
    OptionInfo {
        name: "size",
        value: "SIZE",
        default: "",
        doc: "Of each file of two-writers (32 GB; with --quick 1 GB)",
    },
    1_000_000_000..=1_000_000_000_000,
);
const REQUEST: TypedOption<u64> = options::size(
    OptionInfo {
        name: "request",
        value: "SIZE",
        default: "",
        doc: "The largest request, in place of what a case has (64 and 24 KiB, 64 and 512 KiB, 64 KiB)",
    },
    4096..=1 << 20,
);
const DISK_RATE: TypedOption<u64> = options::rate(
    OptionInfo {
        name: "disk-rate",
        value: "RATE",
        default: "",
        doc: "What each of twelve-disks writes in a second (60 MB)",
    },
    1_000_000..=10_000_000_000,
);
const DISK_CACHE: TypedOption<u64> = options::size(
    OptionInfo {
        name: "disk-cache",
        value: "SIZE",
        default: "",
        doc: "The write cache inside each disk (8 MiB; some runs have none)",
    },
    0..=1 << 30,
);
const MEMORY: TypedOption<u64> = options::size(
    OptionInfo { name: "memory", value: "SIZE", default: "", doc: "Of the machine of twelve-disks (8 GiB)" },
    512 << 20..=64 << 30,
);
const AT_SUBMISSION: TypedOption<bool> = options::choice(
    OptionInfo {
        name: "allocate-at-submission",
        value: "yes|no",
        default: "no",
        doc: "Extents are laid out in the order of submission, so that interleaving costs later",
    },
    &[("yes", true), ("no", false)],
    "allowed are yes and no",
);
const BATCH: TypedOption<u64> = options::number(
    OptionInfo {
        name: "request-batch",
        value: "NUMBER",
        default: "32",
        doc: "Requests that who had to wait for one takes in a row; 1: none in a row",
    },
    1..=1024,
);
const SEED: TypedOption<u64> = options::number(
    OptionInfo { name: "seed", value: "NUMBER", default: "1", doc: "What everything is drawn from" },
    0..=u64::MAX,
);

/// All of them.
pub(super) const ALL: &[OptionInfo] = &[
    CASE.info,
    SIZE.info,
    REQUEST.info,
    DISK_RATE.info,
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
    pub(super) request_kib: Option<u64>,
    pub(super) disk_rate: Option<u64>,
    /// KiB of each disk's write cache; `None` for the value of the run.
    pub(super) cache_kib: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) at_submission: bool,
    pub(super) batch: u64,
}

fn request_kib(request: &Request) -> Result<Option<u64>, LabError> {
    match REQUEST.value_if_given(request)? {
        Some(bytes) if !bytes.is_multiple_of(4096) => {
            Err(REQUEST.refused(request, format!("'{}' is no multiple of 4 KiB", request.text(&REQUEST.info))))
        }
        bytes => Ok(bytes.map(|bytes| bytes / 1024)),
    }
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
            request_kib: request_kib(request)?,
            disk_rate: DISK_RATE.value_if_given(request)?,
            cache_kib: DISK_CACHE.value_if_given(request)?.map(|bytes| bytes / 1024),
            memory_bytes: MEMORY.value_if_given(request)?,
            batch: BATCH.value(request)?,
            at_submission: AT_SUBMISSION.value(request)?,
        })
    }

    /// The queue of a case, with the values that the options override.
    pub(super) fn queue(&self, nr_requests: u64, request_kib: u64) -> Queue {
        let request_kib = self.request_kib.unwrap_or(request_kib);
        Queue { nr_requests, request_kib, batch: self.batch, at_submission: self.at_submission }
    }
}

#[cfg(test)]
mod tests;
