//! Loop devices.
//!
//! Owns: attaching and removing them.
//! Does not own: their use (`slow_disk`, `rated_file`).
//! Invariants: a fresh device did not exist before, so the kernel knows nothing about it.

use std::path::Path;

use super::command::{HardwareError, run};

/// New loop devices have numbers from here on, so that no device of another program is taken.
const FRESH_FROM: u32 = 64;
const FRESH_UNTIL: u32 = 1024;
/// Most numbers to try.
const FRESH_TRIES: usize = 8;
/// Removes the loop device of this number: `LOOP_CTL_REMOVE`, for which not every host has a program. The device is
/// busy for a moment after it was detached.
pub(super) const REMOVE_LOOP: &str = r#"open(my $c, "+<", "/dev/loop-control") or exit 1;
for (1 .. 40) { exit 0 if ioctl($c, 0x4C81, $ARGV[0] + 0); select(undef, undef, undef, 0.05) }"#;

/// Attaches a loop device to a file or a device: the device of this number, or any.
pub(super) fn attach(below: &str, number: Option<u32>) -> Result<String, HardwareError> {
    match number.map(|number| format!("/dev/loop{number}")) {
        Some(device) => run("losetup", &["--direct-io=on", &device, below]).map(|_| device),
        None => run("losetup", &["-f", "--show", "--direct-io=on", below]),
    }
}

/// Attaches a loop device that did not exist. If another program takes the number meanwhile, tries the next one.
pub(super) fn attach_fresh(below: &str) -> Result<(String, u32), HardwareError> {
    let unused = |number: &u32| !Path::new(&format!("/sys/block/loop{number}")).exists();
    let none = HardwareError { what: format!("loop{FRESH_FROM} to loop{} all exist", FRESH_UNTIL - 1) };
    let mut tried = Err(none);
    for number in (FRESH_FROM..FRESH_UNTIL).filter(unused).take(FRESH_TRIES) {
        tried = attach(below, Some(number)).map(|device| (device, number));
        if tried.is_ok() {
            break;
        }
    }
    tried
}

/// Major and minor number, as `7:0`.
pub(super) fn number_of(device: &str) -> Result<String, HardwareError> {
    run("lsblk", &["-ndo", "MAJ:MIN", device]).map(|number| number.trim().to_owned())
}
