//! The adapters beside a server that answers by a script.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use afflux_object::{Clock, ObjectError, Objects, PutOutcome};
use afflux_object_store::{AllowedUse, Keys, Options, Store, StoreError};
use afflux_scratch::eventually;
use bytes::Bytes;

use crate::wait;

/// A request as the server read it.
#[derive(Clone, Debug)]
struct Request {
    method: String,
    path: String,
    /// `If-Match` or `If-None-Match`.
    condition: Option<String>,
}

/// The server's next move.
#[derive(Clone, Copy)]
enum Answer {
    Status(u16, &'static str),
    /// A success with this tag.
    Tag(&'static str),
    /// A success without a tag.
    NoTag,
    Body(&'static [u8]),
    /// The connection ends without an answer.
    HangUp,
}
use Answer::{Body, HangUp, NoTag, Status, Tag};

const NOT_IMPLEMENTED: Answer = Status(501, "<Error><Code>NotImplemented</Code><Message>no</Message></Error>");
const CONFLICT: Answer = Status(412, "<Error><Code>PreconditionFailed</Code><Message>no</Message></Error>");

type Script = Arc<Mutex<VecDeque<Answer>>>;

/// A list of no names.
const NO_NAMES: Answer = Body(b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");

/// The probe's removals succeed. Its object for updates has a script of its own: the probe tries both objects at a
/// time. The opening lists names beside it.
#[derive(Clone)]
struct Server {
    endpoint: String,
    script: Script,
    of_updates: Script,
    /// The answer to each list of an opening. Later lists are in the script.
    lists: Arc<Mutex<Option<Answer>>>,
    /// Lists have other names than those that were written.
    renames: bool,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn start(script: &[Answer], of_updates: &[Answer]) -> Self {
        Self::listing(script, of_updates, false)
    }

    fn listing(script: &[Answer], of_updates: &[Answer], renames: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        // A store that refuses all refuses lists, too.
        let refused = script.first().filter(|_| script.iter().all(|answer| matches!(answer, Status(..))));
        let lists = Arc::new(Mutex::new(Some(refused.copied().unwrap_or(NO_NAMES))));
        let [script, of_updates] =
            [script, of_updates].map(|script| Arc::new(Mutex::new(script.iter().copied().collect())));
        let server = Self { endpoint, script, of_updates, lists, renames, requests: Arc::default() };
        let of_thread = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (server, stream) = (of_thread.clone(), stream.unwrap());
                std::thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read(&mut reader) {
            let is_head = request.method == "HEAD";
            let next = |script: &Script| script.lock().unwrap().pop_front().unwrap_or(Status(500, "the script ended"));
            let answer = match (request.method.as_str(), request.path.ends_with("-update")) {
                ("DELETE", _) if request.path.contains("/probe/") => Status(204, ""),
                _ if is_list(&request) && request.path.contains("prefix=home%2Fprobe") => self.names(),
                _ if is_list(&request) => {
                    let of_opening = *self.lists.lock().unwrap();
                    of_opening.unwrap_or_else(|| next(&self.script))
                }
                (_, true) => next(&self.of_updates),
                (_, false) => next(&self.script),
            };
            self.requests.lock().unwrap().push(request);
            let (status, tag, body): (u16, Option<&str>, &[u8]) = match answer {
                HangUp => return,
                Status(status, body) => (status, Some("\"none\""), body.as_bytes()),
                Tag(tag) => (200, Some(tag), b""),
                NoTag => (200, None, b""),
                Body(body) => (200, Some("\"body\""), body),
            };
            let tag = tag.map(|tag| format!("ETag: {tag}\r\n")).unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{tag}Last-Modified: Mon, 01 Jan 2024 00:00:00 \
                 GMT\r\n\r\n",
                body.len()
            );
            let body = if is_head { &[] } else { body };
            if reader.get_mut().write_all(&[head.as_bytes(), body].concat()).is_err() {
                return;
            }
        }
    }

    /// The list of the objects that a probe has made.
    fn names(&self) -> Answer {
        let made = self.heard().into_iter().filter(|request| request.method == "PUT").map(|request| {
            let name = request.path.trim_start_matches("/bucket/").split('?').next().unwrap_or_default().to_owned();
            let name = if self.renames { name.replace('-', "/") } else { name };
            format!(
                "<Contents><Key>{name}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><Size>5</Size></Contents>"
            )
        });
        let names = made.collect::<String>();
        let list = format!("<ListBucketResult><IsTruncated>false</IsTruncated>{names}</ListBucketResult>");
        // The answers of a script are constants.
        Body(Box::leak(list.into_bytes().into_boxed_slice()))
    }

    fn say(&self, answers: impl IntoIterator<Item = Answer>) {
        *self.lists.lock().unwrap() = None;
        *self.script.lock().unwrap() = answers.into_iter().collect();
    }

    fn open(&self) -> Result<Store, StoreError> {
        connect(&self.endpoint)
    }

    fn heard(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until the objects of the probe are removed, which the probe does not.
    fn probed(&self) {
        let removed = || self.heard().iter().filter(|request| request.method == "DELETE").count();
        eventually("the objects of the probe are removed", || removed() == 2);
    }
}

fn is_list(request: &Request) -> bool {
    request.method == "GET" && request.path.starts_with("/bucket?")
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let mut request = Request { method: words.next()?, path: words.next()?, condition: None };
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "if-match" | "if-none-match" => request.condition = Some(value.to_owned()),
            _ => {}
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    Some(request)
}

/// The answers of a store that fulfils its promises.
const CREATED: [Answer; 4] = [Tag("\"1\""), CONFLICT, Tag("\"1\""), Body(b"first")];
const UPDATED: [Answer; 3] = [Tag("\"1\""), Tag("\"2\""), CONFLICT];

fn options(endpoint: &str) -> Options {
    let keys = Keys { id: "id".to_owned(), secret: "secret".to_owned() };
    Options { endpoint: Some(endpoint.to_owned()), keys: Some(keys), ..Options::default() }
}

fn connect(endpoint: &str) -> Result<Store, StoreError> {
    let store = wait(Store::open("s3://bucket/home", &options(endpoint)))?;
    // The script is over then.
    wait(store.access())?;
    Ok(store)
}

fn open(script: &[Answer], of_updates: &[Answer]) -> (Server, Result<Store, StoreError>) {
    let server = Server::start(script, of_updates);
    let store = server.open();
    (server, store)
}

/// Methods and conditions of the requests for one object of the probe.
fn heard<'a>(requests: &'a [Request], kind: &str) -> Vec<(&'a str, Option<&'a str>)> {
    let of_object = requests.iter().filter(|request| request.path.ends_with(kind) && request.method != "DELETE");
    of_object.map(|request| (request.method.as_str(), request.condition.as_deref())).collect()
}

// rule: A probe tries creations and updates side by side.
#[test]
fn a_good_store_may_be_written() {
    let (server, store) = open(&CREATED, &UPDATED);
    let store = store.unwrap();
    assert_eq!(wait(store.access()).unwrap(), AllowedUse::ReadWrite);
    server.probed();
    let requests = server.heard();
    let created = [("PUT", Some("*")), ("PUT", Some("*")), ("HEAD", None), ("GET", None)];
    assert_eq!(heard(&requests, "-create"), created);
    let updated = [("PUT", Some("*")), ("PUT", Some("\"1\"")), ("PUT", Some("\"1\""))];
    assert_eq!(heard(&requests, "-update"), updated);
    let is_known = |request: &Request| is_list(request) || request.path.starts_with("/bucket/home/probe/");
    assert!(requests.iter().all(is_known), "{requests:?}");
}

// rule: A store that breaks a promise is read-only.
#[test]
fn a_store_that_breaks_a_promise_is_read_only() {
    let again = [Tag("\"1\""), Tag("\"2\"")];
    let replaced = [Tag("\"1\""), CONFLICT, Tag("\"1\""), Body(b"second")];
    let stale = [Tag("\"1\""), Tag("\"2\""), Tag("\"3\"")];
    let refused = [Tag("\"1\""), CONFLICT, CONFLICT];
    for (created, updated, word) in [
        (&again[..], &UPDATED[..], "second time"),
        (&replaced, &UPDATED, "has its bytes"),
        (&CREATED, &stale, "stale tag"),
        (&CREATED, &refused, "refuses an update"),
    ] {
        let (_, store) = open(created, updated);
        let store = store.unwrap();
        let AllowedUse::ReadOnly { why } = wait(store.access()).unwrap() else { panic!("writable, although: {word}") };
        assert!(why.contains(word), "{why}");
        let refused = wait(store.records()).map(drop).unwrap_err();
        assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused}");
    }
}

// rule: A store that refuses each conditional request, or gives no tags, is read-only and named so at the first use.
#[test]
fn a_store_that_refuses_conditions_is_read_only_and_the_condition_is_named() {
    const ONCE: Answer = Tag("\"1\"");
    // Without a condition it takes the object.
    let unknown = [NOT_IMPLEMENTED, ONCE];
    let denied = [Status(403, "<Error><Code>AccessDenied</Code></Error>"), ONCE];
    // After a refused creation the store looks for an object of this name.
    let always_there = [CONFLICT, Status(404, "<Error><Code>NoSuchKey</Code></Error>"), ONCE];
    for (created, updated, word) in [
        (&unknown[..], &unknown[..], "refuses a request with If-None-Match (NotImplemented"),
        (&denied, &denied, "refuses a request with If-None-Match (AccessDenied"),
        (&always_there, &always_there, "refuses a request with If-None-Match (PreconditionFailed"),
        (&[NoTag], &[NoTag], "gives an object no tag (ETag)"),
        (&CREATED, &[ONCE, NOT_IMPLEMENTED, ONCE], "refuses a request with If-Match (NotImplemented"),
        (&CREATED, &[Tag("W/\"1\""), CONFLICT, CONFLICT], "its tags are weak"),
    ] {
        let (_, store) = open(created, updated);
        let AllowedUse::ReadOnly { why } = wait(store.unwrap().access()).unwrap() else { panic!("writable: {word}") };
        assert!(why.contains(word), "{why}");
    }
    // Every object is refused: that is no promise about conditions.
    let (_, store) = open(&[NOT_IMPLEMENTED, NOT_IMPLEMENTED, CONFLICT], &[NOT_IMPLEMENTED, NOT_IMPLEMENTED, ONCE]);
    let error = store.map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
}

#[test]
fn a_store_that_lists_other_names_than_were_written_is_read_only() {
    let store = Server::listing(&CREATED, &UPDATED, true).open().unwrap();
    let AllowedUse::ReadOnly { why } = wait(store.access()).unwrap() else { panic!("writable") };
    assert!(why.contains("does not list an object under its name"), "{why}");
}

#[test]
fn the_advice_about_keys_names_the_variables_of_the_cloud() {
    for (url, variable, others) in [
        ("s3://bucket/home", "AWS_ACCESS_KEY_ID", "GOOGLE_"),
        ("gs://bucket/home", "GOOGLE_APPLICATION_CREDENTIALS", "AWS_"),
        ("az://bucket/home", "AZURE_STORAGE_ACCOUNT_KEY", "AWS_"),
    ] {
        let error = StoreError::Denied { url: url.to_owned(), why: "no".to_owned() }.to_string();
        assert!(error.contains(variable) && !error.contains(others), "{error}");
    }
}

#[test]
fn tags_lose_their_quotes_where_the_store_wants_that() {
    let (server, store) = open(&CREATED, &[Tag("\"1\""), CONFLICT, Tag("\"2\""), CONFLICT]);
    assert_eq!(wait(store.unwrap().access()).unwrap(), AllowedUse::ReadWrite);
    let requests = server.heard();
    let conditions = heard(&requests, "-update").into_iter().filter_map(|(_, condition)| condition);
    assert_eq!(conditions.collect::<Vec<_>>(), ["*", "\"1\"", "1", "1"]);
}

/// A request whose answer was lost is repeated, and finds its own effect.
#[test]
fn a_lost_answer_changes_no_result() {
    let created = [HangUp, CONFLICT, Tag("\"1\""), CONFLICT, Tag("\"1\""), Body(b"first")];
    let updated =
        [[HangUp, CONFLICT, Tag("\"1\""), Tag("\"1\"")].as_slice(), &[HangUp, CONFLICT, Body(b"third"), CONFLICT]];
    let (server, store) = open(&created, &updated.concat());
    assert_eq!(wait(store.unwrap().access()).unwrap(), AllowedUse::ReadWrite);
    let requests = server.heard();
    let conditions =
        |kind| heard(&requests, kind).into_iter().filter_map(|(_, condition)| condition).collect::<Vec<_>>();
    assert_eq!(conditions("-create"), ["*", "*", "*"]);
    assert_eq!(conditions("-update"), ["*", "*", "\"1\"", "\"1\"", "\"1\""]);
}

#[test]
fn errors_of_an_opening_have_advice() {
    let refused = |status, body| vec![Status(status, body); 8];
    for (script, word) in [
        (refused(403, "<Error><Code>InvalidAccessKeyId</Code><Message>no</Message></Error>"), "AWS_ACCESS_KEY_ID"),
        (refused(403, "<Error><Code>SignatureDoesNotMatch</Code></Error>"), "AWS_SECRET_ACCESS_KEY"),
        (refused(404, "<Error><Code>NoSuchBucket</Code></Error>"), "there is no bucket bucket"),
        (refused(400, "<Error><Code>AuthorizationHeaderMalformed</Code></Error>"), "set AWS_REGION"),
        (refused(301, ""), "set AWS_REGION"),
        (refused(503, "<Error><Code>SlowDown</Code></Error>"), "SlowDown"),
        (refused(418, "<Error><Code>Teapot</Code></Error>"), "Teapot"),
    ] {
        let server = Server::start(&script, &script);
        let options = options(&server.endpoint);
        let (opened, listed) = std::thread::scope(|threads| {
            let listing = threads.spawn(|| wait(Store::volumes("s3://bucket/home", &options)).unwrap_err());
            (server.open().map(drop).unwrap_err(), listing.join().unwrap())
        });
        let kind = std::mem::discriminant;
        assert_eq!(kind(&opened), kind(&listed), "each command says the same: {opened}; {listed}");
        let error = opened.to_string();
        assert!(error.starts_with("s3://bucket/home: ") && error.contains(word), "{word}: {error}");
        assert!(!error.contains("no answer"), "the store has answered: {error}");
    }
    // Nobody listens there.
    let error = connect("http://127.0.0.1:1").map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
}

#[test]
fn a_store_that_speaks_another_protocol_is_unreachable() {
    // The cryptography of the connection is there, and its failure is no panic.
    let server = Server::start(&[], &[]);
    let error = connect(&server.endpoint.replace("http:", "https:")).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
}

#[test]
fn trouble_is_told_until_the_store_answers() {
    let (server, store) = open(&CREATED, &UPDATED);
    let (store, objects) = {
        let store = store.unwrap();
        (store.clone(), store.objects())
    };
    server.probed();
    eventually("the answers to the probe came", || store.waits().requests == 0);
    let create = |answer: Answer| {
        server.say([answer]);
        drop(wait(objects.create("data/00/x", Bytes::from_static(b"bytes"))));
        store.trouble()
    };
    assert_eq!(create(Tag("\"1\"")), None);
    let clock = store.clock();
    let before_ns = clock.now_ns();
    let first = create(Status(503, "<Error><Code>SlowDown</Code></Error>")).unwrap();
    assert_eq!(first.why, "SlowDown");
    let second = create(Status(500, "<Error><Code>InternalError</Code></Error>")).unwrap();
    assert_eq!((second.since_ns, second.why.as_str()), (first.since_ns, "InternalError"));
    // A failure is no answer.
    let failing_ns = clock.now_ns() - before_ns;
    assert!(store.silent_ns() >= failing_ns);
    let before_ns = clock.now_ns();
    assert_eq!(create(Tag("\"1\"")), None);
    let silent_ns = store.silent_ns();
    assert!(silent_ns <= clock.now_ns() - before_ns);
}

// rule: One layer repeats a request.
#[test]
fn each_failure_has_its_meaning_and_is_sent_once() {
    let (server, store) = open(&CREATED, &UPDATED);
    let objects = store.unwrap().objects();
    server.probed();
    let create = |answers: Vec<Answer>| {
        let before = server.heard().len();
        server.say(answers);
        let result = wait(objects.create("data/00/x", Bytes::from_static(b"bytes")));
        (result, server.heard().len() - before)
    };
    let error = "<Error><Code>InternalError</Code></Error>";
    assert_eq!(create(vec![Tag("\"1\"")]), (Ok(PutOutcome::New), 1));
    assert_eq!(create(vec![Status(503, "<Error><Code>SlowDown</Code></Error>")]), (Err(ObjectError::Busy), 1));
    assert_eq!(create(vec![Status(429, "")]), (Err(ObjectError::Busy), 1));
    assert_eq!(create(vec![Status(500, error)]), (Err(ObjectError::Unknown), 1));
    assert_eq!(create(vec![Status(504, "")]), (Err(ObjectError::Unknown), 1));
    assert_eq!(create(vec![HangUp]), (Err(ObjectError::Unknown), 1));
    // An existing object of this name is read once. After a collision there is none.
    assert_eq!(create(vec![CONFLICT, Tag("\"1\"")]), (Ok(PutOutcome::Present), 2));
    assert_eq!(create(vec![Status(409, error), Tag("\"1\"")]), (Ok(PutOutcome::Present), 2));
    assert_eq!(create(vec![Status(409, error), Status(404, "")]).1, 2);
    assert!(matches!(
        create(vec![Status(409, error), Status(404, "")]).0,
        Err(ObjectError::Busy | ObjectError::Unknown)
    ));
    let denied = "<Error><Code>AccessDenied</Code><Message>Not you</Message></Error>";
    // Keys may be renewed: the layer above asks again for a while.
    assert_eq!(create(vec![Status(403, denied)]), (Err(ObjectError::Denied), 1));
    assert_eq!(create(vec![Status(301, "")]), (Err(ObjectError::Denied), 1));
    assert_eq!(create(vec![Status(404, "<Error><Code>NoSuchKey</Code></Error>")]), (Err(ObjectError::Busy), 1));
    assert_eq!(create(vec![Status(404, "<Error><Code>NoSuchBucket</Code></Error>")]), (Err(ObjectError::Busy), 1));
    let full = create(vec![Status(507, "<Error><Code>XMinioStorageFull</Code></Error>")]);
    assert_eq!(full, (Err(ObjectError::Full("XMinioStorageFull".to_owned())), 1));
    server.say([Status(404, "<Error><Code>NoSuchKey</Code></Error>")]);
    assert_eq!(wait(objects.get("data/00/x", 0..4)), Err(ObjectError::Missing));
    server.say([Status(503, "")]);
    assert_eq!(wait(objects.get("data/00/x", 0..4)), Err(ObjectError::Busy));
    server.say([Status(503, "")]);
    assert_eq!(wait(objects.list("data/")), Err(ObjectError::Busy));
    server.say([Status(404, "")]);
    assert_eq!(wait(objects.delete("data/00/x")), Ok(()));
    server.say([Status(403, denied)]);
    assert_eq!(wait(objects.delete("data/00/x")), Err(ObjectError::Denied));
    server.say([Status(416, "<Error><Code>InvalidRange</Code></Error>")]);
    assert_eq!(wait(objects.get("data/00/x", 0..4)), Err(ObjectError::Unknown), "a proxy may say that");
}
