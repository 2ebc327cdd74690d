//! The instructions of writes and syncs.

mod counted;

use counted::{build, can_count, check, instructions};

/// Instructions of a page's write and of its sync by a blocked caller, up to the device.
const WRITE_AND_SYNC: f64 = 11_340.0;
/// Of 64 pages apart from each other in one sync, for each page.
const OF_64: f64 = 7_680.0;
/// Covers what other threads do meanwhile, and the way in which a machine copies bytes.
const SLACK: f64 = 0.02;

/// Syncs of a short and of a long run.
const ONE: (u64, u64) = (5_000, 15_000);
const SIXTY_FOUR: (u64, u64) = (200, 600);

#[test]
fn pages_written_and_synced_take_the_instructions_they_took() {
    if !can_count() {
        return;
    }
    let program = build("sync_instructions");
    for (pages, (few, many), budget) in [(1_u64, ONE, WRITE_AND_SYNC), (64, SIXTY_FOUR, OF_64)] {
        let of = |count: u64| instructions(&program, None, &[&count.to_string(), &pages.to_string()]).0;
        let a_page = (of(many) - of(few)) as f64 / ((many - few) * pages) as f64;
        check(&format!("a page of {pages} in a sync"), a_page, budget, SLACK);
    }
}
