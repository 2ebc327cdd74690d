//! Traces: recorded on a server, shown, replayed; and block traces of others, good and bad.

use std::fs;

use serde_json::Value;

use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, afflux, eventually, run, text};

/// A block trace: reads that are not aligned, some of them twice, writes, a sync.
fn block_trace(scratch: &Scratch) -> std::path::PathBuf {
    let mut lines = String::from("time_us,op,offset,bytes\n");
    for at in 0..200_u64 {
        lines.push_str(&format!("{},read,{},{}\n", at * 1000, (at % 100) * 40_009 + 3, 5000));
        lines.push_str(&format!("{},write,{},700\n", at * 1000 + 10, at * 30_011 + 1));
    }
    lines.push_str("200000,sync,0,0\n");
    let path = scratch.path().join("block.csv");
    fs::write(&path, lines).unwrap();
    path
}

fn replayed(scratch: &Scratch, trace: &std::path::Path, arguments: &[&str]) -> Value {
    let mut all = vec!["simulate", "--trace-in", trace.to_str().unwrap(), "--device", "usb2-disk", "--json"];
    all.extend(arguments);
    let output = run(scratch.path(), &all);
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output)))
}

#[test]
fn a_block_trace_is_replayed_against_any_memory_and_policy() {
    let scratch = Scratch::new();
    let trace = block_trace(&scratch);
    let run_with = |memory: &str, policy: &str| {
        let told = replayed(&scratch, &trace, &["--memory", memory, "--policy", policy]);
        let job = &told["jobs"][0];
        assert_eq!(
            (&job["name"], &job["read"]["ops"], &job["write"]["ops"]),
            (&"block".into(), &200.into(), &200.into())
        );
        assert_eq!((&job["read"]["bytes"], &job["sync"]["ops"]), (&1_000_000.into(), &1.into()), "{job}");
        let delays = &told["engine"]["devices"][0]["delays"][0];
        assert_eq!(delays["who"], "block.0");
        let count = |name: &str| told["engine"]["counters"][name].as_u64().unwrap();
        assert!(count("pgpgout") > 0 && count("nr_dirtied") > 0 && delays["read"]["count"].as_u64().unwrap() > 0);
        // No call begins before its time.
        assert!(told["virtual_s"].as_f64().unwrap() >= 0.2, "{told}");
        (count("read_hit_pages"), count("read_miss_pages"), told["trace_hash"].clone())
    };
    let (much, little) = (run_with("64MiB", "afflux"), run_with("1MiB", "afflux"));
    assert!(much.1 < little.1, "what was let go is missed again: {much:?} {little:?}");
    assert_eq!(run_with("64MiB", "afflux"), much, "the same again");
    assert_ne!(run_with("64MiB", "linux-6.1").2, much.2);
    let page = scratch.path().join("page.html");
    let mut arguments = vec!["simulate", "--trace-in", trace.to_str().unwrap(), "--device", "usb2-disk"];
    arguments.extend(["--html", page.to_str().unwrap()]);
    let people = run(scratch.path(), &arguments);
    let page = fs::read_to_string(page).unwrap().replace('\u{a0}', " ");
    assert!(
        page.contains("block.csv has 401 calls of 1 file in 0.2 s. Each call begins at its recorded time"),
        "{page}"
    );
    for said in ["pages that reads found in the cache", "written for each byte that became dirty", "Delays", "block.0"]
    {
        assert!(text(&people).contains(said), "{said}: {}", text(&people));
    }
}

#[test]
fn what_clients_of_a_server_do_is_recorded_shown_and_replayed() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let trace = scratch.path().join("calls.trace");
    let mut client = Client::mount(&server);
    let root = client.root();
    let file = client.create(&root, "a");
    let bytes = Bytes::new(3).vec(256 << 10);
    let mut lines = Vec::<Value>::new();
    eventually("calls of all kinds are recorded", || {
        let mut recording = afflux(scratch.path());
        recording.args(["trace", "record", "--for", "300ms", "--control"]).arg(&server.control).arg(&trace);
        let mut recording = recording.spawn().unwrap();
        while recording.try_wait().unwrap().is_none() {
            client.write_at(&file, 0, &bytes);
            assert_eq!(client.read_at(&file, 0, bytes.len()), bytes);
        }
        assert!(recording.wait().unwrap().success());
        let shown = run(scratch.path(), &["trace", "show", "--json", trace.to_str().unwrap()]);
        lines = text(&shown).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        ["read", "write", "sync"].iter().all(|op| lines.iter().any(|line| line["op"] == *op))
    });
    let number = |line: &Value, name: &str| line[name].as_u64().unwrap();
    assert!(lines.is_sorted_by_key(|line| number(line, "time_us")));
    for line in &lines {
        assert_eq!(line["file"], lines[0]["file"], "there is one file");
        let end = number(line, "offset") + number(line, "bytes");
        assert!(end <= 256 << 10 && (line["op"] == "sync") == (number(line, "bytes") == 0), "{line}");
    }
    let people = text(&run(scratch.path(), &["trace", "show", trace.to_str().unwrap()]));
    assert_eq!(people.lines().count(), lines.len());
    let told = replayed(&scratch, &trace, &["--memory", "64MiB"]);
    let of = |op: &str| lines.iter().filter(|line| line["op"] == op).count();
    assert_eq!(told["jobs"][0]["write"]["ops"], of("write"));
    assert_eq!(told["jobs"][0]["read"]["ops"], of("read"));
    // A file that was cut short is refused by every reader.
    let whole = fs::read(&trace).unwrap();
    fs::write(&trace, &whole[..whole.len() - 41]).unwrap();
    for arguments in [&["trace", "show"][..], &["simulate", "--device", "usb2-disk", "--trace-in"]] {
        let output = run(scratch.path(), &[arguments, &[trace.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains("the file is cut short: 39 of 40 bytes"), "{}", text(&output));
    }
    server.stop();
}

#[test]
fn bad_traces_are_refused_with_the_line_and_the_reason() {
    let scratch = Scratch::new();
    let path = scratch.path().join("bad.csv");
    for (content, says) in [
        ("0,read,0,1\n5,read,0,1\n4,read,0,1\n", "line 3: its time, 4 us, is before that of the call above it, 5 us"),
        ("0,read,9223372036854775808,1\n", "line 1: 1 bytes at offset 9223372036854775808 end past 2^63 - 1"),
        ("0,read,0,1\n1,discard,0,1\n", "line 2: there is no operation 'discard'; there are read, write and sync"),
        ("0,read,0,1\n1,read,0", "line 2: it has 3 fields"),
        ("", "there is no call in it"),
    ] {
        fs::write(&path, content).unwrap();
        let arguments = ["simulate", "--device", "usb2-disk", "--trace-in", path.to_str().unwrap()];
        let output = run(scratch.path(), &arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{content:?}: {said}");
        assert!(said.contains(says) && said.contains("bad.csv"), "{content:?}: {said}");
    }
    let missing = run(scratch.path(), &["trace", "show", "nowhere.trace"]);
    assert!(text(&missing).contains("nowhere.trace cannot be read"), "{}", text(&missing));
    let nothing = run(scratch.path(), &["simulate", "--device", "usb2-disk"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", text(&nothing));
}
