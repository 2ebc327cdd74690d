//! The instructions of a miss.

mod counted;

use counted::{build, can_count, check, instructions};

/// Instructions of a read of an uncached page, with its request, its eviction and the copy of 4 KiB. With two lists and
/// no reclaim ahead of need it was 5,380.
// 6,324 before a miss checked which of its pages are cached, and took its index nodes from the arena; 6,706 before a
// frame had a mark of its dirty sectors; 6,951 before the size of the small queues was measured. That takes 327 of an
// eviction here, since a small cache samples many pages, and 75 with 4,096 frames. 7,176 while a read had
// nine records.
const MISS: f64 = 7075.0;
/// The same on the thread of a blocked caller, up to the device: without a request, a future and a wait.
const MISS_HERE: f64 = 6250.0;
/// Covers the way in which a machine copies bytes.
const SLACK: f64 = 0.02;

const FEW: u64 = 10_000;
const MANY: u64 = 30_000;

#[test]
fn a_miss_takes_the_instructions_it_took() {
    if !can_count() {
        return;
    }
    let program = build("miss_instructions");
    for (what, form, budget) in [("a miss", "awaited", MISS), ("a miss on its caller's thread", "here", MISS_HERE)] {
        let of = |count: u64| instructions(&program, None, &[form, &count.to_string()]).0;
        check(what, (of(MANY) - of(FEW)) as f64 / (MANY - FEW) as f64, budget, SLACK);
    }
}
