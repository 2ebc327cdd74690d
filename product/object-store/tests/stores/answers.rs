//! Answers that a store gives for a while: refusals, absences, pages of a proxy, broken bodies.
//!
//! Each kind of request meets each answer, through HTTP, and goes on when the store answers again. `docs/use/stores.md`
//! has the table.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use afflux_gateway::{KEY, Relay, Reply, SECRET};
use afflux_object::{DatedObjects, Fresh, ObjectVolume, Objects, RecordDatabase, VolumeHeader, VolumeLimits};
use afflux_object_store::{Keys, Options, Store, StoreClock, StoreObjects, StoreRecords};
use afflux_scratch::eventually;
use bytes::Bytes;

use crate::wait;

type Volume = ObjectVolume<StoreObjects, StoreRecords, StoreClock>;

/// A request, by its method and its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    PutData,
    PutLog,
    PutManifest,
    GetData,
    GetManifest,
    ListManifests,
    ListData,
    DeleteHolder,
}

use Request::{DeleteHolder, GetData, GetManifest, ListData, ListManifests, PutData, PutLog, PutManifest};

const REQUESTS: [Request; 8] =
    [PutData, PutLog, PutManifest, GetData, GetManifest, ListManifests, ListData, DeleteHolder];

impl Request {
    fn is(self, method: &str, target: &str) -> bool {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let is_list = query.contains("list-type=");
        match self {
            PutData => method == "PUT" && path.contains("/data/"),
            PutLog => method == "PUT" && path.contains("/wal/"),
            PutManifest => method == "PUT" && path.contains("/manifest/"),
            GetData => method == "GET" && path.contains("/data/"),
            GetManifest => method == "GET" && path.contains("/manifest/"),
            ListManifests => is_list && query.contains("manifest"),
            ListData => is_list && query.contains("data"),
            DeleteHolder => method == "DELETE" && path.ends_with("/holder"),
        }
    }

    /// A call that sends the request.
    fn send(self, store: &Store, volume: &Volume, turn: u64) {
        let write = |ino: u64, bytes: usize| {
            volume.write(ino, 0, Bytes::from(vec![turn as u8; bytes])).unwrap();
            wait(volume.commit(ino)).unwrap();
        };
        match self {
            PutData => write(2, 300_000),
            PutLog => write(3, 100),
            PutManifest => {
                write(3, 100);
                wait(volume.records().manifest()).unwrap();
            }
            GetData => assert_eq!(wait(volume.read(1, 0, 4)).unwrap(), [7; 4]),
            GetManifest | ListManifests => drop(wait(store.snapshots()).unwrap()),
            ListData => drop(wait(volume.sweep_orphans()).unwrap()),
            DeleteHolder => {
                wait(store.objects().put("holder", Bytes::from_static(b"1 here\n"))).unwrap();
                while wait(store.objects().delete("holder")).is_err() {
                    thread::yield_now();
                }
            }
        }
    }
}

/// The effect of the store on a request that has such an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The request is sent again until it succeeds.
    Again,
    /// The caller takes it for success.
    Done,
    /// It would be believed: nothing tells it from the store's own success.
    Believed,
}

/// An answer with its name.
struct Fault {
    name: &'static str,
    reply: Reply,
    way: fn(Request) -> Way,
}

const XML: &str = "Content-Type: application/xml";
const PAGE: &str = "<!doctype html><html><body>Sorry</body></html>";
/// Every header that a store sends with an object.
const OBJECT: &str = "ETag: \"x\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT";

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n\r\n{body}", body.len()).into_bytes()
}

fn error(status: &str, code: &str) -> Reply {
    Reply::Whole(answer(status, XML, &format!("<Error><Code>{code}</Code><Message>no</Message></Error>")))
}

fn again(_: Request) -> Way {
    Way::Again
}

/// An absent object ends a removal.
fn absent(request: Request) -> Way {
    if request == DeleteHolder { Way::Done } else { Way::Again }
}

/// A change has nothing but its status and its tag.
fn success(request: Request) -> Way {
    match request {
        PutData | PutLog | PutManifest | DeleteHolder => Way::Believed,
        GetData | GetManifest | ListManifests | ListData => Way::Again,
    }
}

