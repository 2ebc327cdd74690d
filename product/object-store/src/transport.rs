//! The connection to a store over HTTP, the meaning of an answer by the request that it answers, and keys that are read
//! again when the store refuses them.
//!
//! One status means several things. 404 to a GET is an absent object; to a PUT or a listing it is an absent store. A
//! proxy in front of the store answers with pages of its own, with any status.
//!
//! Keys of an hour are usual: a file gets new ones, a role's are renewed. Every source is asked anew: the files of a
//! profile, the file of a web identity, the services of a container and of a machine.
//!
//! Owns: the client: no redirect, no compression, timeouts; the kinds of requests, how large their answers may be,
//! which answers are the store's own; the doubt about the present keys, how often their sources are asked.
//! Does not own: the meaning of a status for the layers above (`failure`), requests (`object_store`), the sources of
//! keys (`connect`, `object_store`).
//! Invariants: no request goes to a host that the settings do not name, so no key and no token does. No answer fills
//! the memory: a part ends at its asked length, everything else at a fixed one. An answer that is not the store's own,
//! or an absence of the store, becomes [`AWAY`]: the layers above ask again. The sources of keys are asked at most once
//! in [`PAUSE`]. If they give nothing, the present keys stay.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http_body_util::{BodyExt, Limited};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions, CredentialProvider, Result};
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, RANGE};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Method, StatusCode};

/// A segment of 8 MiB passes in this time at 140 kB/s.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The services that give keys are near, or absent.
const KEYS_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const USER_AGENT: &str = concat!("afflux/", env!("CARGO_PKG_VERSION"));

/// Makes the clients of a connection: for the store, and for the services that give keys.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    pub(crate) doubt: Arc<Doubt>,
    /// Those of authorities, beside the system's.
    pub(crate) certificates: Vec<Certificate>,
}

impl HttpConnector for Transport {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let value = |key| options.get_config_value(&key);
        let is_plain = value(ClientConfigKey::AllowHttp).is_some_and(|allowed| allowed == "true");
        let is_for_keys = value(ClientConfigKey::ConnectTimeout).is_some_and(|timeout| timeout == "1s");
        let builder = Client::builder().redirect(Policy::none()).user_agent(USER_AGENT).timeout(REQUEST_TIMEOUT);
        let builder = builder.connect_timeout(if is_for_keys { KEYS_CONNECT_TIMEOUT } else { CONNECT_TIMEOUT });
        let client = builder
            .tls_certs_merge(self.certificates.iter().cloned())
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .https_only(!is_plain)
            .build();
        let client = client.map_err(|error| object_store::Error::Generic { store: "HTTP", source: Box::new(error) })?;
        Ok(HttpClient::new(Bounded { client, doubt: Arc::clone(&self.doubt) }))
    }
}

/// A client whose answers are bounded and judged.
#[derive(Debug)]
struct Bounded {
    client: Client,
    doubt: Arc<Doubt>,
}

#[async_trait]
impl HttpService for Bounded {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let asked = Asked::of(request.method(), request.uri().query().unwrap_or_default(), request.headers());
        let answer = HttpService::call(&self.client, request).await?;
        let status = answer.status();
        if status == StatusCode::NOT_MODIFIED {
            return Ok(answer);
        }
        if !status.is_success() {
            return self.failed(asked, answer).await;
        }
        let seen = asked.success(status, answer.headers());
        if seen != status {
            return Ok(replaced(answer, seen, format!("the answer is not an object of the store ({status})")));
        }
        if asked == Asked::Names {
            return names(answer).await;
        }
        let most = usize::try_from(asked.bytes_max()).unwrap_or(usize::MAX);
        let too_long = |error| HttpError::new_boxed(HttpErrorKind::Decode, error);
        Ok(answer.map(|body| HttpResponseBody::new(Limited::new(body, most).map_err(too_long))))
    }
}

