//! `afflux simulate` and `afflux devices`, as a user runs them.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::scratch::Scratch;
use crate::server::{run, text};

/// 32 MiB written in order, with syncs between its quarters, and some reads of it.
const JOB: &str = "\
[global]
directory=/mnt/usb
size=32m
[backup]
rw=write
bs=64k
fsync=128
[desktop]
rw=randread
bs=4k
size=1m
";

fn simulate(scratch: &Scratch, arguments: &[&str]) -> Output {
    fs::write(scratch.path().join("job.fio"), JOB).unwrap();
    let job = scratch.path().join("job.fio");
    let mut all = vec!["simulate", job.to_str().unwrap()];
    all.extend(arguments);
    run(scratch.path(), &all)
}

fn object(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(output));
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_run_says_what_each_job_did_and_is_the_same_again() {
    let scratch = Scratch::new();
    let arguments = ["--device", "usb2-disk", "--memory", "64MiB", "--json"];
    let once = object(&simulate(&scratch, &arguments));
    let write = &once["jobs"][0]["write"];
    assert_eq!(
        (&once["jobs"][0]["name"], &write["bytes"], &write["ops"]),
        (&"backup".into(), &(32 << 20).into(), &512.into())
    );
    assert_eq!(once["jobs"][1]["read"]["bytes"], 1 << 20);
    // As with fio, none after the last write.
    assert_eq!(once["jobs"][0]["sync"]["ops"], 3);
    assert_eq!(once["engine"]["devices"][0]["written_bytes"], 32 << 20);
    for latency in ["p50", "p99_99", "max"] {
        assert!(write["latency_us"][latency].as_f64().is_some(), "{latency}: {write}");
    }
    assert!(once["virtual_s"].as_f64().unwrap() > 1.0, "the disk writes 25 MB a second");
    let again = object(&simulate(&scratch, &arguments));
    assert_eq!(once["trace_hash"], again["trace_hash"]);
    assert_eq!(once["jobs"], again["jobs"]);
    let other = object(&simulate(&scratch, &[&arguments[..], &["--seed", "2"]].concat()));
    assert_ne!(once["trace_hash"], other["trace_hash"]);
}

#[test]
fn text_is_quiet_when_piped_and_says_that_it_is_simulated() {
    let scratch = Scratch::new();
    let page = scratch.path().join("run.html");
    let trace = scratch.path().join("run.trace");
    let (page_name, trace_name) = (page.to_str().unwrap(), trace.to_str().unwrap());
    let output = simulate(&scratch, &["--device", "usb2-disk", "--html", page_name, "--trace", trace_name]);
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(said.starts_with("Simulated ") && !said.contains('\x1b'), "{said}");
    for part in ["backup", "fsync", "p99.99", "usb2-disk", "dirty", "lost if the power failed", "seed 1, trace "] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(fs::read_to_string(page).unwrap().contains("<figcaption><b>Dirty memory</b>"));
    assert!(fs::read_to_string(trace).unwrap().lines().count() > 10);
}

#[test]
fn what_makes_no_sense_is_wrong_use_and_is_named() {
    let scratch = Scratch::new();
    let with_disk = |arguments: &[&'static str]| [&["--device", "usb2-disk"], arguments].concat();
    for (arguments, code, part) in [
        (vec![], 2, "--device: name the disk to simulate; there are disk, "),
        (vec!["--device", "floppy"], 2, "floppy: no such device; there are disk, "),
        (vec!["--device", "./none.toml"], 1, "./none.toml cannot be read: No such file"),
        (vec!["--device", "disk", "--device", "sd-card"], 2, "'sd-card' is a second disk for everything"),
        (with_disk(&["--memory", "lots"]), 2, "--memory: 'lots' is not a size"),
        (with_disk(&["--cpus", "0"]), 2, "0 is not in 1..=1024"),
        (with_disk(&["--until", "soon"]), 2, "--until: 'soon' is not a time"),
        (with_disk(&["--set", "speed=1"]), 2, "--set: there is no knob 'speed'"),
        (with_disk(&["--set", "dirty_ratio=91"]), 2, "1 to 90 percent"),
        (with_disk(&["--html", "/none/run.html"]), 1, "there is no directory /none"),
        (with_disk(&["--faults", "/none.toml"]), 1, "/none.toml"),
        (with_disk(&["/none.fio"]), 1, "/none.fio cannot be read: No such file"),
    ] {
        let output = simulate(&scratch, &arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn a_job_file_that_is_wrong_is_said_with_file_and_line() {
    let scratch = Scratch::new();
    let job = scratch.path().join("bad.fio");
    fs::write(&job, "[a]\nrw=write\nsize=1m\nfoo=1\n").unwrap();
    let output = run(scratch.path(), &["simulate", job.to_str().unwrap(), "--device", "usb2-disk"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("bad.fio:4: "), "{}", text(&output));
}

#[test]
fn disks_are_listed_and_described() {
    let scratch = Scratch::new();
    let list = text(&run(scratch.path(), &["devices"]));
    assert!(list.contains("usb2-disk  ") && list.contains("rotations_per_minute"), "{list}");
    let one = text(&run(scratch.path(), &["devices", "usb2-disk"]));
    assert!(one.contains("source") && one.contains("assumed"), "{one}");
    let output = run(scratch.path(), &["devices", "--json"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    let names: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].take()).collect();
    assert!(names.len() >= 9 && names.contains(&"usb2-disk".into()), "{names:?}");
    assert_eq!(run(scratch.path(), &["devices", "floppy"]).status.code(), Some(2));
}
