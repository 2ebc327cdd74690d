//! The meaning of a failed request, and of a failed opening as an error with advice.
//!
//! Owns: which failures had no effect, which may have had one, which are final; the party that reported them, and the
//! words; the translation of an opening's failures.
//! Does not own: repetition; how long a refusal may pass (`wire`); answers of others than the store (`transport`); the
//! texts of errors with advice (`error`).
//! Invariants: `Busy` is only reported where the request cannot have had an effect. A failure of a store behind a
//! network that is not understood may have had one. Each error of a directory has a name here. Words have no secret and
//! no escape sequence. A failure of an opening has the same words in each command. `StoreError::Unreachable` is only
//! reported where nothing answered.

use std::error::Error as _;
use std::io;

use afflux_object::ObjectError;
use object_store::client::{HttpError, HttpErrorKind};
use rustix::io::Errno;
use slatedb::{CloseReason, ErrorKind};
use slatedb_common::retry::NonRetryable;

use crate::address::Address;
use crate::error::StoreError;

/// Most of the store's words in an error.
const WORDS_MAX: usize = 300;
/// The store of a directory calls itself so.
const DIRECTORY: &str = "LocalFileSystem";

/// The party that reported a failure that may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TransientFailure {
    /// The store, by an answer.
    ByStore(String),
    /// The connection, which brought no answer.
    ByConnection(String),
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestFailure {
    /// No effect; a later try may succeed.
    Busy(TransientFailure),
    /// Perhaps an effect.
    Unknown(TransientFailure),
    Missing,
    NoBucket,
    /// The object ends before the part that was asked for.
    Beyond(String),
    /// The keys are wrong, absent, or lack a right.
    Denied(String),
    /// The bucket is elsewhere.
    Region(String),
    /// There is no space.
    Full(String),
    Refused(String),
    /// It was repeated for long enough.
    Over(Box<Self>),
}

/// A request had no answer in its time.
#[derive(Debug, thiserror::Error)]
#[error("no answer for {0} s")]
pub(crate) struct NoAnswer(pub(crate) u64);

/// A failure that was repeated for long enough.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub(crate) struct Over {
    words: String,
    pub(crate) failure: RequestFailure,
}

impl Over {
    pub(crate) fn new(failure: RequestFailure) -> Self {
        Self { words: failure.clone().words(), failure }
    }
}