fn faults(elsewhere: SocketAddr) -> Vec<Fault> {
    let fault = |name, reply, way| Fault { name, reply, way };
    let redirect = |status| answer(status, &format!("Location: http://{elsewhere}/x"), "");
    let cut = format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n{OBJECT}\r\n\r\n<ListBucketResult>").into_bytes();
    let page = |status| Reply::Whole(answer(status, "Content-Type: text/html", PAGE));
    vec![
        fault("404 NoSuchKey", error("404 X", "NoSuchKey"), absent),
        fault("404 without words", Reply::Whole(answer("404 X", XML, "")), absent),
        fault("404 NoSuchBucket", error("404 X", "NoSuchBucket"), again),
        fault("404 of a proxy", page("404 X"), again),
        fault("403", error("403 X", "AccessDenied"), again),
        fault("403 of a clock", error("403 X", "RequestTimeTooSkewed"), again),
        fault("401", error("401 X", "Unauthorized"), again),
        fault("400 ExpiredToken", error("400 X", "ExpiredToken"), again),
        fault("400", error("400 X", "InvalidRequest"), again),
        fault("301", Reply::Whole(redirect("301 X")), again),
        fault("302", Reply::Whole(redirect("302 X")), again),
        fault("307", Reply::Whole(redirect("307 X")), again),
        fault("308", Reply::Whole(redirect("308 X")), again),
        fault("429", error("429 X", "TooManyRequests"), again),
        fault("500", error("500 X", "InternalError"), again),
        fault("502 of a proxy", page("502 X"), again),
        fault("503", error("503 X", "SlowDown"), again),
        fault("200, empty", Reply::Whole(answer("200 OK", OBJECT, "")), success),
        fault("200, a page", Reply::Whole(answer("200 OK", OBJECT, PAGE)), success),
        fault(
            "200, gzip",
            Reply::Whole(answer("200 OK", &format!("{OBJECT}\r\nContent-Encoding: gzip"), "x")),
            success,
        ),
        fault("200, cut", Reply::Last(cut), success),
        fault("a hang-up", Reply::Last(Vec::new()), again),
    ]
}

/// The faults of one relay.
#[derive(Default)]
struct Faulty {
    reply: Mutex<Option<Reply>>,
    hits: AtomicU64,
}

fn open(endpoint: String, name: &str) -> Store {
    let keys = Keys { id: KEY.to_owned(), secret: SECRET.to_owned() };
    let options = Options { endpoint: Some(endpoint), keys: Some(keys), ..Options::default() };
    wait(Store::open(&format!("s3://bucket/{name}"), &options)).unwrap()
}

fn volume(store: &Store) -> Volume {
    let header = VolumeHeader { id: [1; 16], handle_key: [2; 16] };
    let fresh = Fresh { header, verifier: 1, is_alone: true };
    let records = wait(store.records()).unwrap();
    wait(ObjectVolume::open(store.objects(), records, store.clock(), VolumeLimits::default(), fresh)).unwrap()
}

/// A volume behind a relay that answers one kind of request instead of the store.
fn behind(target: SocketAddr, request: Request) -> (Arc<Faulty>, Store, Volume) {
    let faulty = Arc::<Faulty>::default();
    let of_relay = Arc::clone(&faulty);
    let rule = move |method: &str, target: &str| {
        let reply = of_relay.reply.lock().unwrap().clone().filter(|_| request.is(method, target))?;
        of_relay.hits.fetch_add(1, Ordering::Relaxed);
        Some(reply)
    };
    let relay = Relay::answering(target, Arc::new(rule)).unwrap();
    let store = open(relay.endpoint(), &format!("answers-{request:?}"));
    let volume = volume(&store);
    store.serve();
    volume.write(1, 0, Bytes::from(vec![7; 300_000])).unwrap();
    wait(volume.commit(1)).unwrap();
    (faulty, store, volume)
}

fn meets(target: SocketAddr, faults: Vec<Fault>, request: Request) {
    let (faulty, store, volume) = behind(target, request);
    for (turn, Fault { name, reply, way }) in (1..).zip(faults) {
        let way = way(request);
        if way == Way::Believed {
            continue;
        }
        faulty.hits.store(0, Ordering::Relaxed);
        *faulty.reply.lock().unwrap() = Some(reply);
        thread::scope(|threads| {
            let sending = threads.spawn(|| request.send(&store, &volume, turn));
            let hits = || faulty.hits.load(Ordering::Relaxed);
            match way {
                Way::Again => {
                    eventually(&format!("{request:?}, {name}: it is sent again"), || hits() >= 2);
                    assert!(!sending.is_finished(), "{request:?}, {name}");
                    assert!(store.waits().requests > 0, "{request:?}, {name}: nobody counts the wait");
                }
                _ => eventually(&format!("{request:?}, {name}: it is sent"), || hits() >= 1),
            }
            if way == Way::Done {
                sending.join().unwrap();
            }
            *faulty.reply.lock().unwrap() = None;
        });
        eventually(&format!("{request:?}, {name}: nothing waits any more"), || store.trouble().is_none());
    }
}

