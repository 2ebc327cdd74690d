//! A store that speaks S3, in the memory of the test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The behaviour of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    Good,
    /// Conditions of requests have no effect.
    NoConditions,
    /// Each PUT with a condition gets this status.
    RefusesConditions(u16),
    /// It does not know the keys.
    Denied,
    /// There is no bucket.
    NoBucket,
    /// It is too busy for anything.
    Away,
    /// It is too busy for the log of records.
    LogAway,
    /// It lists, and gives no object.
    RefusesReads,
    /// It gives no object of data.
    RefusesData,
    /// It gives objects and lists, and answers each PUT with this status.
    RefusesPuts(u16),
    /// It answers each DELETE with this status.
    RefusesDeletes(u16),
    RefusesChanges(u16),
    /// It knows these keys alone.
    WantsKey(&'static str),
}

#[derive(Debug)]
struct State {
    mood: Mood,
    objects: BTreeMap<String, Vec<u8>>,
    /// Counts changes; it is the tag of each object, too.
    tags: BTreeMap<String, u64>,
    changes: u64,
}

/// The store. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct FakeStore {
    pub(crate) endpoint: String,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Answer {
    status: u16,
    tag: u64,
    /// The header of a part.
    range: String,
    body: Vec<u8>,
}

impl Answer {
    fn error(status: u16, code: &str) -> Self {
        let body = format!("<Error><Code>{code}</Code><Message>said the store</Message></Error>").into_bytes();
        Self::new(status, 0, body)
    }

    fn new(status: u16, tag: u64, body: Vec<u8>) -> Self {
        Self { status, tag, range: String::new(), body }
    }
}

impl FakeStore {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let state = State { mood: Mood::Good, objects: BTreeMap::new(), tags: BTreeMap::new(), changes: 0 };
        let store = Self { endpoint, state: Arc::new(Mutex::new(state)) };
        let of_thread = store.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (store, stream) = (of_thread.clone(), stream.unwrap());
                std::thread::spawn(move || store.serve(stream));
            }
        });
        store
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.state.lock().unwrap().mood = mood;
    }

    /// The count of changes of any object.
    pub(crate) fn changes(&self) -> u64 {
        self.state.lock().unwrap().changes
    }

    /// Changes the objects behind the back of their user.
    pub(crate) fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) {
        change(&mut self.state.lock().unwrap().objects);
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read(&mut reader) {
            let is_head = request.method == "HEAD";
            let Answer { status, tag, range, body } = self.answer(request);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nETag: \"{tag}\"\r\nLast-Modified: Mon, 01 Jan 2024 \
                 00:00:00 GMT\r\n{range}\r\n"
            );
            let body = if is_head { Vec::new() } else { body };
            if reader.get_mut().write_all(&[head.into_bytes(), body].concat()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: Request) -> Answer {
        let mut state = self.state.lock().unwrap();
        match state.mood {
            Mood::Denied => return Answer::error(403, "InvalidAccessKeyId"),
            Mood::NoBucket => return Answer::error(404, "NoSuchBucket"),
            Mood::Away => return Answer::error(503, "SlowDown"),
            Mood::WantsKey(key) => {
                let signed = request.headers.get("authorization").cloned().unwrap_or_default();
                if !signed.contains(&format!("Credential={key}/")) {
                    return Answer::error(403, "InvalidAccessKeyId");
                }
            }
            Mood::LogAway if request.method == "PUT" && request.path.contains("/wal/") => {
                return Answer::error(503, "SlowDown");
            }
            Mood::RefusesConditions(status)
                if request.method == "PUT"
                    && ["if-match", "if-none-match"].iter().any(|name| request.headers.contains_key(*name)) =>
            {
                return Answer::error(status, refusal(status));
            }
            Mood::RefusesPuts(status) | Mood::RefusesChanges(status) if request.method == "PUT" => {
                return Answer::error(status, refusal(status));
            }
            Mood::RefusesDeletes(status) | Mood::RefusesChanges(status) if request.method == "DELETE" => {
                return Answer::error(status, refusal(status));
            }
            Mood::RefusesReads if request.method == "GET" && !request.query.contains_key("list-type") => {
                return Answer::error(403, "AccessDenied");
            }
            Mood::RefusesData if request.method == "GET" && request.path.contains("/data/") => {
                return Answer::error(403, "AccessDenied");
            }
            _ => {}
        }
        let Some((_, key)) = request.path.trim_start_matches('/').split_once('/').filter(|(_, key)| !key.is_empty())
        else {
            return list(&state.objects, &request.query);
        };
        let tag = state.tags.get(key).copied();
        match request.method.as_str() {
            "PUT" => {
                let (none, matching) = (request.headers.get("if-none-match"), request.headers.get("if-match"));
                let is_refused = (none.is_some() && tag.is_some())
                    || matching.is_some_and(|wanted| tag.is_none_or(|tag| *wanted != format!("\"{tag}\"")));
                if is_refused && state.mood != Mood::NoConditions {
                    return Answer::error(412, "PreconditionFailed");
                }
                state.changes += 1;
                let tag = state.changes;
                state.tags.insert(key.to_owned(), tag);
                state.objects.insert(key.to_owned(), request.body);
                Answer::new(200, tag, Vec::new())
            }
            "DELETE" => {
                state.changes += 1;
                state.tags.remove(key);
                state.objects.remove(key);
                Answer::new(204, 0, Vec::new())
            }
            _ => match state.objects.get(key) {
                Some(object) => part(object, tag.unwrap_or(0), request.headers.get("range")),
                None => Answer::error(404, "NoSuchKey"),
            },
        }
    }
}

