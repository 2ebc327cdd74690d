//! The cost of recording for the recorded calls, and that of version 4 beside version 3.
#![allow(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test says what it counted, and fails where it cannot go on"
)]

#[path = "../../linux-device/tests/counted/mod.rs"]
#[allow(dead_code, reason = "what other tests count")]
mod counted;

use counted::{build, can_count, instructions};

const BATCHES: u64 = 200;
/// The least of so many counts is compared. A count moves by 1 % with the place of the stack, since copies of bytes
/// take other ways. So each has an argument of another length, and another place.
const COUNTS: usize = 6;
/// How much longer an argument is than the one before.
const STEP: usize = 16;
/// Pairs of the number of calls that a server finds at a time, and the largest share of recording in a call's own cost.
/// Measured: for one call 148 of 2,977 instructions (5.0 %), since it bears the clock and the lock alone; for each of
/// 64 calls 36 to 61 of 2,095 (1.7 to 2.9 %): copies take other ways for other alignments, by 20 instructions a call. A
/// clock or a lock for each call would cost 7 %. The share of a READ's whole cost is a third of that: the kernel takes
/// two thirds of the server's time, to move the data through a socket (notebook/nfs.md).
const SHARES_MAX: [(u32, f64); 2] = [(1, 0.056), (64, 0.04)];

/// Most instructions of a call of version 4 for each of the same call of version 3, of 64 together. Measured: 2,088 for
/// 1,260, 2,909 for 2,099, and 3,873 for 2,688, since a compound has three operations, or four with a WRITE. The socket
/// costs both versions the same.
const VERSION_4_MAX: [(&str, f64); 3] = [("get", 1.7), ("read", 1.42), ("write", 1.48)];
/// Most instructions of a LOCK or a LOCKU, their mean, for each of a GETATTR of version 3, which changes less often
/// than one of version 4. Measured: 5,097 for 1,260. The trees of ranges bound a call on a full file, and cost 1,500 on
/// a file with one range. The quotas of holders and parties need counts of ranges, which cost 350.
const LOCK_MAX: f64 = 4.13;

/// Instructions of a call, the least of so many counts.
fn a_call(kind: &str, together: u32, counts: usize) -> f64 {
    let program = build("call_instructions");
    let count = |at: usize| {
        let arguments = [kind, &together.to_string(), &format!("{BATCHES:0width$}", width = at * STEP)];
        instructions(&program, Some("call_instructions::counted"), &arguments).0
    };
    let least = (0..counts).map(count).min().unwrap();
    least as f64 / BATCHES as f64 / f64::from(together)
}

#[test]
fn recording_takes_little_of_a_cached_read() {
    if !can_count() {
        return;
    }
    for (together, share_max) in SHARES_MAX {
        let (plain, recorded) = (a_call("read3", together, COUNTS), a_call("recorded3", together, COUNTS));
        let share = recorded / plain - 1.0;
        eprintln!(
            "{together} together: {plain:.1} instructions a cached READ, {recorded:.1} recorded, {:.2} %",
            share * 100.0
        );
        assert!(
            share <= share_max,
            "{together} together: {plain:.1} instructions a READ, {recorded:.1} recorded, more than {share_max} of it",
        );
    }
}

#[test]
fn a_call_of_version_4_costs_no_more_for_each_instruction_of_version_3_than_it_did() {
    if !can_count() {
        return;
    }
    for (kind, most) in VERSION_4_MAX {
        let [old, new] = ["3", "4"].map(|version| a_call(&format!("{kind}{version}"), 64, 1));
        eprintln!("{kind}: {old:.1} instructions by version 3, {new:.1} by version 4, {:.2} times", new / old);
        assert!(new / old <= most, "{kind}: {new:.1} instructions are more than {most} times {old:.1}");
    }
}

#[test]
fn a_lock_costs_no_more_for_each_instruction_of_a_getattr_than_it_did() {
    if !can_count() {
        return;
    }
    let [lock, get] = ["lock4", "get3"].map(|kind| a_call(kind, 64, 1));
    eprintln!("{lock:.1} instructions of a LOCK or a LOCKU, {get:.1} of a GETATTR, {:.2} times", lock / get);
    assert!(lock / get <= LOCK_MAX, "{lock:.1} instructions are more than {LOCK_MAX} times {get:.1}");
}
