//! The rates of fio's own examples on a throttled disk of this machine, by fio and by `afflux-lab simulate`.
//!
//! The test needs root, fio, its examples, and some minutes on an otherwise idle machine, so it runs only on request:
//!
//!     cargo test -p afflux-lab --test end_to_end -- --ignored --nocapture rates_of_fios_examples
//!
//! It prints a table of rates. It fails if the sums of an example's rates through the throttled disk differ by more
//! than [`APART_MAX`]. The time of one small call is measured just before each example and given to the simulator, as
//! in `afflux-lab run throttled`.

#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::fs;
use std::path::Path;
use std::process::Command;

use afflux_experiments::hardware::{DiskRates, SlowDisk};
use serde_json::Value;

use crate::command::Scratch;

/// The replacements in each example, shared with the test of their behaviour.
const EXAMPLES: &str = include_str!("../../../workloads/tests/examples.txt");
const DIRECTORY: &str = "/usr/share/doc/fio/examples";
/// The disk's rate in each direction, bytes a second.
const RATE: u64 = 25_000_000;
const IMAGE_BYTES: u64 = 1 << 30;
/// A higher rate did not come from the disk but from memory.
const THROUGH_THE_DISK_MAX: f64 = 1.2 * RATE as f64;
/// Largest difference between the sums of an example's rates, as a share of the real one.
const APART_MAX: f64 = 0.10;

/// Rows that differ by more than this share get a reason.
const WHY_FROM: f64 = 0.03;
/// The throttle of 25 MB/s hardly delays a call of at most this size.
const SMALL_CALL_BYTES: u64 = 16 << 10;

/// One direction of one job.
struct Moved {
    job: String,
    way: &'static str,
    bytes: u64,
    calls: u64,
    bytes_per_s: f64,
}

/// Drops fio's text before the JSON.
fn document(text: &str) -> Value {
    let json = &text[text.find('{').unwrap_or_else(|| panic!("no JSON: {text}"))..];
    serde_json::Deserializer::from_str(json).into_iter().next().unwrap().unwrap()
}

fn moved(text: &str) -> Vec<Moved> {
    let document = document(text);
    let jobs = document["jobs"].as_array().unwrap().iter();
    let each = jobs.flat_map(|job| ["read", "write"].map(|way| (job, way)));
    let each = each.map(|(job, way)| Moved {
        job: job["jobname"].as_str().unwrap().to_owned(),
        way,
        bytes: job[way]["io_bytes"].as_u64().unwrap(),
        calls: job[way]["total_ios"].as_u64().unwrap(),
        bytes_per_s: job[way]["bw_bytes"].as_f64().unwrap(),
    });
    each.filter(|moved| moved.bytes > 0).collect()
}

/// The standard output of a program in a directory; on failure, prints its standard error.
fn output(program: &str, arguments: &[&str], directory: &Path) -> String {
    let output = Command::new(program).args(arguments).current_dir(directory).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {told}{errors}");
    told
}

/// The examples' names, and their texts after the replacements.
fn examples() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for line in EXAMPLES.lines().filter(|line| !line.starts_with(';') && !line.trim().is_empty()) {
        match line.split_once(" => ") {
            None => all.push((line.to_owned(), fs::read_to_string(Path::new(DIRECTORY).join(line)).unwrap())),
            Some((from, to)) => {
                let text = &mut all.last_mut().unwrap().1;
                *text = text.replace(from.trim_start(), &to.replace("\\n", "\n"));
            }
        }
    }
    all
}

/// Duration of a read of one page from the disk without the throttle, in nanoseconds.
fn latency_ns(directory: &Path) -> u64 {
    let job = ["--name=latency", "--rw=randread", "--bs=4k", "--size=4m", "--direct=1", "--output-format=json"];
    let told = output("fio", &job, directory);
    let document = document(&told);
    fs::remove_file(directory.join("latency.0.0")).unwrap();
    document["jobs"][0]["read"]["clat_ns"]["mean"].as_f64().unwrap() as u64
}

