//! One pass of a scan: a share of each list, in batches.
//!
//! Priority p takes 1/2^p of each list. The active list takes part only while it is longer than the inactive one. The
//! first pass scans all of its share, even beyond the target. In a later pass, a task stops early once this pass by
//! itself has freed the whole target; kswapd never does. So a reclaim frees a sum of whole passes: 163, 490, 1,144,
//! 2,452, 5,069 pages of a list of 670,000.
//!
//! Owns: the shares, the batches, the stop within a pass, the wait of tasks while too many pages are isolated.
//! Does not own: the stop between passes (`policy`).
//! Invariants: a pass ends: it takes no more from each list than the share at its beginning.

use afflux_engine::Nanos;

use super::mechanisms::{Event, List, Mechanisms, Scanned, Scanner, Sizes};

/// Pages scanned at a time.
pub const BATCH_PAGES: u64 = 32;
/// The priority of the first pass.
pub const PRIORITY_START: u32 = 12;
/// Time that a task waits while too many pages are isolated.
const HOLD_NS: u64 = 100 * Nanos::MILLISECOND;

/// The rest of the shares.
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

    /// The size of a list's next batch, within the rest of its share.
    fn batch(left: &mut u64) -> u64 {
        let pages = BATCH_PAGES.min(*left);
        *left -= pages;
        pages
    }
}

/// Scans one pass. A task stops within a later pass once it has freed `enough` pages.
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

/// Makes a task wait while more pages are isolated than on the list; kswapd does not wait.
async fn hold<M: Mechanisms>(memory: &M) {
    loop {
        let sizes = memory.sizes();
        if sizes.isolated <= sizes.inactive {
            return;
        }
        memory.sleep(HOLD_NS).await;
    }
}
