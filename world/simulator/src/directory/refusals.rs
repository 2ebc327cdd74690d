//! Calls of a tree that fail on demand.
//!
//! Owns: the numbers of the calls that fail, and their error.
//! Does not own: the calls.
//! Invariants: a call that fails has no effect. Without a demand, no call fails.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use afflux_volume::VolumeError;

/// The calls that fail.
#[derive(Default)]
pub(super) struct Refusals(Mutex<Demand>);

#[derive(Default)]
struct Demand {
    /// The calls since the last demand.
    calls: u64,
    refused: Option<(Range<u64>, VolumeError)>,
}

impl Refusals {
    fn with<T>(&self, change: impl FnOnce(&mut Demand) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn refuse(&self, calls: Range<u64>, error: VolumeError) {
        self.with(|demand| *demand = Demand { calls: 0, refused: Some((calls, error)) });
    }

    pub(super) fn refuse_nothing(&self) -> u64 {
        self.with(std::mem::take).calls
    }

    /// Counts a call, and fails if it is demanded.
    pub(super) fn next(&self) -> Result<(), VolumeError> {
        self.with(|demand| {
            let number = demand.calls;
            demand.calls += 1;
            match &demand.refused {
                Some((calls, error)) if calls.contains(&number) => Err(error.clone()),
                _ => Ok(()),
            }
        })
    }
}
