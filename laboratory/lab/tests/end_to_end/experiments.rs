//! Experiments that set up hardware: an interrupted one leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::command::{Scratch, afflux_lab, eventually};

/// A rate that no other test uses; the sync alone would take minutes at it.
const RATE: &str = "1234567";

/// Whether a file of a directory, or of one in it, has bytes.
fn has_bytes(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files = entries.flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten().flatten().chain([entry]));
    files.any(|file| file.metadata().is_ok_and(|file| file.is_file() && file.len() > 0))
}

/// In the middle of the race: a slow disk is mounted, a writer writes or waits for its sync.
#[test]
fn a_race_that_is_ended_leaves_no_disk_and_no_mount_behind() {
    if !rustix::process::geteuid().is_root() || !fs::exists("/dev/fuse").unwrap_or(false) {
        return afflux_scratch::skipped!("it needs root and /dev/fuse");
    }
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let place = data.to_string_lossy().into_owned();
    let mounts = || -> Vec<PathBuf> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        points.filter(|point| point.starts_with(&place)).map(PathBuf::from).collect()
    };
    let mut command = afflux_lab(scratch.path());
    command.args(["run", "writeback-real", "--quick", "--races", "full-speed", "--rate", RATE, "--directory"]);
    command.arg(&data).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut ended = None;
    eventually("a slow disk is written, or none is to be had", || {
        ended = running.try_wait().unwrap();
        mounts().iter().any(|point| point.ends_with("slow") && has_bytes(point)) || ended.is_some()
    });
    if ended.is_some() {
        let said = std::io::read_to_string(running.stderr.take().unwrap()).unwrap();
        return afflux_scratch::skipped!("no slow disk here: {said}");
    }
    kill_process(Pid::from_child(&running), Signal::TERM).unwrap();
    running.wait().unwrap();
    eventually("all is taken down", || mounts().is_empty() && fs::read_dir(&data).unwrap().count() == 0);
}

/// What a newcomer reads: the list begins with the recorded kernel, and each experiment tells its options and labels.
#[test]
fn the_list_says_where_to_begin_and_the_help_of_one_has_its_options() {
    let scratch = Scratch::new();
    let said = |words: &[&str]| {
        let output = afflux_lab(scratch.path()).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let list = said(&["list"]);
    assert!(list.lines().next().unwrap().ends_with("run throttled --case recorded"), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 120), "{list}");
    let help = said(&["run", "s4", "--help"]);
    assert!(
        help.contains("--centisecs <LIST>") && help.contains("hold-out: gains on the thread's later machines"),
        "{help}"
    );
    assert!(said(&["run", "--help"]).contains("Usage: afflux-lab run"));
}
