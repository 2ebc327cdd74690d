//! Sets of pages that nearly fit into a cache: loops, phases, and scans beside them.
//!
//! Owns: these generators. Does not own: their names (`mod`).
//! Invariants: we chose the shares; no trace was fitted.

use afflux_simulator::Random;

use super::touch::{Sequence, Sizes, Touch};
use crate::zipf::Zipf;

/// Every touch of so many is of a page that is used only once.
const SCAN_EVERY: u64 = 8;

pub(super) fn whole_loop(sizes: Sizes, _: &mut Random) -> Sequence {
    sizes.times(|at| Touch::read(at % sizes.pages))
}

/// A phase has half as many touches again as there are pages.
pub(super) fn two_phases(sizes: Sizes, random: &mut Random) -> Sequence {
    let ranks = Zipf::new((sizes.pages * 2 / 3).max(1), 0.8);
    let phase = (sizes.pages * 3 / 2).max(1);
    sizes.times(|at| {
        let rank = ranks.draw(random);
        Touch::read(if (at / phase).is_multiple_of(2) { rank } else { sizes.pages - 1 - rank })
    })
}

pub(super) fn zipf_and_scan(sizes: Sizes, random: &mut Random) -> Sequence {
    let ranks = Zipf::new(sizes.pages, 0.6);
    beside_a_scan(sizes, |_| ranks.draw(random))
}

pub(super) fn loop_and_scan(sizes: Sizes, _: &mut Random) -> Sequence {
    let round = (sizes.pages * 9 / 10).max(1);
    beside_a_scan(sizes, |at| at % round)
}

/// The scan's pages come after the others.
fn beside_a_scan(sizes: Sizes, mut other: impl FnMut(u64) -> u64) -> Sequence {
    sizes.times(|at| {
        let scanned = at / SCAN_EVERY;
        Touch::read(if at.is_multiple_of(SCAN_EVERY) { sizes.pages + scanned } else { other(at - scanned - 1) })
    })
}