impl Bounded {
    /// Reads the text of a failure to its bound.
    async fn failed(&self, asked: Asked, answer: HttpResponse) -> Result<HttpResponse, HttpError> {
        let status = answer.status();
        let (head, body) = answer.into_parts();
        let text = String::from_utf8_lossy(&front(body).await).into_owned();
        if is_doubting_keys(status, &text) {
            self.doubt.raise();
        }
        let seen = asked.failure(status, &text);
        let mut answer = HttpResponse::from_parts(head, HttpResponseBody::from(text.clone()));
        if seen != status && !text.contains("<Code>") {
            answer = replaced(answer, seen, format!("the store is not there ({status})"));
        }
        *answer.status_mut() = seen;
        Ok(answer)
    }
}

/// The bytes of a failure, to their bound. A failure that breaks off is one, too.
async fn front(body: HttpResponseBody) -> Bytes {
    let (mut pieces, mut text) = (body.bytes_stream(), BytesMut::new());
    while let Some(Ok(piece)) = pieces.next().await {
        let left = ERROR_BYTES_MAX - text.len();
        text.extend_from_slice(&piece[..piece.len().min(left)]);
        if text.len() == ERROR_BYTES_MAX {
            break;
        }
    }
    text.freeze()
}

/// Reads a page of names whole. A page for people would be taken for an empty one.
async fn names(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, usize::try_from(PAGE_BYTES_MAX).unwrap_or(usize::MAX)).collect().await;
    let body = body.map_err(|error| HttpError::new_boxed(HttpErrorKind::Decode, error))?.to_bytes();
    let is_whole = is_names(&body);
    let answer = HttpResponse::from_parts(head, HttpResponseBody::from(body));
    if is_whole { Ok(answer) } else { Ok(replaced(answer, AWAY, "the answer is no list of names".to_owned())) }
}

/// The same answer with another status, and words in place of its body.
fn replaced(answer: HttpResponse, status: StatusCode, words: String) -> HttpResponse {
    let (mut head, _) = answer.into_parts();
    head.status = status;
    HttpResponse::from_parts(head, HttpResponseBody::from(words))
}

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

/// The sources are asked no more often.
const PAUSE: Duration = Duration::from_secs(2);

/// Whether the store refused the present keys.
#[derive(Debug, Default)]
pub(crate) struct Doubt(AtomicBool);

impl Doubt {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn settle(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A source of keys.
pub(crate) type Source<C> = Arc<dyn CredentialProvider<Credential = C>>;
type Ask<C> = Box<dyn Fn() -> Result<Source<C>> + Send + Sync>;

/// The keys of a connection.
pub(crate) struct FreshKeys<C> {
    ask: Ask<C>,
    doubt: Arc<Doubt>,
    present: Mutex<Present<C>>,
}

struct Present<C> {
    source: Source<C>,
    asked: Instant,
}

impl<C> FreshKeys<C> {
    /// Begins with a source, and asks for others when the store refuses its keys.
    pub(crate) fn new(
        doubt: &Arc<Doubt>,
        source: Source<C>,
        ask: impl Fn() -> Result<Source<C>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let present = Mutex::new(Present { source, asked: Instant::now() });
        Arc::new(Self { ask: Box::new(ask), doubt: Arc::clone(doubt), present })
    }

    /// The source to use: a new one if the store refused the keys of the present one.
    fn source(&self) -> Source<C> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if self.doubt.is_raised() && present.asked.elapsed() >= PAUSE {
            present.asked = Instant::now();
            if let Ok(source) = (self.ask)() {
                present.source = source;
                self.doubt.settle();
            }
        }
        Arc::clone(&present.source)
    }
}

#[async_trait]
impl<C: fmt::Debug + Send + Sync + 'static> CredentialProvider for FreshKeys<C> {
    type Credential = C;

    async fn get_credential(&self) -> Result<Arc<C>> {
        let keys = self.source().get_credential().await;
        if keys.is_err() {
            self.doubt.raise();
        }
        keys
    }
}

impl<C> fmt::Debug for FreshKeys<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreshKeys")
    }
}

#[cfg(test)]
mod tests;
