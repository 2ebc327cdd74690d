//! Why a server makes its clients wait: `afflux stat` and `afflux trace` while an NFS client writes.

//! rule: each instant that a call waits is on its client's account, once

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use afflux_disk::{Disk, Ext4};
use serde_json::Value;

use crate::client::Client;
use crate::mount_shares::slow_disk;
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, afflux, eventually, text};

/// A server of a directory on a disk so slow that a client's writes wait.
pub(crate) struct SlowServer {
    pub(crate) server: Server,
    pub(crate) data: PathBuf,
    _disk: (Ext4, Disk),
    pub(crate) scratch: Scratch,
}

impl SlowServer {
    /// `None`, with a message, where there is no such disk.
    pub(crate) fn start(more: &[&str]) -> Option<Self> {
        let scratch = Scratch::new();
        let data = scratch.directory("data");
        let disk = slow_disk(&scratch, &data, 20_000_000)?;
        let server = Server::start(scratch.path(), &[&data], &[&["--set", "budget_ms=200"], more].concat());
        Some(Self { server, data, _disk: disk, scratch })
    }

    /// Has a client write a file until a write has waited.
    pub(crate) fn write_until_throttled(&self, client: &mut Client, name: &str) {
        let root = client.root();
        let file = client.create(&root, name);
        let bytes = Bytes::new(3).vec(8 << 20);
        eventually("a write waits", || {
            client.write_at(&file, 0, &bytes);
            self.server.stat()["devices"][0]["waits"]["throttle"]["count"].as_u64().unwrap() > 0
        });
    }
}

/// `afflux trace --json` beside a test, and its output so far.
struct Tracing {
    child: Child,
    events: Arc<Mutex<Vec<Value>>>,
}

impl Tracing {
    /// Starts it; after the return no event is missed.
    fn start(server: &Server, home: &Path, arguments: &[&str]) -> Self {
        let mut command = afflux(home);
        command.args(["trace", "--json", "--control"]).arg(&server.control).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (output, events) = (BufReader::new(child.stdout.take().unwrap()), Arc::default());
        let tracing = Self { child, events: Arc::clone(&events) };
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                events.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        eventually("a change of a knob is told", || {
            assert!(server.ask(&["set", "dirty_expire_centisecs=2000"]).status.success());
            !tracing.named("knob_changed").is_empty()
        });
        tracing
    }