/// Every kind of request meets the faults that are chosen.
fn all_meet(is_chosen: impl Fn(&str) -> bool) {
    let Some(moto) = crate::moto::start() else { return };
    // Nobody may come here: it is not the store.
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let (address, other) = (moto.address(), elsewhere.local_addr().unwrap());
    let chosen = || faults(other).into_iter().filter(|fault| is_chosen(fault.name)).collect::<Vec<_>>();
    thread::scope(|threads| {
        let meeting = REQUESTS.map(|request| {
            let chosen = chosen();
            threads.spawn(move || meets(address, chosen, request))
        });
        meeting.into_iter().for_each(|meeting| meeting.join().unwrap());
    });
    let came = elsewhere.accept().map(|(mut stream, _)| stream.read(&mut [0; 64]));
    assert!(came.is_err(), "a redirect was followed");
}

/// One answer of each kind. The others take a minute.
const CHOSEN: [&str; 7] =
    ["404 NoSuchKey", "404 NoSuchBucket", "404 of a proxy", "400 ExpiredToken", "307", "200, empty", "200, a page"];

// rule: No answer that passes ends a server: each kind of request is sent again, and no redirect is followed.
#[test]
fn each_request_outlives_an_answer_that_passes() {
    all_meet(|name| CHOSEN.contains(&name));
}

#[test]
#[ignore = "runs for a minute"]
fn each_request_outlives_each_answer_that_passes() {
    all_meet(|_| true);
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// An answer of two GiB, which begins as that of a store.
fn endless(request: Request) -> Vec<Reply> {
    let head = |status: &str, more: &str| {
        Reply::Endless(
            format!("HTTP/1.1 {status}\r\nContent-Length: 2147483648\r\n{OBJECT}\r\n{more}\r\n").into_bytes(),
        )
    };
    let success = match request {
        ListManifests | ListData => head("200 OK", "\r\n<ListBucketResult>"),
        GetData => head("206 X", "Content-Range: bytes 0-65539/300028\r\n"),
        _ => head("200 OK", ""),
    };
    vec![success, head("403 X", "")]
}

// rule: No answer of a store fills the memory.
#[test]
fn an_answer_without_end_is_cut_at_what_was_asked_for() {
    const MOST: u64 = 400 << 20;
    let Some(moto) = crate::moto::start() else { return };
    let address = moto.address();
    let before = resident_bytes();
    for request in [GetData, GetManifest, ListData, PutLog] {
        let (faulty, store, volume) = behind(address, request);
        for reply in endless(request) {
            let name = format!("{request:?}: {reply:?}");
            faulty.hits.store(0, Ordering::Relaxed);
            let is_believed =
                matches!((request, &reply), (PutLog, Reply::Endless(head)) if head.starts_with(b"HTTP/1.1 200"));
            if is_believed {
                continue;
            }
            *faulty.reply.lock().unwrap() = Some(reply);
            thread::scope(|threads| {
                threads.spawn(|| request.send(&store, &volume, 1));
                // The first answer was given up before its two GiB.
                eventually(&name, || faulty.hits.load(Ordering::Relaxed) >= 2);
                *faulty.reply.lock().unwrap() = None;
            });
        }
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < MOST, "{grown} bytes");
}

/// The one object of a volume's data.
fn the_segment(store: &Store) -> String {
    let mut names = wait(Objects::list(&store.objects(), "data/")).unwrap();
    assert_eq!(names.len(), 1, "{names:?}");
    names.remove(0)
}

/// Makes an object of another one, or removes it.
type Damage = fn(Bytes) -> Option<Bytes>;
/// The kinds of damage to an object.
const DAMAGE: [(&str, Damage); 5] = [
    ("absent", |_| None),
    ("empty", |_| Some(Bytes::new())),
    ("short", |bytes| Some(bytes.slice(..100))),
    ("without its end", |bytes| Some(bytes.slice(..bytes.len() - 10))),
    ("longer", |bytes| Some([&bytes[..], b"0123456789"].concat().into())),
];

/// The results of all calls on a volume with a damaged object.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    read: String,
    other_read: bool,
    viewed: String,
    /// Whether each damaged segment is the one that was damaged.
    damaged: Vec<bool>,
    ranges: usize,
    unread: usize,
    upkeep: Vec<String>,
    snapshot: bool,
}

