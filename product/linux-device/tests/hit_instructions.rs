//! The instructions of a hit.

//! rule: 1: a hit asks nothing of the device, and costs no more than its budget

mod counted;

use std::path::Path;

use counted::{build, can_count, changes_code, check, instructions};

/// Instructions from call to return of a 64-byte read hit, copy included.
// The compiler's choice of what stays on the stack has moved this by four without a change of any line of a hit.
const READ_HIT: f64 = 194.0;
/// The same for an overwrite.
// 232 before the nodes of indexes moved into frames of the arena.
const OVERWRITE_HIT: f64 = 241.0;
/// The same for 64 bytes shown in place, until they are released.
// 302 while each hit changed the page's word and a shared count, and asked for the part of all guards.
const PINNED_HIT: f64 = 217.0;
/// The count is exact for one compiler. Each figure moves by an instruction or two when code beside the hit changes.
const SLACK: f64 = 0.015;

const FEW: u64 = 10_000;
const MANY: u64 = 60_000;

fn per_hit(program: &Path, kind: &str) -> f64 {
    let of = |count: u64| instructions(program, None, &[kind, &count.to_string()]).0;
    (of(MANY) - of(FEW)) as f64 / (MANY - FEW) as f64
}

#[test]
fn what_the_environment_says_of_code_reaches_no_counted_build() {
    for name in ["CARGO_INCREMENTAL", "CARGO_PROFILE_RELEASE_LTO", "CARGO_ENCODED_RUSTFLAGS"] {
        assert!(changes_code(name), "{name}");
    }
    for name in ["CARGO_HOME", "CARGO_BUILD_JOBS", "PATH"] {
        assert!(!changes_code(name), "{name}");
    }
}

#[test]
fn a_hit_takes_the_instructions_it_took() {
    if !can_count() {
        return;
    }
    let program = build("hit_instructions");
    let loop_alone = per_hit(&program, "none");
    for (kind, expected) in [("read", READ_HIT), ("overwrite", OVERWRITE_HIT), ("pinned", PINNED_HIT)] {
        check(&format!("a {kind} hit"), per_hit(&program, kind) - loop_alone, expected, SLACK);
    }
}