impl RequestFailure {
    pub(crate) fn of(error: &object_store::Error) -> Self {
        use object_store::Error;
        let text = chain(error);
        let words = words(&text);
        if let Some(ended) = NonRetryable::find(error) {
            let over = ended.0.downcast_ref::<Over>();
            return Self::Over(Box::new(over.map_or(Self::Refused(words), |over| over.failure.clone())));
        }
        match error {
            // A listing has no other error for it.
            _ if is_no_bucket(&words) => Self::NoBucket,
            Error::NotFound { .. } => Self::Missing,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Self::denied(words),
            // A store answers a condition that collides with another request with 409; nothing happened.
            Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
                Self::Busy(TransientFailure::ByStore(words))
            }
            Error::JoinError { .. } => Self::Unknown(TransientFailure::ByConnection(words)),
            Error::Generic { store, .. } => Self::generic(store, error, &text, words),
            _ => Self::Refused(words),
        }
    }

    /// Whether the store took an object and gave it no tag.
    pub(crate) fn is_without_tag(error: &object_store::Error) -> bool {
        chain(error).contains("ETag Header missing")
    }

    fn generic(store: &str, error: &object_store::Error, text: &str, words: String) -> Self {
        if text.contains("Wanted range starting at") || text.starts_with("Out of range of file") {
            return Self::Beyond(words);
        }
        if let Some(status) = status(text) {
            return Self::status(status, words);
        }
        if text.contains("redirect without LOCATION") {
            return Self::Region(words);
        }
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<HttpError>() {
                let told = TransientFailure::ByConnection(words);
                return match error.kind() {
                    HttpErrorKind::Connect => Self::Busy(told),
                    _ => Self::Unknown(told),
                };
            }
            if error.is::<NoAnswer>() {
                return Self::Unknown(TransientFailure::ByConnection(words));
            }
            if let Some(error) = error.downcast_ref::<io::Error>()
                && let Some(errno) = Errno::from_io_error(error)
            {
                return Self::errno(errno, words);
            }
            cause = error.source();
        }
        if store == DIRECTORY { Self::Refused(words) } else { Self::Unknown(TransientFailure::ByStore(words)) }
    }

    /// The host's word about a directory.
    fn errno(errno: Errno, words: String) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied(words),
            Errno::NOSPC | Errno::DQUOT => Self::Full(words),
            // The host lacks something for a while. The change may have been made before its sync failed.
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::AGAIN | Errno::INTR | Errno::BUSY => {
                Self::Unknown(TransientFailure::ByStore(words))
            }
            Errno::TIMEDOUT | Errno::CONNRESET | Errno::HOSTDOWN | Errno::HOSTUNREACH | Errno::NOTCONN => {
                Self::Unknown(TransientFailure::ByConnection(words))
            }
            // EIO of a disk, ENAMETOOLONG, ENOTDIR, EISDIR, ELOOP and others stay until somebody acts.
            _ => Self::Refused(words),
        }
    }

    fn denied(words: String) -> Self {
        if is_full(&words) { Self::Full(words) } else { Self::Denied(words) }
    }

    fn status(status: u16, words: String) -> Self {
        let has = |codes: &[&str]| codes.iter().any(|code| words.contains(code));
        match status {
            _ if status == 507 || is_full(&words) => Self::Full(words),
            // An error in the body of a success, and the gateway's own failures: the request may have passed.
            200..300 | 500 | 502 | 504 | 408 => Self::Unknown(TransientFailure::ByStore(words)),
            // 409: the condition collided with another request, and nothing happened.
            409 | 425 | 429 | 503 => Self::Busy(TransientFailure::ByStore(words)),
            300..400 => Self::Region(words),
            401 | 403 => Self::Denied(words),
            416 => Self::Beyond(words),
            400 if has(&["AuthorizationHeaderMalformed", "IllegalLocationConstraint"]) => Self::Region(words),
            400 if has(&["InvalidAccessKeyId", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"]) => {
                Self::Denied(words)
            }
            400 if has(&["RequestTimeout"]) => Self::Unknown(TransientFailure::ByStore(words)),
            // 501: the store will not learn it.
            400..500 | 501 => Self::Refused(words),
            _ => Self::Unknown(TransientFailure::ByStore(words)),
        }
    }

    /// The words about it.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Missing => "there is no such object".to_owned(),
            Self::NoBucket => "there is no such bucket".to_owned(),
            Self::Busy(TransientFailure::ByStore(words) | TransientFailure::ByConnection(words))
            | Self::Unknown(TransientFailure::ByStore(words) | TransientFailure::ByConnection(words))
            | Self::Beyond(words)
            | Self::Denied(words)
            | Self::Region(words)
            | Self::Full(words)
            | Self::Refused(words) => words,
            Self::Over(failure) => failure.words(),
        }
    }

    /// The failure as the seam knows it.
    pub(crate) fn seen(self) -> ObjectError {
        match self {
            // A gateway may report that for a bucket that is there.
            Self::Busy(_) | Self::NoBucket => ObjectError::Busy,
            Self::Unknown(_) => ObjectError::Unknown,
            Self::Missing => ObjectError::Missing,
            Self::Denied(_) | Self::Region(_) | Self::Refused(_) => ObjectError::Denied,
            Self::Full(words) => ObjectError::Full(words),
            Self::Beyond(_) | Self::Over(_) => ObjectError::Refused(self.words()),
        }
    }
}

fn is_no_bucket(words: &str) -> bool {
    ["NoSuchBucket", "ContainerNotFound"].iter().any(|code| words.contains(code))
}

