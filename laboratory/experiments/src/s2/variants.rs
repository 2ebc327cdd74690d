//! The allocators under test, and the results of a loop with each.
//!
//! Owns: the list of allocators, the definition of a gain.
//! Does not own: the allocators (`frames`), the loops (`loops`).
//! Invariants: gains are against the first allocator; there is no gain if the intervals overlap.

use afflux_frames::linux::{BatchedDrain, ListPerClass, SingleList, Zone, ZoneTunables};
use afflux_frames::{Allocator, Magazines};

use super::loops::{self, Load, Memory, Work};
use crate::statistics::Estimate;

/// One allocator.
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) run: fn(&Load, &Memory) -> Result<f64, String>,
}

/// All allocators; gains are against the first.
pub(super) const VARIANTS: [Variant; 5] = [
    Variant { name: "SingleList", run: run::<Zone<SingleList>> },
    Variant { name: "ListPerClass", run: run::<Zone<ListPerClass>> },
    Variant { name: "BatchedDrain", run: run::<Zone<BatchedDrain>> },
    Variant { name: "ZoneTunables", run: run::<Zone<ZoneTunables>> },
    Variant { name: "afflux", run: run::<Magazines> },
];

/// 512 MiB: from that size on, `batch` and `high` have the published vectors' values, 31 and 186.
const FRAMES: u32 = 1 << 17;

fn run<A: Allocator>(load: &Load, memory: &Memory) -> Result<f64, String> {
    loops::run(&A::new(FRAMES), load, memory)
}

/// The results of a loop, by variant.
pub(super) struct Measured {
    pub(super) work: Work,
    pub(super) threads: usize,
    pub(super) estimates: Vec<Estimate>,
    /// Whether each interval was within the wanted share of its mean.
    pub(super) sure: bool,
    pub(super) instructions: Vec<Option<f64>>,
}

impl Measured {
    /// The percentage by which a variant does more in the same time than the single list, if that is significant.
    pub(super) fn gain_percent(&self, variant: usize) -> Option<f64> {
        let (base, own) = (&self.estimates[0], &self.estimates[variant]);
        own.differs_from(base).then(|| (base.mean / own.mean - 1.0) * 100.0)
    }
}