/// A store's word for a status.
fn refusal(status: u16) -> &'static str {
    match status {
        403 => "AccessDenied",
        405 => "MethodNotAllowed",
        409 => "OperationAborted",
        501 => "NotImplemented",
        503 => "SlowDown",
        507 => "InsufficientCapacity",
        _ => "Refused",
    }
}

/// An object, or a range of it.
fn part(object: &[u8], tag: u64, range: Option<&String>) -> Answer {
    let ends = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let Some((first, last)) = ends else { return Answer::new(200, tag, object.to_vec()) };
    let (from, to) = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(from), Ok(last)) => (from, object.len().min(last + 1)),
        (Ok(from), Err(_)) => (from, object.len()),
        (Err(_), last) => (object.len().saturating_sub(last.unwrap_or(0)), object.len()),
    };
    match object.get(from..to).filter(|part| !part.is_empty()) {
        Some(part) => {
            let range = format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, object.len());
            Answer { status: 206, tag, range, body: part.to_vec() }
        }
        None => Answer::error(416, "InvalidRange"),
    }
}

fn list(objects: &BTreeMap<String, Vec<u8>>, query: &BTreeMap<String, String>) -> Answer {
    let text = |name: &str| query.get(name).cloned().unwrap_or_default();
    let (prefix, delimiter, after) = (text("prefix"), text("delimiter"), text("start-after"));
    let mut xml = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
    let mut folders = std::collections::BTreeSet::new();
    for (key, object) in objects.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after) {
        let rest = &key[prefix.len()..];
        match rest.find('/').filter(|_| !delimiter.is_empty()) {
            Some(end) => drop(folders.insert(format!("{prefix}{}", &rest[..=end]))),
            None => {
                let size = object.len();
                write!(
                    xml,
                    "<Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>\"x\"</ETag>\
                     <Size>{size}</Size></Contents>"
                )
                .unwrap();
            }
        }
    }
    folders.iter().for_each(|it| write!(xml, "<CommonPrefixes><Prefix>{it}</Prefix></CommonPrefixes>").unwrap());
    xml.push_str("</ListBucketResult>");
    Answer::new(200, 0, xml.into_bytes())
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    // A request to a proxy names the server, too.
    let target =
        target.strip_prefix("http://").map_or(target, |behind| behind.find('/').map_or("/", |at| &behind[at..]));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = pairs.map(|(name, value)| (name.to_owned(), decoded(value))).collect();
    let (path, mut headers) = (decoded(path), BTreeMap::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, query, headers, body })
}

/// The text behind its escapes, which are of one byte each.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        decoded.push(char::from(u8::from_str_radix(&part[..2], 16).unwrap()));
        decoded.push_str(&part[2..]);
    }
    decoded
}
