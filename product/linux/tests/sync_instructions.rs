//! The instructions of a page's write and sync.

mod counted;

use counted::{build, can_count, check, instructions};

/// Instructions of a page's write and of its sync by a blocked caller, up to the device.
const WRITE_AND_SYNC: f64 = 13_343.0;
/// Covers the clock.
const SLACK: f64 = 0.05;

const FEW: u64 = 5_000;
const MANY: u64 = 15_000;

#[test]
fn a_page_written_and_synced_takes_the_instructions_it_took() {
    if !can_count() {
        return;
    }
    let program = build("sync_instructions");
    let of = |count: u64| instructions(&program, None, &[&count.to_string()]).0;
    check("a write and a sync", (of(MANY) - of(FEW)) as f64 / (MANY - FEW) as f64, WRITE_AND_SYNC, SLACK);
}