fn is_full(words: &str) -> bool {
    ["QuotaExceeded", "StorageFull", "InsufficientCapacity"].iter().any(|code| words.contains(code))
}

/// The status of an answer. The crate gives it only as text.
fn status(text: &str) -> Option<u16> {
    if text.contains("Server returned error response") {
        return Some(200);
    }
    let (_, after) = text.split_once("status code: ")?;
    after.get(..3)?.parse().ok()
}

/// The texts of an error and of all its sources. Most libraries repeat a source's text in their own.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

/// The store's own words, without the frame that the libraries put around them.
fn words(text: &str) -> String {
    let tag = |name: &str| {
        let (_, after) = text.split_once(&format!("<{name}>"))?;
        Some(after.split_once(&format!("</{name}>"))?.0)
    };
    let short: Vec<&str> = match (tag("Code"), tag("Message")) {
        (Some(code), Some(message)) if !message.is_empty() => vec![code, ": ", message],
        (Some(code), _) => vec![code],
        _ => vec![bare(text)],
    };
    let plain: String = short.concat().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let words = plain.split_whitespace().map(without_secret).collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(WORDS_MAX) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

/// A text without the words that `object_store` puts before it.
fn bare(mut text: &str) -> &str {
    while let Some((store, rest)) = text.strip_prefix("Generic ").and_then(|rest| rest.split_once(" error: "))
        && !store.contains(' ')
    {
        text = rest;
    }
    text
}

/// An address without its query, which may have a signature, and without a name and password.
fn without_secret(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    match path {
        Some(path) => format!("{scheme}://{host}/{path}"),
        None => format!("{scheme}://{host}"),
    }
}

/// The services of an instance that give keys.
const INSTANCE: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];

pub(crate) fn advice(url: &str, address: &Address, failure: RequestFailure) -> StoreError {
    let url = url.to_owned();
    match failure {
        RequestFailure::Over(failure) => advice(&url, address, *failure),
        // The last source of keys is the instance's own address, which nothing answers elsewhere.
        RequestFailure::Busy(TransientFailure::ByConnection(why))
        | RequestFailure::Unknown(TransientFailure::ByConnection(why))
            if INSTANCE.iter().any(|host| why.contains(host)) =>
        {
            StoreError::Denied { url, why: "there are no keys".to_owned() }
        }
        RequestFailure::Busy(told) | RequestFailure::Unknown(told) => match told {
            TransientFailure::ByStore(why) => StoreError::Failing { url, why },
            TransientFailure::ByConnection(why) => StoreError::Unreachable { url, why },
        },
        RequestFailure::Full(why) | RequestFailure::Beyond(why) | RequestFailure::Refused(why) => {
            StoreError::Refused { url, why }
        }
        RequestFailure::Missing | RequestFailure::NoBucket => StoreError::NoBucket { url, bucket: address.bucket() },
        RequestFailure::Denied(why) => StoreError::Denied { url, why },
        RequestFailure::Region(why) => StoreError::Region { url, why },
    }
}

/// The meaning of an error of the database while it is opened.
pub(crate) fn of_records(url: &str, address: &Address, error: &slatedb::Error) -> StoreError {
    if let Some(failure) = ended(error) {
        return advice(url, address, failure.clone());
    }
    let (url, why) = (url.to_owned(), chain(error));
    match error.kind() {
        ErrorKind::Closed(CloseReason::Fenced) => StoreError::Fenced { url },
        ErrorKind::Data => StoreError::Format { url, why },
        ErrorKind::Unavailable => StoreError::Failing { url, why },
        _ => StoreError::Refused { url, why },
    }
}

/// The failure of the request behind an error of the database, if it was repeated for long enough.
fn ended(error: &slatedb::Error) -> Option<&RequestFailure> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(over) = error.downcast_ref::<Over>() {
            return Some(&over.failure);
        }
        source = error.source();
    }
    None
}

#[cfg(test)]
mod tests;
