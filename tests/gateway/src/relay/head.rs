//! The head of a request.
//!
//! Owns: the kind of the request, the length of its body, the answer to a refused one.
//! Does not own: all other headers.
//! Invariants: a body without a length is refused, since its end could not be found.

use std::io;

/// The kinds that a store has prices for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Put,
    Get,
    List,
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) body_bytes: u64,
    /// Its answer has no body.
    is_head: bool,
}

/// The body of an answer to a refused request, as S3 documents it.
const SLOW_DOWN: &str = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";

impl Head {
    /// Reads a whole head, to its empty line.
    pub(super) fn parse(head: &[u8]) -> io::Result<Self> {
        let text = String::from_utf8_lossy(head);
        let (mut lines, mut body_bytes) = (text.lines(), 0);
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        for line in lines {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            if name.eq_ignore_ascii_case("content-length") {
                let bad = |_| io::Error::other(format!("a body of {value} bytes"));
                body_bytes = value.trim().parse().map_err(bad)?;
            }
            if name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(io::Error::other("a body in chunks"));
            }
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let is_bucket = path.trim_matches('/').split_once('/').is_none();
        let kind = match method {
            "GET" | "HEAD" if is_bucket || query.contains("list-type=") => Kind::List,
            "GET" | "HEAD" => Kind::Get,
            "DELETE" => Kind::Delete,
            "PUT" | "POST" => Kind::Put,
            other => return Err(io::Error::other(format!("the method {other}"))),
        };
        Ok(Self { kind, body_bytes, is_head: method == "HEAD" })
    }

    /// The answer of a store that has too many requests.
    pub(super) fn refusal(self) -> Vec<u8> {
        let body = if self.is_head { "" } else { SLOW_DOWN };
        let length = SLOW_DOWN.len();
        let head = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/xml";
        format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
    }
}
