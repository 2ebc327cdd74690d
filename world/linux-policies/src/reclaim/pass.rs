//! One pass of a scan: a share of each list, in batches.
//!
//! Priority p takes 1/2^p of each list. The active list takes part only while it is longer than the inactive one. In
//! the first pass all of the share is scanned, whatever is wanted; in a later one a task stops in the middle once that
//! pass by itself has brought the whole target. kswapd never does. So what a reclaim brings is a sum of whole passes:
//! 163, 490, 1,144, 2,452, 5,069 pages of a list of 670,000.
//!
//! Owns: the shares, the batches, the stop within a pass, the hold of tasks while too much is in others' hands.
//! Does not own: the stop between passes (`policy`).
//! Invariants: a pass ends: it takes from each list no more than its share at the beginning.

use afflux_engine::Nanos;

use super::mechanisms::{Event, List, Mechanisms, Scanned, Scanner, Sizes};

/// Pages scanned at a time.
pub const BATCH_PAGES: u64 = 32;
/// The priority of the first pass.
pub const PRIORITY_START: u32 = 12;
/// How long a task waits while too much is isolated.
const HOLD_NS: u64 = 100 * Nanos::MILLISECOND;

/// What is left of the shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shares {
    inactive: u64,
    active: u64,
}

impl Shares {
    pub(super) fn of(sizes: &Sizes, priority: u32) -> Self {
        let active = if sizes.active > sizes.inactive { sizes.active >> priority } else { 0 };
        Self { inactive: sizes.inactive >> priority, active }
    }

    /// The next batch: of each list in turn, as long as its share lasts.
    fn batch(left: &mut u64) -> u64 {
        let pages = BATCH_PAGES.min(*left);
        *left -= pages;
        pages
    }
}

/// Scans one pass. `enough` is what a task stops at within a pass.
pub(super) async fn scan_pass<M: Mechanisms>(
    memory: &M,
    scanner: Scanner,
    priority: u32,
    enough: Option<u64>,
) -> Scanned {
    let mut shares = Shares::of(&memory.sizes(), priority);
    let mut all = Scanned::default();
    while shares.inactive + shares.active > 0 {
        for (list, left) in [(List::Inactive, &mut shares.inactive), (List::Active, &mut shares.active)] {
            let pages = Shares::batch(left);
            if pages == 0 {
                continue;
            }
            if list == List::Inactive && scanner == Scanner::Direct {
                hold(memory).await;
            }
            let batch = memory.scan(scanner, list, pages).await;
            all.scanned += batch.scanned;
            all.reclaimed += batch.reclaimed;
        }
        if priority < PRIORITY_START && enough.is_some_and(|enough| all.reclaimed >= enough) {
            break;
        }
    }
    let (scan, steal) = match scanner {
        Scanner::Direct => (Event::ScanDirect, Event::StealDirect),
        Scanner::Background => (Event::ScanKswapd, Event::StealKswapd),
    };
    memory.count(scan, all.scanned);
    memory.count(steal, all.reclaimed);
    all
}

/// While more pages are in scanners' hands than on the list, tasks wait; kswapd does not.
async fn hold<M: Mechanisms>(memory: &M) {
    loop {
        let sizes = memory.sizes();
        if sizes.isolated <= sizes.inactive {
            return;
        }
        memory.sleep(HOLD_NS).await;
    }
}
