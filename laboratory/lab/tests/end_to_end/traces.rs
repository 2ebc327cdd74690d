//! Replays of traces: recordings of a server, and block traces of other programs, valid and invalid.

use std::fs;

use afflux_frontend::trace::{TracedCall, TracedOperation, encode, end};
use serde_json::Value;

use crate::command::{Scratch, run, text};

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
    let mut all = vec!["replay", trace.to_str().unwrap(), "--device", "usb2-disk", "--json"];
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
        // Readahead would hide some of what was let go.
        let alone = ["--readahead", "linux", "--set", "readahead_bytes_max=0"];
        let told = replayed(&scratch, &trace, &[&["--memory", memory, "--policy", policy], &alone[..]].concat());
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
        (count("read_hit_pages"), count("pgpgin"), told["trace_hash"].clone())
    };
    let (much, little) = (run_with("64MiB", "afflux"), run_with("1MiB", "afflux"));
    assert!(much.1 < little.1, "pages that were let go are read again: {much:?} {little:?}");
    assert_eq!(run_with("64MiB", "afflux"), much, "the same again");
    assert_ne!(run_with("64MiB", "linux-6.1").2, much.2);
    let page = scratch.path().join("page.html");
    let mut arguments = vec!["replay", trace.to_str().unwrap(), "--device", "usb2-disk"];
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
fn a_recorded_trace_is_replayed_call_by_call() {
    let scratch = Scratch::new();
    let call = |at_us, operation, offset, bytes| TracedCall { at_us, file: 7, operation, offset, bytes };
    let mut bytes = encode(None).to_vec();
    for at in 0..20 {
        bytes.extend(encode(Some(&call(at * 1000, TracedOperation::Write, at * 5000, 5000))));
    }
    bytes.extend(encode(Some(&call(20_000, TracedOperation::Sync, 0, 0))));
    bytes.extend(encode(Some(&call(21_000, TracedOperation::Read, 100, 9000))));
    bytes.extend(end(22, 0));
    let trace = scratch.file("calls.trace", &bytes);
    let told = replayed(&scratch, trace.as_ref(), &["--memory", "64MiB"]);
    let job = &told["jobs"][0];
    assert_eq!((&job["write"]["ops"], &job["write"]["bytes"]), (&20.into(), &100_000.into()), "{job}");
    assert_eq!((&job["read"]["ops"], &job["sync"]["ops"]), (&1.into(), &1.into()), "{job}");
    let cut = scratch.file("cut.trace", &bytes[..bytes.len() - 41]);
    let output = run(scratch.path(), &["replay", "--device", "usb2-disk", &cut]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("the file is cut short: 39 of 40 bytes"), "{}", text(&output));
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
        let arguments = ["replay", "--device", "usb2-disk", path.to_str().unwrap()];
        let output = run(scratch.path(), &arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{content:?}: {said}");
        assert!(said.contains(says) && said.contains("bad.csv"), "{content:?}: {said}");
    }
    let missing = run(scratch.path(), &["replay", "--device", "usb2-disk", "nowhere.trace"]);
    assert!(text(&missing).contains("nowhere.trace cannot be read"), "{}", text(&missing));
    let nothing = run(scratch.path(), &["simulate", "--device", "usb2-disk"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", text(&nothing));
}
