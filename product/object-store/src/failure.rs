//! The meaning of a failed request.
//!
//! Owns: which failures had no effect, which may have had one, which are final.
//! Does not own: repetition.
//! Invariants: `Busy` is only said where the request cannot have had an effect. A failure that is not understood may have
//! had one.

use std::error::Error as _;
use std::io;

use afflux_object::ObjectError;
use object_store::client::{HttpError, HttpErrorKind};

/// Most of the store's words in an error.
const WORDS_MAX: usize = 300;

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No effect; a later try may succeed.
    Busy(String),
    /// Perhaps an effect.
    Unknown(String),
    Missing,
    NoBucket,
    /// The keys are wrong, absent, or lack a right.
    Denied(String),
    /// The bucket is elsewhere.
    Region(String),
    Refused(String),
}

impl Failure {
    pub(crate) fn of(error: &object_store::Error) -> Self {
        use object_store::Error;
        let words = words(&error.to_string());
        match error {
            Error::NotFound { .. } if words.contains("NoSuchBucket") => Self::NoBucket,
            Error::NotFound { .. } => Self::Missing,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Self::Denied(words),
            // A store answers a condition that collides with another request with 409; nothing happened.
            Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => Self::Busy(words),
            Error::JoinError { .. } => Self::Unknown(words),
            Error::Generic { .. } => Self::generic(error, words),
            _ => Self::Refused(words),
        }
    }

    fn generic(error: &object_store::Error, words: String) -> Self {
        let text = error.to_string();
        // A listing has no other error for it.
        if words.starts_with("NoSuchBucket") {
            return Self::NoBucket;
        }
        if let Some(status) = status(&text) {
            return Self::status(status, words);
        }
        if text.contains("redirect without LOCATION") {
            return Self::Region(words);
        }
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<HttpError>() {
                return match error.kind() {
                    HttpErrorKind::Connect => Self::Busy(words),
                    _ => Self::Unknown(words),
                };
            }
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return match error.kind() {
                    io::ErrorKind::NotFound => Self::Missing,
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied(words),
                    _ => Self::Unknown(words),
                };
            }
            cause = error.source();
        }
        Self::Unknown(words)
    }

    fn status(status: u16, words: String) -> Self {
        match status {
            // An error in the body of a success, and the gateway's own failures: the request may have passed.
            200..300 | 500 | 502 | 504 | 408 => Self::Unknown(words),
            // 409: the condition collided with another request, and nothing happened.
            409 | 429 | 503 => Self::Busy(words),
            300..400 => Self::Region(words),
            401 | 403 => Self::Denied(words),
            400 if ["AuthorizationHeaderMalformed", "IllegalLocationConstraint"]
                .iter()
                .any(|it| words.contains(it)) =>
            {
                Self::Region(words)
            }
            400 if ["InvalidAccessKeyId", "ExpiredToken", "InvalidToken"].iter().any(|it| words.contains(it)) => {
                Self::Denied(words)
            }
            400 if words.contains("RequestTimeout") => Self::Unknown(words),
            400..500 => Self::Refused(words),
            _ => Self::Unknown(words),
        }
    }

    /// The failure as the seam knows it.
    pub(crate) fn seen(self) -> ObjectError {
        match self {
            Self::Busy(_) => ObjectError::Busy,
            Self::Unknown(_) => ObjectError::Unknown,
            Self::Missing => ObjectError::Missing,
            Self::NoBucket => ObjectError::Refused("there is no such bucket".to_owned()),
            Self::Denied(words) | Self::Region(words) | Self::Refused(words) => ObjectError::Refused(words),
        }
    }
}

/// The status of an answer. The crate has no other way to it than its text.
fn status(text: &str) -> Option<u16> {
    if text.contains("Server returned error response") {
        return Some(200);
    }
    let (_, after) = text.split_once("status code: ")?;
    after.get(..3)?.parse().ok()
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
        _ => vec![text],
    };
    let words: String = short.concat().split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(WORDS_MAX) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

#[cfg(test)]
mod tests;
