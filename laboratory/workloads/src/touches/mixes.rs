//! Mixes of programs' cache accesses: scans, hot pages, tables and logs, moving working sets.
//!
//! Owns: these generators. Does not own: their names (`mod`).
//! Invariants: we chose the shares; no trace was fitted.

use afflux_simulator::Random;

use super::touch::{Sequence, Sizes, Touch, read_or_write};
use crate::zipf::Zipf;

/// Pages of a range scan.
const RANGE_PAGES: (u64, u64) = (16, 64);
/// Reads of a page by a program that reads a quarter of a page at a time.
const READS_OF_A_PAGE: u64 = 4;

/// Pages `from..to`, round and round.
struct Scan {
    from: u64,
    to: u64,
    at: u64,
}

impl Scan {
    fn new(from: u64, to: u64) -> Self {
        Self { from, to, at: from }
    }

    fn next(&mut self) -> u64 {
        let page = self.at;
        self.at = if page + 1 == self.to { self.from } else { page + 1 };
        page
    }
}

pub(super) fn scan_and_hot(sizes: Sizes, random: &mut Random) -> Sequence {
    let hot = Zipf::new(sizes.pages / 8, 0.9);
    let mut scan = Scan::new(sizes.pages / 8, sizes.pages);
    sizes.times(
        |at| {
            if at.is_multiple_of(3) { read_or_write(hot.draw(random), random) } else { Touch::read(scan.next()) }
        },
    )
}

/// Of 20 touches 10 are of tables, 4 of an index, 5 of range scans, 1 of a log.
pub(super) fn oltp(sizes: Sizes, random: &mut Random) -> Sequence {
    let (log_pages, index_pages) = (sizes.pages / 16, sizes.pages / 64);
    let tables = sizes.pages - log_pages - index_pages;
    let (rows, index) = (Zipf::new(tables, 0.9), Zipf::new(index_pages, 1.2));
    let mut log = Scan::new(tables + index_pages, sizes.pages);
    let mut range = 0..0;
    sizes.times(|_| match random.below(20) {
        0..10 => read_or_write(rows.draw(random), random),
        10..14 => Touch::read(tables + index.draw(random)),
        14..19 => {
            if range.is_empty() {
                let start = random.below(tables);
                range = start..(start + random.between(RANGE_PAGES.0, RANGE_PAGES.1)).min(tables);
            }
            Touch::read(range.next().unwrap_or(0))
        }
        _ => Touch::write(log.next()),
    })
}

pub(super) fn shifting(sizes: Sizes, random: &mut Random) -> Sequence {
    let count = (sizes.pages * 3 / 64).max(2);
    let mut set: Vec<u64> = (0..count).map(|_| random.below(sizes.pages)).collect();
    let ranks = Zipf::new(count, 0.6);
    let period = count * 10 / 3;
    sizes.times(|at| {
        if at > 0 && at.is_multiple_of(period) {
            for page in &mut set {
                if random.chance(500) {
                    *page = random.below(sizes.pages);
                }
            }
        }
        read_or_write(set[ranks.draw(random) as usize], random)
    })
}

pub(super) fn small_reads(sizes: Sizes, random: &mut Random) -> Sequence {
    let hot = Zipf::new(sizes.pages / 8, 0.9);
    let mut scan = Scan::new(sizes.pages / 8, sizes.pages);
    let mut page = 0;
    sizes.times(|at| {
        if at.is_multiple_of(READS_OF_A_PAGE) {
            let scans = (at / READS_OF_A_PAGE).is_multiple_of(2);
            page = if scans { scan.next() } else { hot.draw(random) };
        }
        Touch::read(page)
    })
}
