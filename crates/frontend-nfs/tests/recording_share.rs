//! What recording costs the calls that are recorded.
#![allow(clippy::print_stderr, reason = "a test says what it counted")]

#[path = "../../platform-linux/tests/counted/mod.rs"]
#[allow(dead_code, reason = "what other tests count")]
mod counted;

use counted::{build, can_count, instructions};

const CALLS_A_BATCH: f64 = 64.0;
const FEW: u64 = 200;
const MANY: u64 = 1200;
/// Of the instructions of a cached READ without a recording: some 130 of 1,920 to 1,960 are counted, as the server finds more or
/// fewer calls at a time. Those of the kernel, which moves a READ through a socket and takes two thirds of the server's time with
/// one call in flight (docs/nfs.md), are not among them: of all that such a READ costs it is a third of this, less than 3 percent.
const SHARE_MAX: f64 = 0.08;

#[test]
fn recording_takes_little_of_a_cached_read() {
    if !can_count() {
        return;
    }
    let program = build("read_instructions");
    let of = |kind: &str| {
        let run = |count: u64| instructions(&program, None, &[kind, &count.to_string()]).0;
        (run(MANY) - run(FEW)) as f64 / (MANY - FEW) as f64 / CALLS_A_BATCH
    };
    let (plain, recorded) = (of("plain"), of("recorded"));
    eprintln!("a cached READ: {plain:.0} instructions, {recorded:.0} recorded");
    assert!(recorded - plain <= SHARE_MAX * plain, "{plain:.0} instructions a READ, {recorded:.0} recorded");
}
