//! The connection to a store over HTTP.
//!
//! Owns: the client: no redirect, no compression, timeouts; the bound of each answer; the doubt about keys.
//! Does not own: the meaning of answers (`answer`), requests (`object_store`), the keys themselves (`keys`).
//! Invariants: no request goes to a host that the settings do not name, so no key and no token does. No answer fills
//! the memory: a part ends at its asked length, everything else at a fixed one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http_body_util::{BodyExt, Limited};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, StatusCode};

use crate::answer::{AWAY, Asked, ERROR_BYTES_MAX, PAGE_BYTES_MAX, is_doubting_keys, is_names};
use crate::keys::Doubt;

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

/// Reads a page of names whole. A page for people would look like an empty one.
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
