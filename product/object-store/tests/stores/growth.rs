//! The growth of costs with files, volumes and followers.
//!
//! Owns: the measurements on a Ceph: requests and bytes of an idle minute, memory, round trips of an opening.
//! Does not own: the rules for larger numbers, the prices, the tables (`tables`).
//! Invariants: each measured process is new. A time is in round trips, which are long beside the machine's own time. A
//! relay counts every byte, those of heads too.

mod tables;

use std::time::{Duration, Instant};

use afflux_gateway::{Asked, Gateway, KEY, Relay, SECRET};
use afflux_object::{Durability, RecordDatabase};
use afflux_object_store::{Keys, Options, SentRequests, Store, ViewState};
use afflux_scratch::{skipped, within};
use afflux_volume::{Directory, New};
use bytes::Bytes;

use crate::bill::Lab;
use crate::child::{Process, say, work};
use crate::volume::volume;
use crate::{open, scratch, url, wait};

/// The first flush of the memtable comes after a minute, and is not idle.
const SETTLED: Duration = Duration::from_secs(65);
/// The compactor has more to do after many files were made.
const SETTLED_AFTER_FILES: Duration = Duration::from_secs(185);
const MINUTE: Duration = Duration::from_secs(60);
const ROUND_TRIP: Duration = Duration::from_secs(1);
const BUCKET: &str = "bucket";
const BYTES: u64 = 8 << 30;
/// The goal at 30 ms is 1.2 s.
const TRIPS_MAX: u64 = 40;
/// Log objects of a writer that was killed, close to the most that it leaves.
const LOGS: u64 = 250;

/// The costs of an idle server, or of some at a time.
#[derive(Clone, Copy, Debug)]
struct Idle {
    /// Of a minute.
    asked: Asked,
    resident_bytes: u64,
}

/// The costs of a volume with so many files.
#[derive(Clone, Copy, Debug)]
struct Grown {
    files: u64,
    record_bytes: u64,
    stored_bytes: u64,
    opening: SentRequests,
    idle: Idle,
    /// After a lookup of each file.
    resident_bytes_used: u64,
    /// Round trips of an opening after a clean end, and after a kill.
    opening_trips: u64,
    takeover_trips: u64,
}

/// Makes files of 100 bytes, and ends cleanly.
fn fill(store: Store, files: u64) -> Lab {
    let mut lab = Lab::new(store);
    for _ in 0..files {
        let (_, node) = lab.begin(New::Regular);
        let ino = wait(lab.tree.stat(&node)).unwrap().fileid;
        lab.core.write(ino, 0, Bytes::from_static(&[1; 100])).unwrap();
    }
    wait(lab.core.close()).unwrap();
    lab
}

/// Bytes of records and of their objects, and the requests of an opening, in a directory.
fn in_a_directory(files: u64) -> (u64, u64, SentRequests) {
    let scratch = scratch();
    let lab = fill(open(&url(&scratch)).unwrap(), files);
    let records = lab.core.records();
    let all = wait(records.scan(vec![0], vec![255], Durability::Remote)).unwrap();
    let record_bytes = all.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
    wait(records.close()).unwrap();
    drop(lab);
    let entries = std::fs::read_dir(scratch.path().join("records/compacted")).unwrap().map(Result::unwrap);
    let stored_bytes = entries.map(|entry| entry.metadata().unwrap().len()).sum();
    let store = open(&url(&scratch)).unwrap();
    let before = store.requests();
    drop(wait(store.records()).unwrap());
    let after = store.requests();
    let opening = SentRequests {
        puts: after.puts - before.puts,
        gets: after.gets - before.gets,
        lists: after.lists - before.lists,
        deletes: after.deletes - before.deletes,
    };
    (record_bytes, stored_bytes, opening)
}

/// A Ceph with a bucket.
struct World(Gateway);

impl World {
    fn start() -> Option<Self> {
        if let Some(obstacle) = Gateway::obstacle() {
            skipped!("{obstacle}");
            return None;
        }
        let ceph = Gateway::start(BYTES).unwrap();
        ceph.make_bucket(BUCKET, false).unwrap();
        Some(Self(ceph))
    }

    fn open(&self, name: &str) -> Store {
        let keys = Keys { id: KEY.to_owned(), secret: SECRET.to_owned() };
        let options = Options { endpoint: Some(self.0.endpoint()), keys: Some(keys), ..Options::default() };
        wait(Store::open(&format!("s3://{BUCKET}/{name}"), &options)).unwrap()
    }

    /// Makes a volume with files.
    fn make(&self, name: &str, files: u64) {
        let lab = fill(self.open(name), files);
        wait(lab.core.records().close()).unwrap();
    }

    /// Leaves a volume as a killed writer does.
    fn leave(&self, name: &str) {
        let store = self.open(name);
        let writer = volume(&store, 1);
        for at in 0..LOGS {
            writer.write(1, at, Bytes::from_static(b"x")).unwrap();
            wait(writer.commit(1)).unwrap();
        }
    }

