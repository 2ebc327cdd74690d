//! The options of s1.
//!
//! Owns: names, ranges, defaults. Does not own: reading a value (`options`), the cases.
//! Invariants: the values of a case are in range.

use crate::experiment::{LabError, OptionInfo, Request};
use crate::machine::Queue;
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
    info("size", "SIZE", "", "Of each file of two-writers (32 GB; with --quick 1 GB)"),
    1_000_000_000..=1_000_000_000_000,
);
const DISK_RATE: TypedOption<u64> = options::rate(
    info("disk-rate", "RATE", "", "What each of twelve-disks writes in a second (60 MB)"),
    1_000_000..=10_000_000_000,
);
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
    info("request-batch", "NUMBER", "32", "Requests that who had to wait for one takes in a row; 1: none in a row"),
    1..=1024,
);
const SEED: TypedOption<u64> =
    options::number(info("seed", "NUMBER", "1", "What everything is drawn from"), 0..=u64::MAX);

/// All of them.
pub(super) const ALL: &[OptionInfo] =
    &[CASE.info, SIZE.info, DISK_RATE.info, AT_SUBMISSION.info, BATCH.info, SEED.info];

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
            batch: BATCH.value(request)?,
            at_submission: AT_SUBMISSION.value(request)?,
        })
    }

    /// A queue of so many requests.
    pub(super) fn queue(&self, nr_requests: u64, request_kib: u64) -> Queue {
        Queue { nr_requests, request_kib, batch: self.batch, at_submission: self.at_submission }
    }
}

#[cfg(test)]
mod tests;