fn kind<T>(result: Result<T, afflux_object::ObjectVolumeError>) -> String {
    use afflux_object::ObjectVolumeError::{Damaged, Missing};
    match result {
        Ok(_) => "read".to_owned(),
        Err(Missing(_)) => "missing".to_owned(),
        Err(Damaged(_)) => "damaged".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn damaged(open: &(dyn Fn(&str) -> Store + Sync), at: usize) -> Shown {
    let (name, damage) = DAMAGE[at];
    let place = format!("damage-{at}");
    let first = open(&place);
    let writer = volume(&first);
    writer.write(1, 0, Bytes::from((0..400_000_u32).map(|at| (at / 3) as u8).collect::<Vec<_>>())).unwrap();
    wait(writer.commit(1)).unwrap();
    wait(writer.close()).unwrap();
    wait(writer.records().close()).unwrap();
    let segment = the_segment(&first);
    let bytes = wait(first.objects().get(&segment, 0..16 << 20)).unwrap().joined();
    wait(first.objects().delete(&segment)).unwrap();
    if let Some(bytes) = damage(bytes) {
        wait(first.objects().create(&segment, bytes)).unwrap();
    }
    drop((writer, first));
    let store = open(&place);
    let volume = volume(&store);
    store.serve();
    volume.write(2, 0, Bytes::from(vec![9; 300_000])).unwrap();
    wait(volume.commit(2)).unwrap();
    let read = kind(wait(volume.read(1, 200_000, 1_000)));
    let other_read = wait(volume.read(2, 0, 10)).is_ok_and(|bytes| bytes == [9; 10]);
    let upkeep =
        vec![kind(wait(volume.mark_dead())), kind(wait(volume.delete_dead())), kind(wait(volume.sweep_orphans()))];
    wait(volume.records().manifest()).unwrap();
    let snapshot = wait(store.make_snapshot("s")).is_ok();
    drop(volume);
    let view = wait(store.view(&afflux_object_store::ViewState::Snapshot("s".to_owned()))).unwrap();
    let report = wait(afflux_object::check(&store.objects(), &view, &store.clock())).unwrap();
    let viewing = ObjectVolume::open_view(store.objects(), view, store.clock(), VolumeLimits::default());
    let viewed = kind(wait(wait(viewing).unwrap().read(1, 399_000, 1_000)));
    println!("{name}: {report:?}");
    Shown {
        read,
        other_read,
        viewed,
        damaged: report.damaged.keys().map(|damaged| damaged.name() == segment).collect(),
        ranges: report.damaged.values().map(|(_, ranges)| ranges.len()).sum(),
        unread: report.unread.len(),
        upkeep,
        snapshot,
    }
}

/// Damage of each kind has the same results in every store.
pub(crate) fn damage(open: &(dyn Fn(&str) -> Store + Sync)) {
    let shown: Vec<Shown> = thread::scope(|threads| {
        let each: Vec<_> = (0..DAMAGE.len()).map(|at| threads.spawn(move || damaged(open, at))).collect();
        each.into_iter().map(|each| each.join().unwrap()).collect()
    });
    let expected = |read: &str, ranges| Shown {
        read: read.to_owned(),
        other_read: true,
        viewed: read.to_owned(),
        damaged: vec![true],
        ranges,
        unread: 0,
        upkeep: vec!["read".to_owned(); 3],
        snapshot: true,
    };
    assert_eq!(shown[0], expected("missing", 1), "absent");
    assert_eq!(shown[1], expected("damaged", 1), "empty");
    assert_eq!(shown[2], expected("damaged", 1), "short");
    assert_eq!(shown[3], expected("read", 0), "without its end: the lines are whole");
    assert_eq!(shown[4], expected("read", 0), "longer: the lines are whole");
}

// rule: A damaged object has the same result in a directory and in a bucket, and none is waited for without end.
#[test]
fn damage_in_a_directory_ends_each_call() {
    let scratch = crate::scratch();
    let open = |name: &str| crate::open(&format!("{}/{name}", crate::url(&scratch))).unwrap();
    damage(&open);
}

#[test]
fn damage_in_a_moto_ends_each_call() {
    let Some(moto) = crate::moto::start() else { return };
    let at = |name: &str| open(format!("http://{}", moto.address()), name);
    damage(&at);
}
