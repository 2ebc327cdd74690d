//! One request and its answer.
//!
//! Owns: which request is answered, the head of the answer.
//! Does not own: the bytes' way in and out (`listener`).
//! Invariants: a pure function of the bytes so far. What is longer than [`HEAD_BYTES_MAX`], or makes no sense, is
//! answered as such at once.

/// Longest head of a request, line and headers.
pub(crate) const HEAD_BYTES_MAX: usize = 8 << 10;

/// What has been asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// The rest of the head is still to come.
    More,
    /// The figures; `head_only`: their head alone.
    Metrics {
        /// Without the figures themselves.
        head_only: bool,
    },
    /// Where the figures are.
    Index,
    /// Something that is not here, or no such request.
    Refused(Refusal),
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    NotHttp,
    NoSuchPlace,
    NoSuchMethod,
    TooLong,
}

/// What the bytes so far ask for.
pub(crate) fn asked(bytes: &[u8]) -> Asked {
    let head = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    let line_end = head.iter().position(|byte| *byte == b'\n');
    let Some(line_end) = line_end else {
        return if bytes.len() >= HEAD_BYTES_MAX { Asked::Refused(Refusal::TooLong) } else { Asked::More };
    };
    let first = first_line(&head[..line_end]);
    if first == Asked::Refused(Refusal::NotHttp) {
        return first;
    }
    let ends = |window: &[u8]| window == b"\n\r\n" || window.starts_with(b"\n\n");
    let has_ended = head[line_end..].windows(3).any(ends) || head.ends_with(b"\n\n");
    match has_ended {
        true => first,
        false if bytes.len() >= HEAD_BYTES_MAX => Asked::Refused(Refusal::TooLong),
        false => Asked::More,
    }
}

fn first_line(line: &[u8]) -> Asked {
    let not_http = Asked::Refused(Refusal::NotHttp);
    let Ok(line) = str::from_utf8(line) else { return not_http };
    let parts: Vec<&str> = line.trim_end_matches('\r').split(' ').collect();
    let [method, target, version] = parts[..] else { return not_http };
    if !version.starts_with("HTTP/1.") {
        return not_http;
    }
    let place = target.split('?').next().unwrap_or_default();
    match (method, place) {
        ("GET" | "HEAD", "/metrics") => Asked::Metrics { head_only: method == "HEAD" },
        ("GET" | "HEAD", "/") => Asked::Index,
        ("GET" | "HEAD", _) => Asked::Refused(Refusal::NoSuchPlace),
        _ => Asked::Refused(Refusal::NoSuchMethod),
    }
}

/// The whole answer. `figures` are asked for only if they are wanted.
pub(crate) fn answer(asked: Asked, figures: impl FnOnce() -> String) -> Vec<u8> {
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match asked {
        Asked::Metrics { .. } => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", figures()),
        Asked::Index => ("200 OK", plain, "Afflux: figures for Prometheus are at /metrics.\n".to_owned()),
        Asked::More | Asked::Refused(Refusal::NotHttp) => ("400 Bad Request", plain, "not HTTP/1\n".to_owned()),
        Asked::Refused(Refusal::NoSuchPlace) => ("404 Not Found", plain, "figures are at /metrics\n".to_owned()),
        Asked::Refused(Refusal::NoSuchMethod) => {
            ("405 Method Not Allowed\r\nAllow: GET, HEAD", plain, "GET /metrics\n".to_owned())
        }
        Asked::Refused(Refusal::TooLong) => {
            ("431 Request Header Fields Too Large", plain, format!("a head has at most {HEAD_BYTES_MAX} bytes\n"))
        }
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
        X-Content-Type-Options: nosniff\r\n\r\n"
    );
    let mut answer = head.into_bytes();
    if asked != (Asked::Metrics { head_only: true }) {
        answer.extend_from_slice(body.as_bytes());
    }
    answer
}

#[cfg(test)]
mod tests;
