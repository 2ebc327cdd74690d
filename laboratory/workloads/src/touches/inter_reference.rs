//! References by the time since a page's last one, independent references, and mixtures: the parts of the generator
//! 2DIO (arXiv 2603.19971).
//!
//! Owns: these generators and their histograms. Does not own: fits to a trace. No trace is available, so we chose the
//! histograms to show hit ratios that Zipf cannot: with cliffs and plateaus over the cache's size.
//! Invariants: with the histogram alone each page returns after a time drawn from it; pages do not differ otherwise.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use afflux_simulator::Random;

use super::touch::{Sequence, Sizes, Touch};

/// Times between two references of a page: share of 100 times, and the range in 1,000ths of the number of pages. Their
/// mean is the number of pages, as it must be if each reference is of one page.
const TIMES: [(u64, u64, u64); 4] = [(45, 10, 20), (25, 100, 150), (20, 500, 700), (10, 7000, 9000)];

/// Shares of 100 references, and of the 1,000ths of pages over which they are spread evenly.
pub(super) struct Steps(&'static [(u64, u64)]);

/// The distribution of independent references.
pub(super) const INDEPENDENT: Steps = Steps(&[(60, 20), (30, 100), (10, 880)]);

impl Steps {
    pub(super) fn draw(&self, pages: u64, random: &mut Random) -> u64 {
        let (mut at, mut first) = (random.below(100), 0);
        for (share, wide) in self.0 {
            let count = (pages * wide / 1000).max(1);
            if at < *share {
                return (first + random.below(count)).min(pages - 1);
            }
            (at, first) = (at - share, first + count);
        }
        pages - 1
    }
}

/// The time of each page's next reference.
pub(super) struct Recency {
    next: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Recency {
    /// Puts every page somewhere within a time between two references. At any instant a longer time holds more pages,
    /// in proportion to its length.
    pub(super) fn of(sizes: Sizes, random: &mut Random) -> Self {
        let by_length = TIMES.map(|(share, from, to)| (share * (from + to), from, to));
        let first = |page: u64, random: &mut Random| {
            let time = time(&by_length, sizes.pages, random);
            Reverse((random.below(time.max(1)), page))
        };
        Self { next: (0..sizes.pages).map(|page| first(page, random)).collect() }
    }

    /// References by recency; `independent_percent` of 100 are drawn independently.
    pub(super) fn touches(mut self, sizes: Sizes, random: &mut Random, independent_percent: u64) -> Sequence {
        sizes.times(|_| {
            if random.below(100) < independent_percent {
                return Touch::read(INDEPENDENT.draw(sizes.pages, random));
            }
            let Some(Reverse((at, page))) = self.next.pop() else { return Touch::read(0) };
            self.next.push(Reverse((at + time(&TIMES, sizes.pages, random).max(1), page)));
            Touch::read(page)
        })
    }
}

/// Draws a time from one of the ranges, chosen by their shares.
fn time(ranges: &[(u64, u64, u64)], pages: u64, random: &mut Random) -> u64 {
    let mut at = random.below(ranges.iter().map(|(share, ..)| share).sum());
    for (share, from, to) in ranges {
        if at < *share {
            return random.between(pages * from / 1000, pages * to / 1000);
        }
        at -= share;
    }
    pages
}
