//! The meaning of an answer, by the request that it answers.
//!
//! One status means several things. 404 to a GET is an absent object; to a PUT or a listing it is an absent store. A
//! proxy in front of the store answers with pages of its own, with any status.
//!
//! Owns: the kinds of requests, how large their answers may be, which answers are the store's own.
//! Does not own: the connection (`transport`), the meaning of a status for the layers above (`failure`).
//! Invariants: an answer that is not the store's own, or an absence of the store, becomes [`AWAY`]: the layers above
//! ask again. Nothing here waits or sends.

use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, RANGE};
use reqwest::{Method, StatusCode};

/// What the layers above see of an answer that is not the store's own. They ask again.
pub(crate) const AWAY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
/// What they see of an empty answer to a request for a part: no byte of the object lies there.
const NOTHING_THERE: StatusCode = StatusCode::RANGE_NOT_SATISFIABLE;

/// Most bytes of an object that is asked for as a whole: a manifest, the state of the compactor.
const WHOLE_BYTES_MAX: u64 = 64 << 20;
/// Most bytes of a page of names: a thousand of a KiB each, with their XML.
pub(crate) const PAGE_BYTES_MAX: u64 = 16 << 20;
/// Most bytes of other answers: a result of a few lines, keys.
const RESULT_BYTES_MAX: u64 = 1 << 20;
/// The root of a page of names is in so many bytes of its front and of its end.
const FRAME_BYTES: usize = 1 << 10;
/// Bytes of an error that are read.
pub(crate) const ERROR_BYTES_MAX: usize = 64 << 10;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A page of names.
    Names,
    /// So many bytes of an object.
    Part(u64),
    /// A whole object.
    Whole,
    /// A change: an object, a part of one.
    Change,
    /// A copy. Its source may be absent.
    Copy,
    Removal,
}

impl Asked {
    pub(crate) fn of(method: &Method, query: &str, headers: &HeaderMap) -> Self {
        let is_names = |part: &str| part.starts_with("list-type=") || part == "comp=list";
        match *method {
            Method::GET if query.split('&').any(is_names) => Self::Names,
            Method::GET => {
                headers.get(RANGE).and_then(|range| part(range.to_str().ok()?)).map_or(Self::Whole, Self::Part)
            }
            Method::DELETE => Self::Removal,
            Method::PUT | Method::POST if headers.keys().any(|name| name.as_str().ends_with("copy-source")) => {
                Self::Copy
            }
            Method::PUT | Method::POST => Self::Change,
            _ => Self::Whole,
        }
    }

    /// Most bytes of a successful answer.
    pub(crate) fn bytes_max(self) -> u64 {
        match self {
            Self::Names => PAGE_BYTES_MAX,
            Self::Part(bytes) => bytes,
            Self::Whole => WHOLE_BYTES_MAX,
            Self::Change | Self::Copy | Self::Removal => RESULT_BYTES_MAX,
        }
    }

    /// The status that the layers above see of a success, by its head.
    pub(crate) fn success(self, status: StatusCode, headers: &HeaderMap) -> StatusCode {
        // The request asked for no compression, and the length would be another one.
        if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity" && coding != "aws-chunked") {
            return AWAY;
        }
        let is_empty = headers.get(CONTENT_LENGTH).is_some_and(|length| length == "0");
        if matches!(self, Self::Part(_)) && status == StatusCode::OK && is_empty { NOTHING_THERE } else { status }
    }

    /// The status that the layers above see of a failure.
    pub(crate) fn failure(self, status: StatusCode, text: &str) -> StatusCode {
        let is_absent_store = ["NoSuchBucket", "ContainerNotFound"].iter().any(|code| text.contains(code));
        let needs_store = matches!(self, Self::Names | Self::Change) && !text.contains("NoSuchUpload");
        if status == StatusCode::NOT_FOUND && (is_absent_store || needs_store || is_page(text)) { AWAY } else { status }
    }
}

/// The bytes that a header `Range` asks for.
fn part(range: &str) -> Option<u64> {
    let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    match (start.parse::<u64>(), end.parse::<u64>()) {
        (Ok(start), Ok(end)) => end.checked_sub(start)?.checked_add(1),
        // The last bytes of an object.
        (Err(_), Ok(bytes)) if start.is_empty() => Some(bytes),
        _ => None,
    }
}

/// Whether a body is a whole page of names.
pub(crate) fn is_names(body: &[u8]) -> bool {
    let (front, end) = (&body[..body.len().min(FRAME_BYTES)], &body[body.len().saturating_sub(FRAME_BYTES)..]);
    let (front, end) = (String::from_utf8_lossy(front), String::from_utf8_lossy(end));
    ["ListBucketResult", "EnumerationResults"].iter().any(|root| {
        let is_closed = end.trim_end().ends_with(&format!("</{root}>")) || end.trim_end().ends_with("/>");
        front.contains(&format!("<{root}")) && is_closed
    })
}

/// Whether a text is a page for people.
fn is_page(text: &str) -> bool {
    let head: String = text.chars().take(512).collect();
    let head = head.to_ascii_lowercase();
    head.contains("<html") || head.contains("<!doctype html")
}

/// Whether an answer says that the keys are no longer, or not yet, good.
pub(crate) fn is_doubting_keys(status: StatusCode, text: &str) -> bool {
    const CODES: [&str; 4] = ["ExpiredToken", "InvalidToken", "InvalidAccessKeyId", "TokenRefreshRequired"];
    match status.as_u16() {
        401 | 403 => true,
        400 => CODES.iter().any(|code| text.contains(code)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
