//! Options of an opening, and the address of a store's server among them.
//!
//! Owns: the list of options; which texts are an address, whether it has TLS.
//! Does not own: variables and files, which give the rest (`s3`, `connect`).
//! Invariants: a secret is never printed. No library below meets an address that it cannot take.

use std::fmt;

use object_store::ClientOptions;
use url::Url;

use crate::waits::RequestWaits;

/// Options of an opening.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The address of a store of one's own, such as `http://store:9000`.
    pub endpoint: Option<String>,
    /// Keys for `s3://`, or an account with its key for `az://`. They win over variables and files.
    pub keys: Option<Keys>,
    /// Called with the requests that wait, each few seconds until [`Store::serve`](crate::Store::serve) is called. A
    /// server has other means to report them from then on.
    pub told: Option<fn(&str, &RequestWaits)>,
}

/// A pair of keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// The public half.
    pub id: String,
    /// The secret half.
    pub secret: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Refuses a text that is no address of a server. The libraries below take any text, and fail at the first request.
///
/// # Errors
/// With the `name` of the setting. A secret in the text is omitted.
pub fn check_endpoint(name: &str, endpoint: &str) -> Result<(), String> {
    let parsed = Url::parse(endpoint).ok();
    let is_server = |parsed: &Url| {
        let is_web = ["http", "https"].contains(&parsed.scheme()) && parsed.has_host();
        let has_keys = !parsed.username().is_empty() || parsed.password().is_some();
        is_web && !has_keys && parsed.query().is_none() && parsed.fragment().is_none()
    };
    let is_plain_text = !endpoint.chars().any(|it| it.is_control() || it.is_whitespace());
    if is_plain_text && endpoint.contains("://") && parsed.is_some_and(|parsed| is_server(&parsed)) {
        return Ok(());
    }
    // A part before the host may be a secret.
    let shown = endpoint.rsplit_once('@').map_or_else(|| endpoint.to_owned(), |(_, host)| format!("…@{host}"));
    Err(format!(
        "{name}: '{}' is no address of a server; write http:// or https://, a host, and perhaps a port",
        shown.escape_debug()
    ))
}

/// Whether requests go without TLS.
pub(crate) fn is_plain(endpoint: Option<&str>) -> bool {
    endpoint.and_then(|endpoint| endpoint.get(..7)).is_some_and(|start| start.eq_ignore_ascii_case("http://"))
}

pub(crate) fn client(endpoint: Option<&str>) -> ClientOptions {
    ClientOptions::new().with_allow_http(is_plain(endpoint))
}