    /// Starts a process with a role behind a relay. Waits until the process is ready, and returns the time that it
    /// took.
    fn child(&self, role: &str, name: &str, count: u64, delay: Duration) -> (Process, Relay, Duration) {
        let relay = Relay::start(self.0.address(), delay).unwrap();
        let endpoint = relay.endpoint();
        let variables =
            [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_ENDPOINT_URL", &*endpoint)];
        let work = format!("{role} {count} s3://{BUCKET}/{name}");
        let mut child = Process::start("growth::role", &work, &variables);
        let ready = child.hear().unwrap_or_else(|| panic!("{work}: the process ended"));
        (child, relay, Duration::from_millis(ready.parse().unwrap()))
    }

    /// Round trips that an opening makes one after the other.
    fn trips(&self, role: &str, name: &str) -> u64 {
        let (_, _, took) = self.child(role, name, 1, ROUND_TRIP);
        (took.as_millis() / ROUND_TRIP.as_millis()) as u64
    }

    /// The costs of some servers of a role at a time, in which nobody asks for anything.
    fn idle(&self, role: &str, name: &str, count: u64, settled: Duration) -> Idle {
        let (child, relay, _) = self.child(role, name, count, Duration::ZERO);
        let wait_for = |time| assert!(!within(time, || false));
        wait_for(settled);
        let before = relay.asked();
        wait_for(MINUTE);
        Idle { asked: relay.asked().since(before), resident_bytes: child.resident_bytes() }
    }

    fn grown(&self, files: u64) -> Grown {
        let name = format!("files-{files}");
        let (record_bytes, stored_bytes, opening) = in_a_directory(files);
        self.make(&name, files);
        let opening_trips = self.trips("writer", &name);
        self.leave(&name);
        let takeover_trips = self.trips("writer", &name);
        let (reader, relay, _) = self.child("reader", &name, 1, Duration::ZERO);
        let resident_bytes_used = reader.resident_bytes();
        drop((reader, relay));
        let idle = self.idle("writer", &name, 1, SETTLED_AFTER_FILES);
        let grown = Grown {
            files,
            record_bytes,
            stored_bytes,
            opening,
            idle,
            resident_bytes_used,
            opening_trips,
            takeover_trips,
        };
        println!("{grown:?}");
        grown
    }
}

// rule: A takeover makes at most 40 round trips one after the other.
#[test]
#[ignore = "waits for some fifty round trips of a second"]
fn a_takeover_on_a_ceph_makes_few_round_trips() {
    let Some(world) = World::start() else { return };
    world.make("taken", 1_000);
    world.leave("taken");
    let trips = world.trips("writer", "taken");
    println!("a takeover on a Ceph: {trips} round trips one after the other");
    assert!(trips <= TRIPS_MAX, "{trips}");
}

/// The child: servers of a role, which do nothing once they are open.
#[test]
fn role() {
    let Some(work) = work() else { return };
    let words: Vec<&str> = work.split(' ').collect();
    let [role, count, url] = words[..] else { panic!("{work}") };
    let (count, began) = (count.parse::<u64>().unwrap(), Instant::now());
    let urls = (0..count).map(|at| if role == "writer" && count > 1 { format!("{url}-{at}") } else { url.to_owned() });
    let urls: Vec<String> = urls.collect();
    let (mut labs, mut views) = (Vec::new(), Vec::new());
    for url in &urls {
        if role == "follower" {
            let store = wait(Store::open_to_read(url, &Options::default())).unwrap();
            views.push((wait(store.view(&ViewState::Following)).unwrap(), store));
        } else {
            labs.push(Lab::new(open(url).unwrap()));
        }
    }
    let took = began.elapsed();
    if role == "reader" {
        look_at_each_file(&labs[0]);
    }
    say(&took.as_millis().to_string());
    loop {
        std::thread::park();
    }
}

fn look_at_each_file(lab: &Lab) {
    for at in 1_u64.. {
        let name = Bytes::from(format!("file {at:010}"));
        if wait(lab.tree.lookup(&lab.root(), name)).is_err() {
            return;
        }
    }
}

/// Measures all, and writes the sections of the document; none without a Ceph.
pub(crate) fn sections() -> Option<String> {
    let world = &World::start()?;
    // They mostly wait.
    std::thread::scope(|threads| {
        let files = tables::FILES.map(|files| threads.spawn(move || world.grown(files)));
        let followers = threads.spawn(|| {
            world.make("followed", 1_000);
            let trips = world.trips("follower", "followed");
            (trips, tables::FOLLOWERS.map(|count| (count, world.idle("follower", "followed", count, SETTLED))))
        });
        let volumes =
            tables::VOLUMES.map(|count| (count, world.idle("writer", &format!("of-{count}"), count, SETTLED)));
        let (trips, followers) = followers.join().unwrap();
        let files = files.map(|files| files.join().unwrap());
        let sections = [tables::files(&files), tables::volumes(&volumes), tables::followers(trips, &followers)];
        Some(sections.concat())
    })
}