    fn named(&self, event: &str) -> Vec<Value> {
        self.events.lock().unwrap().iter().filter(|one| one["event"] == event).cloned().collect()
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn stat_says_why_writes_waited_and_how_long() {
    let Some(slow) = SlowServer::start(&[]) else { return };
    let server = &slow.server;
    slow.write_until_throttled(&mut Client::mount(server), "a");
    let device = server.stat()["devices"][0].clone();
    let pause = &device["pauses"][0];
    assert_eq!(pause["cause"], "device time", "{device}");
    assert!(pause["count"].as_u64().unwrap() > 0 && pause["ns"].as_u64().unwrap() > 0, "{device}");
    for kind in ["throttle", "pause", "sync", "commit"] {
        let times = &device["waits"][kind];
        let figure = |name: &str| times[name].as_u64().unwrap();
        let told = [1, figure("p50_ns"), figure("p99_ns"), figure("p999_ns"), figure("max_ns"), figure("ns")];
        assert!(figure("count") > 0 && told.is_sorted(), "{kind}: {device}");
    }
    let client = &device["clients"][0];
    assert_eq!((&client["client"], &client["waiting"]), (&"127.0.0.1".into(), &0.into()), "{device}");
    assert_eq!(client["throttle"]["count"], device["waits"]["throttle"]["count"], "{device}");
    let people = text(&server.ask(&["stat", "--verbose"]));
    for said in [
        "throttled writes waited: half up to ",
        "because of: device time (",
        "syncs waited: half up to ",
        "COMMITs took: half up to ",
    ] {
        assert!(people.contains(said), "{said}: {people}");
    }
    slow.server.stop();
}

/// The row of `afflux delays --json` for the client with that user: number and duration of waits.
pub(crate) fn delays_of(server: &Server, uid: Option<u32>) -> Value {
    let told: Value = serde_json::from_str(&text(&server.ask(&["delays", "--json"]))).unwrap();
    let clients = told["devices"][0]["clients"].as_array().unwrap().clone();
    clients.into_iter().find(|one| one["uid"] == serde_json::json!(uid)).unwrap_or(Value::Null)
}

#[test]
fn delays_say_who_waited_for_what_by_address_and_user() {
    let Some(slow) = SlowServer::start(&[]) else { return };
    let (server, data) = (&slow.server, &slow.data);
    let people = text(&server.ask(&["delays"]));
    assert!(people.starts_with("Nothing waited in the last ") && people.contains("no client is connected"), "{people}");
    assert!(people.ends_with("\n\nnobody has waited\n"), "{people}");
    // The other users of this test need access.
    std::fs::set_permissions(data, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::write(data.join("cold"), Bytes::new(9).vec(1 << 20)).unwrap();
    let mut client = Client::mount(server);
    let root = client.root();
    client.act_as(1000);
    slow.write_until_throttled(&mut client, "a");
    client.act_as(1001);
    client.read_file(&root, "cold");
    let (writer, reader) = (delays_of(server, Some(1000)), delays_of(server, Some(1001)));
    let device = server.stat()["devices"][0].clone();
    for (who, kind) in [(&writer, "throttle"), (&writer, "sync"), (&reader, "read")] {
        assert_eq!(who["client"], "127.0.0.1", "{who}");
        // No other client waited for the device, so that the client's waits are all of them.
        assert_eq!(who[kind], device["waits"][kind], "{kind}: {who}");
        let figure = |name: &str| who[kind][name].as_u64().unwrap();
        let told = [1, figure("p50_ns"), figure("p99_ns"), figure("max_ns"), figure("ns")];
        assert!(figure("count") > 0 && told.is_sorted(), "{kind}: {who}");
    }
    assert_eq!((&writer["read"]["count"], &reader["throttle"]["count"]), (&0.into(), &0.into()));
    let people = text(&server.ask(&["delays"]));
    let name = device["name"].as_str().unwrap();
    for said in [format!("127.0.0.1 uid 1000 on {name}"), format!("127.0.0.1 uid 1001 on {name}")] {
        assert!(people.contains(&said), "{said}: {people}");
    }
    for heading in ["THROTTLE ", "RECLAIM ", "READ ", "SYNC ", "delay average"] {
        assert_eq!(people.matches(heading).count(), 2, "{heading}: {people}");
    }
    // A read of cached data does not wait.
    client.read_file(&root, "cold");
    assert_eq!(delays_of(server, Some(1001))["read"], reader["read"]);
    slow.server.stop();
}

#[test]
fn trace_tells_every_beginning_and_every_end() {
    let Some(slow) = SlowServer::start(&[]) else { return };
    let server = &slow.server;
    let name = server.stat()["devices"][0]["name"].as_str().unwrap().to_owned();
    let tracing = Tracing::start(server, slow.scratch.path(), &["--device", &name]);
    slow.write_until_throttled(&mut Client::mount(server), "b");
    // The COMMIT is the last event, since the client waited for it.
    let commits = server.stat()["devices"][0]["waits"]["commit"]["count"].as_u64().unwrap();
    eventually("the last COMMIT is told", || tracing.named("commit").len() as u64 == commits);
    assert!(tracing.named("lost").is_empty());
    let path = slow.data.join("b");
    for (begins, ends) in [("pause_begins", "pause_ends"), ("sync_begins", "sync_ends")] {
        let mut begun: BTreeMap<u64, Value> = BTreeMap::new();
        for one in tracing.named(begins) {
            assert_eq!((&one["client"], one["file"].as_str()), (&"127.0.0.1".into(), path.to_str()), "{one}");
            begun.insert(one["wait"].as_u64().unwrap(), one);
        }
        assert!(!begun.is_empty(), "{begins}");
        for end in tracing.named(ends) {
            let begin = begun.remove(&end["wait"].as_u64().unwrap()).unwrap();
            let at = |one: &Value| one["at_ns"].as_u64().unwrap();
            assert_eq!(at(&end) - at(&begin), end["ns"].as_u64().unwrap(), "{begin} {end}");
            assert_eq!((&begin["cause"], &begin["file"]), (&end["cause"], &end["file"]));
        }
        assert!(begun.is_empty(), "{begins} without {ends}: {begun:?}");
    }
    let device = server.stat()["devices"][0].clone();
    assert_eq!(tracing.named("pause_ends").len() as u64, device["waits"]["pause"]["count"].as_u64().unwrap());
    let written: u64 = tracing.named("completed").iter().filter_map(|one| one["bytes"].as_u64()).sum();
    assert!(written >= 8 << 20, "{written} bytes");
    assert!(tracing.named("turn").iter().any(|turn| turn["pages"].as_u64().unwrap() > 0));
    drop(tracing);
    slow.server.stop();
}

#[test]
fn a_trace_for_people_has_a_line_an_event_and_ends_when_it_was_told_to() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let output = server.ask(&["trace", "--for", "1ms"]);
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), ""), "nothing happens");
    let mut said = String::new();
    eventually("a change of a knob is told", || {
        std::thread::scope(|scope| {
            let tracing = scope.spawn(|| server.ask(&["trace", "--for", "200ms"]));
            while !tracing.is_finished() {
                server.ask(&["set", "dirty_ratio=21"]);
            }
            said = text(&tracing.join().unwrap());
        });
        !said.is_empty()
    });
    assert!(said.lines().all(|line| line.ends_with("  all  dirty_ratio is now 21")), "{said}");
    server.stop();
}

#[test]
fn nonsense_is_refused_with_what_would_make_sense() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let name = server.stat()["devices"][0]["name"].as_str().unwrap().to_owned();
    for (arguments, parts) in [
        (&["trace", "--device", "sdz9"][..], ["there is no device 'sdz9'", name.as_str()]),
        (&["trace", "--for", "never"], ["'never' for '--for <TIME>': not a time", "30s"]),
        (&["trace", "--for", "0s"], ["'0s' for '--for <TIME>': out of range", "above 0"]),
        (&["trace", "everything"], ["unrecognized subcommand 'everything'", "Usage: afflux trace"]),
        (&["delays", "everybody"], ["unexpected argument 'everybody'", "Usage: afflux delays"]),
        (&["stat", "--device", "sdz9"], ["unexpected argument '--device'", "Usage: afflux stat"]),
    ] {
        let output = server.ask(arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{arguments:?}: {said}");
    }
    server.stop();
}
