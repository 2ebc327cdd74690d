//! How long a failed request is repeated.
//!
//! Owns: the times, by the failure and by the object.
//! Does not own: the failures (`failure`), their judgement (`judge`).
//! Invariants: a server waits without end for a store that is away, and for records: their end would be the server's. A
//! refusal ends a call for data in half a minute. While a program opens a volume or checks one, everything ends in ten
//! seconds. A directory answers for itself: its refusals and absences are believed at once.

use std::sync::atomic::{AtomicU64, Ordering};

use object_store::path::Path;

use crate::address::StoreAddress;
use crate::failure::RequestFailure;
use crate::folders::is_data;
use crate::shown::NameAnswer;

const S: u64 = 1_000_000_000;
/// An opening or a check repeats a request for so long.
const LIMIT_NS: u64 = 10 * S;
/// Keys that were renewed arrive in this time; a READ or a sync waits for them.
const REFUSED_NS: u64 = 30 * S;
/// An answer that contradicts the store's own list is believed after this time: it ends the server.
const DOUBT_NS: u64 = 60 * S;
/// An absent object of data, or an absent part of one, is damage after this time.
const DATA_DOUBT_NS: u64 = 5 * S;
const NONE: u64 = u64::MAX;

/// The times of one store.
#[derive(Debug)]
pub(crate) struct Patience {
    is_remote: bool,
    limit_ns: AtomicU64,
}

impl Patience {
    /// The patience of an opening.
    pub(crate) fn of(place: &StoreAddress) -> Self {
        let is_remote = !matches!(place, StoreAddress::Directory(_) | StoreAddress::Memory);
        Self { is_remote, limit_ns: AtomicU64::new(LIMIT_NS) }
    }

    #[cfg(test)]
    pub(crate) fn served() -> Self {
        Self { is_remote: true, limit_ns: AtomicU64::new(NONE) }
    }

    /// The patience of a server: it waits for a store that is away.
    pub(crate) fn serve(&self) {
        self.limit_ns.store(NONE, Ordering::Relaxed);
    }

    pub(crate) fn limit_ns(&self) -> Option<u64> {
        Some(self.limit_ns.load(Ordering::Relaxed)).filter(|limit_ns| *limit_ns != NONE)
    }

    /// How long an answer is doubted that contradicts what must be there.
    pub(crate) fn doubt_ns(&self, path: &Path, answer: NameAnswer) -> u64 {
        match (self.limit_ns(), answer) {
            _ if !self.is_remote => 0,
            // A check looks again for itself, if a list has the object.
            (Some(_), NameAnswer::Absent) if is_data(path) => 0,
            _ if is_data(path) => DATA_DOUBT_NS,
            (limit_ns, _) => limit_ns.unwrap_or(DOUBT_NS),
        }
    }

    /// Whether a failure that has lasted for so long is final.
    pub(crate) fn is_over(&self, failure: &RequestFailure, path: &Path, waited_ns: u64) -> bool {
        let is_data = is_data(path);
        let most_ns = match failure {
            RequestFailure::Denied(_) | RequestFailure::Region(_) | RequestFailure::Refused(_) if is_data => REFUSED_NS,
            _ => NONE,
        };
        let is_believed = !self.is_remote && most_ns != NONE;
        is_believed || waited_ns >= self.limit_ns().unwrap_or(NONE).min(most_ns)
    }
}

#[cfg(test)]
mod tests;
