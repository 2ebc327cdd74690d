//! One request and its answer.
//!
//! Owns: the decision whether a request is answered, the head of the answer.
//! Does not own: the bytes' way in and out (`listener`).
//! Invariants: a function of the bytes so far and of this machine's name. A head longer than [`HEAD_BYTES_MAX`], or one
//! that makes no sense, is answered with an error at once.

use std::net::IpAddr;

/// Longest head of a request, line and headers.
pub(crate) const HEAD_BYTES_MAX: usize = 8 << 10;

/// The kinds of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScrapeRequest {
    /// The head is still incomplete.
    More,
    Metrics {
        /// Whether only the head of the answer is wanted.
        head_only: bool,
    },
    /// The page that says where the figures are.
    Index,
    /// A missing page, or an invalid request.
    Refused(RequestRefusal),
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestRefusal {
    NotHttp,
    NoSuchPath,
    NoSuchMethod,
    TooLong,
    OtherHost,
}

/// The request in the bytes so far.
pub(crate) fn parse(bytes: &[u8]) -> ScrapeRequest {
    let head = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    let line_end = head.iter().position(|byte| *byte == b'\n');
    let Some(line_end) = line_end else {
        return if bytes.len() >= HEAD_BYTES_MAX {
            ScrapeRequest::Refused(RequestRefusal::TooLong)
        } else {
            ScrapeRequest::More
        };
    };
    let first = first_line(&head[..line_end]);
    if first == ScrapeRequest::Refused(RequestRefusal::NotHttp) {
        return first;
    }
    let ends = |window: &[u8]| window == b"\n\r\n" || window.starts_with(b"\n\n");
    let has_ended = head[line_end..].windows(3).any(ends) || head.ends_with(b"\n\n");
    match has_ended {
        true if host(&head[line_end..]).is_some_and(|host| !is_this_machine(host)) => {
            ScrapeRequest::Refused(RequestRefusal::OtherHost)
        }
        true => first,
        false if bytes.len() >= HEAD_BYTES_MAX => ScrapeRequest::Refused(RequestRefusal::TooLong),
        false => ScrapeRequest::More,
    }
}

/// The host that the headers name, without its port.
fn host(headers: &[u8]) -> Option<&[u8]> {
    let mut lines = headers.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| {
        let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
        name.eq_ignore_ascii_case(b"host").then_some(value[1..].trim_ascii())
    })?;
    let is_port = |rest: &[u8]| rest.iter().all(u8::is_ascii_digit);
    let colon = value.iter().rposition(|byte| *byte == b':').filter(|at| is_port(&value[at + 1..]));
    Some(colon.map_or(value, |at| &value[..at]))
}

/// Whether a name is an address, or this machine's own name. A page in a browser on this machine could make any other
/// name lead here, and would read the figures as its own.
fn is_this_machine(host: &[u8]) -> bool {
    let Ok(host) = str::from_utf8(host) else { return false };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if bare.parse::<IpAddr>().is_ok() || host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let own = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let (host, own) = (host.trim_end_matches('.').to_lowercase(), own.trim_end_matches('.'));
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    // With its domain, or without, as a scraper in the same network names it.
    !own.is_empty() && (host == own || host == first(own) || !own.contains('.') && first(&host) == own)
}

fn first_line(line: &[u8]) -> ScrapeRequest {
    let not_http = ScrapeRequest::Refused(RequestRefusal::NotHttp);
    let Ok(line) = str::from_utf8(line) else { return not_http };
    let parts: Vec<&str> = line.trim_end_matches('\r').split(' ').collect();
    let [method, target, version] = parts[..] else { return not_http };
    if !version.starts_with("HTTP/1.") {
        return not_http;
    }
    let place = target.split('?').next().unwrap_or_default();
    match (method, place) {
        ("GET" | "HEAD", "/metrics") => ScrapeRequest::Metrics { head_only: method == "HEAD" },
        ("GET" | "HEAD", "/") => ScrapeRequest::Index,
        ("GET" | "HEAD", _) => ScrapeRequest::Refused(RequestRefusal::NoSuchPath),
        _ => ScrapeRequest::Refused(RequestRefusal::NoSuchMethod),
    }
}

/// The whole answer. `figures` is called only if they are wanted.
pub(crate) fn answer(asked: ScrapeRequest, figures: impl FnOnce() -> String) -> Vec<u8> {
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match asked {
        ScrapeRequest::Metrics { .. } => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", figures()),
        ScrapeRequest::Index => ("200 OK", plain, "Afflux: figures for Prometheus are at /metrics.\n".to_owned()),
        ScrapeRequest::More | ScrapeRequest::Refused(RequestRefusal::NotHttp) => {
            ("400 Bad Request", plain, "not HTTP/1\n".to_owned())
        }
        ScrapeRequest::Refused(RequestRefusal::NoSuchPath) => {
            ("404 Not Found", plain, "figures are at /metrics\n".to_owned())
        }
        ScrapeRequest::Refused(RequestRefusal::NoSuchMethod) => {
            ("405 Method Not Allowed\r\nAllow: GET, HEAD", plain, "GET /metrics\n".to_owned())
        }
        ScrapeRequest::Refused(RequestRefusal::OtherHost) => {
            let body = "this is not the host that was asked for: ask by its address or its own name\n";
            ("421 Misdirected Request", plain, body.to_owned())
        }
        ScrapeRequest::Refused(RequestRefusal::TooLong) => {
            ("431 Request Header Fields Too Large", plain, format!("a head has at most {HEAD_BYTES_MAX} bytes\n"))
        }
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
        X-Content-Type-Options: nosniff\r\n\r\n"
    );
    let mut answer = head.into_bytes();
    if asked != (ScrapeRequest::Metrics { head_only: true }) {
        answer.extend_from_slice(body.as_bytes());
    }
    answer
}

#[cfg(test)]
mod tests;