/// Rates by fio; the files exist before the throttle starts. Also returns a call's duration without the throttle.
fn real(disk: &SlowDisk, name: &str, text: &str) -> (Vec<Moved>, u64) {
    let directory = disk.path().join(name);
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join(name), text).unwrap();
    output("timeout", &["300", "fio", "--create_only=1", name], &directory);
    let latency_ns = latency_ns(&directory);
    disk.settle().unwrap();
    disk.throttle(DiskRates { read_bytes_per_s: Some(RATE), write_bytes_per_s: Some(RATE) }).unwrap();
    let told = output("timeout", &["300", "fio", "--output-format=json", name], &directory);
    disk.throttle(DiskRates::default()).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    (moved(&told), latency_ns)
}

fn simulated(scratch: &Path, name: &str, text: &str, latency_ns: u64) -> Vec<Moved> {
    fs::write(scratch.join(name), text).unwrap();
    let rates = format!("read_bytes_per_second={RATE} B,write_bytes_per_second={RATE} B");
    let device = format!("throttled,{rates},latency_ns={latency_ns} ns");
    let arguments = ["simulate", name, "--device", &device, "--policy", "linux-6.1", "--output-format=json"];
    moved(&output(env!("CARGO_BIN_EXE_afflux-lab"), &arguments, scratch))
}

/// The reason for a row's difference, from its own figures; empty if the difference is small.
fn why(real: &Moved, ours: &Moved) -> String {
    let us_a_call = |moved: &Moved| moved.bytes as f64 / moved.bytes_per_s / moved.calls.max(1) as f64 * 1e6;
    let [theirs, own] = [real, ours].map(us_a_call);
    if real.bytes_per_s >= THROUGH_THE_DISK_MAX {
        "memory took it, not the disk: what a call costs a CPU".to_owned()
    } else if (theirs / own - 1.0).abs() <= WHY_FROM {
        String::new()
    } else if ours.bytes_per_s >= THROUGH_THE_DISK_MAX || real.bytes / real.calls.max(1) <= SMALL_CALL_BYTES {
        format!("fio needs {theirs:.0} µs a call, simulated {own:.0}: calls wait for a CPU, or for one another")
    } else {
        "the order in which the disk takes the jobs' requests".to_owned()
    }
}

#[test]
#[ignore = "rates, on a machine that does nothing else"]
fn rates_of_fios_examples_on_a_throttled_disk() {
    let scratch = Scratch::new();
    let disk = match SlowDisk::new(scratch.path(), IMAGE_BYTES, DiskRates::default()) {
        Ok(disk) if Path::new(DIRECTORY).exists() => disk,
        Ok(_) => return afflux_scratch::skipped!("fio's examples are not installed (Debian package fio-examples)"),
        Err(error) => return afflux_scratch::skipped!("{error}"),
    };
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    println!("Tasks that wanted a CPU in the last minute: {}\n", load.split(' ').next().unwrap_or_default());
    println!("| example | job | | calls | of | MB/s by fio | simulated | apart | why |\n|-|-|-|-:|-:|-:|-:|-:|-|");
    let mut apart = Vec::new();
    for (name, text) in examples() {
        let (real, latency_ns) = real(&disk, &name, &text);
        let ours = simulated(scratch.path(), &name, &text, latency_ns);
        let lines = |moved: &[Moved]| moved.iter().map(|moved| (moved.job.clone(), moved.way)).collect::<Vec<_>>();
        assert_eq!(lines(&real), lines(&ours), "{name}");
        let mut sums = [0.0; 2];
        for (real, ours) in real.iter().zip(&ours) {
            let by_disk = real.bytes_per_s < THROUGH_THE_DISK_MAX;
            let share = ours.bytes_per_s / real.bytes_per_s - 1.0;
            let (job, way, calls) = (&real.job, real.way, real.calls);
            let [theirs, own] = [real, ours].map(|moved| moved.bytes_per_s / 1e6);
            let (of, why) = (real.bytes / calls.max(1), why(real, ours));
            let share = 100.0 * share;
            println!("| {name} | {job} | {way} | {calls} | {of} B | {theirs:.1} | {own:.1} | {share:+.1} % | {why} |");
            if by_disk {
                sums = [sums[0] + theirs, sums[1] + own];
            }
        }
        let [theirs, own] = sums;
        if (own - theirs).abs() > APART_MAX * theirs {
            apart.push(format!("{name}: {theirs:.2} MB/s, simulated {own:.2}"));
        }
    }
    assert!(apart.is_empty(), "further apart than {:.0} %:\n{}", 100.0 * APART_MAX, apart.join("\n"));
}
