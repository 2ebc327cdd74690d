//! States of processes, by the lines of /proc.

use super::*;

const RUNNING: &str = "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n";

#[test]
fn a_name_with_brackets_does_not_shift_the_fields() {
    let stat = |state: char, flags: u32| format!("17 (a) b (c) {state} 1 17 17 0 -1 {flags} 0 0");
    assert_eq!(state(&stat('T', 0)), Some('T'));
    assert!(!OwnerState::is_ending(RUNNING, &stat('S', 0x40_0100)));
    assert!(OwnerState::is_ending(RUNNING, &stat('D', 0x40_0104)), "it exits");
    assert!(OwnerState::is_ending(RUNNING, &stat('Z', 0)));
    assert!(OwnerState::is_ending(RUNNING, ""), "it is gone");
    assert!(OwnerState::is_ending("ShdPnd:\t0000000000000100\n", &stat('D', 0)), "SIGKILL waits for it");
    assert!(!OwnerState::is_ending("ShdPnd:\t0000000000004000\n", &stat('S', 0)), "SIGTERM may be ignored");
}

#[test]
fn a_process_without_the_file_does_not_have_it() {
    let file = rustix::fs::open("/proc/self/exe", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    assert_eq!(OwnerState::of(std::process::id(), &file).unwrap(), OwnerState::Runs, "it runs this very file");
    let other = rustix::fs::open("/proc/self/status", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    assert_eq!(OwnerState::of(std::process::id(), &other).unwrap(), OwnerState::Ends);
}
