//! Experiments that set up hardware: an interrupted one leaves nothing behind.

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::command::{Scratch, afflux_lab, eventually};

const THROTTLE: &str = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";
/// A rate that no other test uses; the sync alone would take minutes at it.
const RATE: &str = "1234567";

fn throttles() -> usize {
    fs::read_to_string(THROTTLE).unwrap_or_default().lines().filter(|line| line.ends_with(&format!(" {RATE}"))).count()
}

/// In the middle of the race: a disk is throttled and mounted, a writer writes or waits for its sync.
#[test]
fn a_race_that_is_ended_leaves_no_disk_no_mount_and_no_throttle_behind() {
    if !rustix::process::geteuid().is_root() || !fs::exists(THROTTLE).unwrap_or(false) {
        return afflux_scratch::skipped!("it needs root and {THROTTLE}");
    }
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let mut command = afflux_lab(scratch.path());
    command.args(["run", "writeback-real", "--quick", "--races", "full-speed", "--rate", RATE, "--directory"]);
    command.arg(&data).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut ended = None;
    eventually("a disk is throttled, or none is to be had", || {
        ended = running.try_wait().unwrap();
        throttles() > 0 || ended.is_some()
    });
    if ended.is_some() {
        let said = std::io::read_to_string(running.stderr.take().unwrap()).unwrap();
        return afflux_scratch::skipped!("no slow disk here: {said}");
    }
    kill_process(Pid::from_child(&running), Signal::TERM).unwrap();
    running.wait().unwrap();
    let place = data.to_string_lossy().into_owned();
    eventually("all is taken down", || {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        throttles() == 0 && !mounts.contains(&place) && fs::read_dir(&data).unwrap().count() == 0
    });
}
