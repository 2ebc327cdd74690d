//! Which failures are repeated, for how long, and which are final.
//!
//! The layers above repeat a request without end. Here is decided when an end comes, by the request, the answer and the
//! time for which it has been repeated. `docs/use/stores.md` has the table.
//!
//! Owns: the end of repeats, its times by the failure and by the object, the marks that the layers above know.
//! Does not own: the failures (`failure`), the pauses between tries (the layers above), the list of waits (`waits`).
//! Invariants: an error is either one that the layers above repeat, or an answer, or marked as final. A server waits
//! without end for a store that is away, and for records: their end would be the server's. A refusal ends a call for
//! data in half a minute. While a program opens a volume or checks one, everything ends in ten seconds. A directory
//! answers for itself: its refusals and absences are believed at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use object_store::path::Path;
use object_store::{Error, Result};
use slatedb_common::retry::NonRetryable;

use crate::address::{StoreAddress, is_data};
use crate::failure::{NoAnswer, Over, RequestFailure};
use crate::shown::{NameAnswer, ShownNames};
use crate::waits::{Sent, WaitingRequests};

/// The judge of one store.
#[derive(Debug)]
pub(crate) struct Judge {
    now_ns: fn() -> u64,
    pub(crate) patience: Patience,
    pub(crate) waiting: Arc<WaitingRequests>,
    pub(crate) shown: ShownNames,
}

/// Words as an error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Said(String);

/// An error that the layers above repeat.
pub(crate) fn said(words: String) -> Error {
    Error::Generic { store: "afflux", source: Box::new(Said(words)) }
}

/// An error that no layer repeats.
pub(crate) fn over(words: String) -> Error {
    ended(RequestFailure::Refused(words))
}

fn ended(failure: RequestFailure) -> Error {
    Error::Generic { store: "afflux", source: Box::new(NonRetryable(Box::new(Over::new(failure)))) }
}

impl Judge {
    pub(crate) fn new(now_ns: fn() -> u64, patience: Patience) -> Arc<Self> {
        Arc::new(Self { now_ns, patience, waiting: WaitingRequests::new(now_ns), shown: ShownNames::default() })
    }

    /// The answer as the layers above get it.
    pub(crate) fn judge<T>(&self, sent: &Sent, path: &Path, result: Result<T>) -> Result<T> {
        match result {
            Ok(found) => {
                self.shown.trust(path);
                sent.succeeds();
                self.hear(sent);
                Ok(found)
            }
            Err(Error::NotFound { .. }) if self.is_doubtful(path, NameAnswer::Absent) => {
                Err(self.fail(sent, path, said(format!("{path} is not found, though it must be there"))))
            }
            Err(error) if is_answer(&error) => {
                self.hear(sent);
                Err(error)
            }
            Err(error) => Err(self.fail(sent, path, error)),
        }
    }

    fn hear(&self, sent: &Sent) {
        self.waiting.hears();
        sent.ends();
    }

    /// A request failed: the error for the layers above.
    fn fail(&self, sent: &Sent, path: &Path, error: Error) -> Error {
        let failure = RequestFailure::of(&error);
        sent.note_refusal(&failure.clone().words());
        let (is_over, is_beyond) =
            (matches!(failure, RequestFailure::Over(_)), matches!(failure, RequestFailure::Beyond(_)));
        if is_beyond && self.is_doubtful(path, NameAnswer::Wrong) {
            sent.fails(failure.words());
            // Until it is believed, it is no answer.
            return said(format!("{path} ends before the bytes that were asked for"));
        }
        if !is_over && !is_beyond && !self.patience.is_over(&failure, path, sent.waited_ns()) {
            sent.fails(failure.words());
            return error;
        }
        self.hear(sent);
        // The reader of data wants to know that a part is not there.
        if is_over || (is_beyond && is_data(path)) { error } else { ended(failure) }
    }

    /// Whether an answer contradicts what the store has shown, and is asked for again.
    pub(crate) fn is_doubtful(&self, path: &Path, answer: NameAnswer) -> bool {
        self.shown.is_doubtful(path, answer, (self.now_ns)(), self.patience.doubt_ns(path, answer))
    }

    /// Waits for the head of an answer. Where somebody watches the start of a program, no single request waits for
    /// long.
    pub(crate) async fn timed<T>(&self, request: impl Future<Output = Result<T>>) -> Result<T> {
        let Some(limit_ns) = self.patience.limit_ns() else { return request.await };
        match tokio::time::timeout(Duration::from_nanos(limit_ns), request).await {
            Ok(result) => result,
            Err(_) => {
                let source = Box::new(NoAnswer(limit_ns / 1_000_000_000));
                Err(Error::Generic { store: "afflux", source })
            }
        }
    }
}

/// Whether the layers above take it for an answer.
fn is_answer(error: &Error) -> bool {
    matches!(
        error,
        Error::NotFound { .. }
            | Error::AlreadyExists { .. }
            | Error::Precondition { .. }
            | Error::NotModified { .. }
            | Error::NotImplemented { .. }
            | Error::NotSupported { .. }
    )
}

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
            // A check reads again by itself, if a list has the object.
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
