//! `afflux-lab simulate` and `afflux-lab devices`, as a user runs them.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::command::{Scratch, afflux_lab, eventually, run, text};

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
fn what_would_run_is_told_in_words_or_as_one_object() {
    let scratch = Scratch::new();
    let words = simulate(&scratch, &["--device", "usb2-disk", "--check"]);
    assert!(
        words.status.success() && text(&words).contains("Would run under afflux; nothing was run."),
        "{}",
        text(&words)
    );
    for form in ["--json", "--output-format=json"] {
        let told = object(&simulate(&scratch, &["--device", "usb2-disk", "--policy", "linux-6.1", "--check", form]));
        assert_eq!(told["policies"], serde_json::json!(["linux-6.1"]));
        let job = &told["jobs"][1];
        assert_eq!(
            (&job["name"], &job["bytes"], &job["direct"]),
            (&"desktop".into(), &(1 << 20).into(), &false.into())
        );
        assert_eq!((told["jobs"].as_array().unwrap().len(), &job["device"]), (2, &"disk".into()));
    }
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
    // As in fio, no sync follows the last write.
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

/// The example of the documents.
#[test]
fn a_file_whose_writes_fail_for_five_seconds_keeps_to_the_budget() {
    let scratch = Scratch::new();
    let faults = scratch.path().join("faults.toml");
    let fault = "[[fault]]\ndo = \"error\"\ntarget = \"write\"\nfile = \"/mnt/usb/backup.0.0\"\nfrom = \"5 s\"\n";
    let lost = "[[fault]]\ndo = \"power-loss\"\nat = \"20 s\"\n";
    fs::write(&faults, format!("{fault}until = \"10 s\"\n{lost}")).unwrap();
    let job = scratch.path().join("backup.fio");
    let backup = "[global]\ndirectory=/mnt/usb\n[backup]\nrw=write\nbs=64k\nsize=2g\n";
    fs::write(&job, format!("{backup}[desktop]\nrw=randwrite\nbs=4k\nsize=4m\nfsync=8\nrate_iops=20\n")).unwrap();
    let arguments = ["simulate", job.to_str().unwrap(), "--device", "usb2-disk", "--json", "--faults"];
    let output = run(scratch.path(), &[&arguments[..], &[faults.to_str().unwrap()]].concat());
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let samples = told["engine"]["devices"][0]["samples"].as_array().unwrap();
    let most = |name: &str| samples.iter().map(|sample| sample[name].as_u64().unwrap()).max().unwrap();
    let (dirty, limit) = (most("dirty_bytes"), most("dirty_limit_bytes"));
    assert!(samples.last().unwrap()["at_s"].as_f64().unwrap() > 19.0, "{}", text(&output));
    assert!(dirty <= limit * 3 / 2, "{dirty} bytes were dirty under a limit of {limit}");
}

#[test]
fn several_runs_with_shifted_starts_give_ranges_and_are_the_same_again() {
    let scratch = Scratch::new();
    let arguments = ["--device", "usb2-disk", "--memory", "64MiB", "--runs", "3"];
    let said = text(&simulate(&scratch, &arguments));
    for part in [" in the median and ", " of that ", " (over 3 runs with shifted starts "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let told = || object(&simulate(&scratch, &[&arguments[..], &["--json"]].concat()));
    let once = told();
    let shifted = once["shifted"].as_array().unwrap();
    assert_eq!(shifted.len(), 2);
    let mut hashes: Vec<&Value> = shifted.iter().chain([&once]).map(|run| &run["trace_hash"]).collect();
    hashes.dedup();
    assert_eq!(hashes.len(), 3, "{hashes:?}");
    for run in shifted.iter().chain([&once]) {
        let sync = &run["jobs"][0]["sync"];
        let slowest = &sync["slowest"];
        assert_eq!(slowest["us"], sync["latency_us"]["max"]);
        let waits = slowest["waits_us"].as_object().unwrap();
        let longest = waits.iter().max_by(|one, other| one.1.as_f64().unwrap().total_cmp(&other.1.as_f64().unwrap()));
        assert_eq!(slowest["cause"], longest.unwrap().0.as_str());
        assert!(run["jobs"][0]["ended_s"].as_f64().unwrap() > 1.0, "{run}");
    }
    assert_eq!(told()["shifted"], once["shifted"]);
    let alone = object(&simulate(&scratch, &["--device", "usb2-disk", "--memory", "64MiB", "--json"]));
    assert_eq!(alone["trace_hash"], once["trace_hash"], "the first run begins as described");
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
        (with_disk(&["--runs", "0"]), 2, "0 is not in 1..=100"),
        (with_disk(&["--runs", "2", "--trace", "-"]), 2, "--trace: the events are of one run"),
        (with_disk(&["--until", "soon"]), 2, "'soon' for '--until <TIME>': not a time"),
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
    assert!(list.contains("usb2-disk  ") && list.contains("sequential read"), "{list}");
    let one = text(&run(scratch.path(), &["devices", "usb2-disk"]));
    assert!(["rotations_per_minute", "source", "assumed"].iter().all(|word| one.contains(word)), "{one}");
    let output = run(scratch.path(), &["devices", "--json"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    let names: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].take()).collect();
    assert!(names.len() >= 9 && names.contains(&"usb2-disk".into()), "{names:?}");
    assert_eq!(run(scratch.path(), &["devices", "floppy"]).status.code(), Some(2));
}

/// Runs `afflux` with these arguments in a directory with these files.
fn with_files(files: &[(&str, &str)], arguments: &[&str]) -> Output {
    let scratch = Scratch::new();
    for (name, contents) in files {
        fs::write(scratch.path().join(name), contents).unwrap();
    }
    let path = |argument: &&str| {
        let file = scratch.path().join(argument);
        if file.is_file() { file.to_str().unwrap().to_owned() } else { (*argument).to_owned() }
    };
    let arguments: Vec<String> = arguments.iter().map(path).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run(scratch.path(), &arguments)
}

/// The output, in single blanks.
fn words(output: &Output) -> String {
    text(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn several_policies_are_side_by_side() {
    let policies = ["--device", "usb2-disk", "--memory", "64MiB", "--policy", "linux-6.1", "--policy", "afflux"];
    let files = [("job.fio", JOB)];
    let output = with_files(&files, &[&["simulate", "job.fio"], &policies[..]].concat());
    let said = words(&output);
    assert!(output.status.success(), "{said}");
    for part in ["Side by side linux-6.1 afflux", "backup write throughput", "fsync calls 3 3", "traces: linux-6.1 "] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let output = with_files(&files, &[&["simulate", "job.fio", "--json"], &policies[..]].concat());
    let lines = String::from_utf8(output.stdout).unwrap();
    let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.iter().map(|it| &it["policy"]).collect::<Vec<_>>(), ["linux-6.1", "afflux"]);
    assert_ne!(objects[0]["trace_hash"], objects[1]["trace_hash"]);
    let output = with_files(&files, &["simulate", "job.fio", "--device", "disk", "--policy", "freebsd-14"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("there is no policy 'freebsd-14'; there are afflux, equal-parts, linux-3.6, "));
}

#[test]
fn a_kernels_knobs_have_the_kernels_names() {
    let knob = ["--set", "dirty_background_centisecs=5", "--set", "nr_requests=64"];
    let arguments = ["simulate", "nfs-client:size=50MB,window=20MB", "--device", "usb2-disk", "--json"];
    let with = |more: &[&str]| object(&with_files(&[], &[&arguments[..], more].concat()));
    let (plain, set) = (with(&["--policy", "linux-3.6"]), with(&[&["--policy", "linux-3.6"], &knob[..]].concat()));
    let wait = |run: &Value| run["jobs"][0]["sync"]["latency_us"]["mean"].as_f64().unwrap();
    assert!(wait(&set) < wait(&plain) / 2.0, "{} and {}", wait(&set), wait(&plain));
}

#[test]
fn a_knob_that_a_kernel_lacks_is_said_to_change_nothing() {
    let knobs = ["--set", "vm.dirty_ratio=30", "--set", "dirty_background_centisecs=5", "--set", "strict_limit=1"];
    let policies = ["--device", "disk", "--policy", "linux-3.6", "--policy", "linux-6.1", "--policy", "afflux"];
    let output = with_files(&[("job.fio", JOB)], &[&["simulate", "job.fio"], &policies[..], &knobs].concat());
    let said = words(&output);
    assert!(output.status.success(), "{said}");
    let warnings = said.matches("warning: ").count();
    for (policy, knob) in
        [("linux-3.6", "strict_limit"), ("linux-6.1", "dirty_background_centisecs"), ("afflux", "strict_limit")]
    {
        let part = format!("warning: {policy} has no {knob}: it changes nothing there");
        assert!(said.contains(&part) && warnings == 3, "{part} in {said}");
    }
}

#[test]
fn a_background_above_the_limit_is_refused_with_both_values() {
    let arguments = ["simulate", "job.fio", "--device", "disk", "--memory", "64MiB", "--policy", "linux-6.1"];
    for (knob, message) in [
        ("dirty_background_ratio=20", "dirty_background_ratio=20 (13421772 bytes) is not below dirty_ratio=20"),
        (
            "dirty_background_bytes=32MiB",
            "dirty_background_bytes=33554432 is not below dirty_ratio=20 (13421772 bytes)",
        ),
    ] {
        let output = with_files(&[("job.fio", JOB)], &[&arguments[..], &["--set", knob]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(words(&output).contains(message), "{}", words(&output));
    }
}

#[test]
fn built_in_workloads_run_beside_job_files() {
    let job = "[local]\ndirectory=/mnt/usb\nrw=write\nbs=64k\nsize=8m\n";
    let arguments = ["simulate", "readers:count=20,size=64KiB,over=1s", "nfs-client:size=4MB,directory=/mnt/usb"];
    let more = ["job.fio", "--device", "disk", "--device", "/mnt/usb=usb2-disk", "--json"];
    let run = object(&with_files(&[("job.fio", job)], &[&arguments[..], &more].concat()));
    let jobs = run["jobs"].as_array().unwrap();
    let names: Vec<_> =
        jobs.iter().map(|job| (job["name"].as_str().unwrap(), job["device"].as_str().unwrap())).collect();
    assert_eq!(names, [("nfs-client", "/mnt/usb"), ("readers", "disk"), ("local", "/mnt/usb")]);
    assert_eq!((&jobs[0]["write"]["bytes"], &jobs[0]["sync"]["ops"]), (&4_000_000.into(), &1.into()));
    assert_eq!(jobs[1]["read"]["bytes"], 20 << 16);
    let wrong = with_files(&[], &["simulate", "nfs-client:speed=1", "--device", "disk"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong).contains("there is no key 'speed'; the keys are directory, size, record, window"));
}

#[test]
fn a_power_loss_ends_the_run_and_says_what_it_took() {
    let faults = "[[fault]]\ndo = \"power-loss\"\nat = \"700 ms\"\n";
    let files = [("job.fio", JOB), ("faults.toml", faults)];
    let arguments = ["simulate", "job.fio", "--device", "usb2-disk", "--faults", "faults.toml"];
    let said = words(&with_files(&files, &arguments));
    assert!(said.contains("Power lost at 0.7 s: of ") && said.contains("none of them synced"), "{said}");
    let run = object(&with_files(&files, &[&arguments[..], &["--json"]].concat()));
    let loss = &run["loss"];
    assert_eq!((&loss["cause"], &loss["at_s"]), (&"power-loss".into(), &0.7.into()));
    let (lost, risk) = (loss["lost_bytes"].as_u64().unwrap(), run["engine"]["at_risk_bytes_max"].as_u64().unwrap());
    assert!(lost > 0 && lost <= risk && lost < loss["accepted_bytes"].as_u64().unwrap(), "{loss}");
    let kill = faults.replace("power-loss", "kill");
    let run = object(&with_files(&[files[0], ("faults.toml", &kill)], &[&arguments[..], &["--json"]].concat()));
    assert!(run["loss"]["lost_bytes"].as_u64().unwrap() <= lost, "the disk's own cache survives: {}", run["loss"]);
}

#[test]
fn a_fault_of_a_file_meets_that_file() {
    let fault = |file: &str| format!("[[fault]]\ndo = \"error\"\ntarget = \"sync\"\nfile = \"{file}\"\n");
    let arguments = ["simulate", "job.fio", "--device", "usb2-disk", "--faults", "faults.toml"];
    let said = |file: &str| words(&with_files(&[("job.fio", JOB), ("faults.toml", &fault(file))], &arguments));
    let met = said("/mnt/usb/backup.0.0");
    assert!(met.contains("backup: sync: input/output error (errno 5), once"), "{met}");
    let missed = said("/mnt/usb/backup");
    let listed = "file: there is no '/mnt/usb/backup' in this run (did you mean '/mnt/usb/backup.0.0'?); there are \
        /mnt/usb/backup.0.0, /mnt/usb/desktop.0.0";
    assert!(missed.contains("faults.toml:1: ") && missed.contains(listed), "{missed}");
}

#[test]
fn a_full_disk_is_the_jobs_error_and_no_deadlock() {
    let job = "[fill]\ndirectory=/mnt/usb\nrw=write\nbs=64k\nsize=300m\n";
    let output =
        with_files(&[("job.fio", job)], &["simulate", "job.fio", "--device", "usb2-disk,capacity_bytes=100MB"]);
    let said = words(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("fill: write: no space left on the device, once"), "{said}");
    assert!(said.contains("error: fill failed: write: no space left on the device"), "{said}");
    assert!(said.contains("fill write 99.9 MB") && !said.contains("Never written"), "{said}");
}

#[test]
fn a_job_file_without_a_job_is_wrong_use() {
    for (job, part) in [
        ("", "job.fio: there is no job in it; a job is a section, such as [backup] with size=1g below it"),
        ("# nothing yet\n\n", "job.fio: there is no job in it"),
        ("[global]\nrw=write\nsize=1m\n", "job.fio: there is no job in it"),
    ] {
        let output = with_files(&[("job.fio", job)], &["simulate", "job.fio", "--device", "disk"]);
        let said = words(&output);
        assert!(output.status.code() == Some(2) && said.contains(part), "{job:?}: {:?} {said}", output.status);
    }
}

#[test]
fn memory_that_the_simulation_cannot_keep_is_refused_with_its_range() {
    let scratch = Scratch::new();
    let job = scratch.path().join("job.fio");
    fs::write(&job, JOB).unwrap();
    // The test sets its own limit, so that the host's free memory does not matter.
    let under_limit = |memory: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -v 4000000 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_afflux-lab"), "simulate"]);
        shell.arg(&job).args(["--device", "disk", "--memory", memory, "--json"]).output().unwrap()
    };
    let output = under_limit("1TB");
    let said = words(&output);
    assert_eq!(output.status.code(), Some(2), "{:?} {said}", output.status);
    assert!(said.contains("error: --memory: '1TB' is out of range (1.00 MiB to "), "{said}");
    assert!(said.contains(" for its own tables") && said.contains("there are "), "{said}");
    let fits = under_limit("128GiB");
    assert_eq!(object(&fits)["engine"]["cache_bytes"], 128_u64 << 30);
}

#[test]
fn a_dash_is_standard_output() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("job.fio"), JOB).unwrap();
    let simulate = |arguments: &[&str]| {
        let mut command = afflux_lab(scratch.path());
        command.current_dir(scratch.path()).args(["simulate", "job.fio", "--device", "usb2-disk", "--memory", "64MiB"]);
        command.args(arguments).output().unwrap()
    };
    let page = simulate(&["--html", "-"]);
    let (out, err) = (String::from_utf8(page.stdout).unwrap(), String::from_utf8(page.stderr).unwrap());
    assert!(out.starts_with("<!doctype html>") && out.trim_end().ends_with("</html>"), "{out:.80} {err}");
    assert!(err.starts_with("Simulated ") && err.contains("seed 1, trace ") && !err.contains("Plots: "), "{err}");
    let events = simulate(&["--trace", "-"]);
    let (out, err) = (String::from_utf8(events.stdout).unwrap(), String::from_utf8(events.stderr).unwrap());
    assert!(out.lines().count() > 10 && !out.contains("Simulated ") && err.starts_with("Simulated "), "{err}");
    for (arguments, part) in [
        (&["--html", "-", "--json"][..], "error: --html -: standard output has the figures of --json; name a file"),
        (&["--html", "-", "--trace", "-"], "error: --trace -: standard output has the page of --html; name a file"),
    ] {
        let output = simulate(arguments);
        let said = text(&output);
        assert!(output.status.code() == Some(2) && said.contains(part), "{arguments:?}: {said}");
    }
    assert!(!scratch.path().join("-").exists());
}

#[test]
fn a_table_of_costs_on_standard_output_is_one_that_can_be_used() {
    let scratch = Scratch::new();
    let measured = afflux_lab(scratch.path()).args(["calibrate", "--quick", "--output", "-"]).output().unwrap();
    assert!(measured.status.success(), "{}", text(&measured));
    assert!(String::from_utf8_lossy(&measured.stderr).contains("medians of 3 rounds"));
    fs::write(scratch.path().join("here.toml"), &measured.stdout).unwrap();
    let here = scratch.path().join("here.toml");
    let run = simulate(&scratch, &["--device", "disk", "--json", "--costs", here.to_str().unwrap()]);
    assert!(object(&run)["virtual_s"].as_f64().unwrap() > 0.0);
}

/// A run without an end that has started and catches signals.
fn endless(scratch: &Scratch, arguments: &[&str]) -> Child {
    let job = "[endless]\nrw=write\nbs=64k\nsize=64m\ntime_based\nruntime=8000h\n";
    fs::write(scratch.path().join("endless.fio"), job).unwrap();
    let mut command = afflux_lab(scratch.path());
    command.current_dir(scratch.path()).args(["simulate", "endless.fio", "--device", "usb2-disk"]).args(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_mask(&child, "SigCgt:", true);
    child
}

/// Waits until Ctrl-C's bit is set in a mask of `/proc/PID/status`, or no longer set.
fn wait_for_mask(child: &Child, name: &str, set: bool) {
    eventually(name, || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix(name)).expect("it runs");
        (u64::from_str_radix(mask.trim(), 16).unwrap() >> 1 & 1 == 1) == set
    });
}

fn press_ctrl_c(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

#[test]
fn ctrl_c_gives_what_there_is() {
    let scratch = Scratch::new();
    let run = endless(&scratch, &["--json", "--policy", "afflux", "--policy", "linux-6.1"]);
    press_ctrl_c(&run);
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{:?} {said}", output.status);
    let figures: Value = serde_json::from_slice(&output.stdout).expect("one object: the second policy has no run");
    assert_eq!((&figures["cut"], &figures["policy"]), (&true.into(), &"afflux".into()));
    assert!(figures["virtual_s"].as_f64().unwrap() > 0.0);
    assert!(said.contains("cut at ") && said.contains("not run: linux-6.1"), "{said}");
    let run = endless(&scratch, &[]);
    press_ctrl_c(&run);
    let output = run.wait_with_output().unwrap();
    let said = words(&output);
    assert!(output.status.code() == Some(1) && said.contains("endless write"), "{said}");
    assert!(said.contains("Cut at ") && said.contains("data still in memory was not written"), "{said}");
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let scratch = Scratch::new();
    // Nobody reads the page, so the first Ctrl-C alone would never end it.
    let pipe = scratch.path().join("page");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let run = endless(&scratch, &["--html", "page"]);
    press_ctrl_c(&run);
    wait_for_mask(&run, "ShdPnd:", false);
    press_ctrl_c(&run);
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{:?}", output.status);
}

#[test]
fn a_second_job_file_begins_when_the_first_has_ended() {
    let job = |name: &str| format!("[{name}]\nrw=write\nsize=64k\nrate=64k\n");
    let files = [("a.fio", &job("a")[..]), ("b.fio", &job("b")[..])];
    let run = object(&with_files(&files, &["simulate", "a.fio", "b.fio", "--device", "disk", "--json"]));
    // Each takes 15/16 of a second.
    assert!((1.875..2.0).contains(&run["virtual_s"].as_f64().unwrap()), "{}", run["virtual_s"]);
}

#[test]
fn what_is_on_no_disk_says_how_to_mend_it() {
    let files = [("job.fio", JOB)];
    let output = with_files(&files, &["simulate", "job.fio", "--device", "/srv=usb2-disk"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output);
    assert!(said.contains("'/mnt/usb/backup.0.0' is on no device: add --device /mnt/usb=NAME"), "{said}");
}

#[test]
fn a_users_disk_is_checked() {
    let good = include_str!("../../../../devices/usb2-disk.toml");
    let said = text(&with_files(&[("mine.toml", good)], &["devices", "mine.toml"]));
    assert!(said.contains("mine: ") && said.contains("write_cache_bytes"), "{said}");
    let bad = good.replace("write_cache_bytes =", "write_cash_bytes =");
    let output = with_files(&[("mine.toml", &bad)], &["devices", "mine.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("mine.toml:27: write_cash_bytes"), "{}", text(&output));
}

#[test]
fn clones_of_a_job_are_one_line_for_people_and_apart_in_json() {
    let scratch = Scratch::new();
    let job = scratch.file("job.fio", "[clone]\nrw=write\nsize=1m\nbs=64k\nnumjobs=3\n");
    let said = text(&run(scratch.path(), &["simulate", &job, "--device", "usb2-disk"]));
    let lines: Vec<_> = said.lines().filter(|line| line.trim_start().starts_with("clone ×3")).collect();
    assert!(lines.iter().any(|line| line.contains("3.15 MB") && line.contains(" 48 ")), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("  clone  ")), "{said}");
    let told = object(&run(scratch.path(), &["simulate", &job, "--device", "usb2-disk", "--json"]));
    let bytes: Vec<_> = told["jobs"].as_array().unwrap().iter().map(|job| job["write"]["bytes"].clone()).collect();
    assert_eq!(bytes, [1 << 20, 1 << 20, 1 << 20], "{told}");
}
