//! The allocators that take part, and how a loop went with each.
//!
//! Owns: which there are, what a gain is.
//! Does not own: the allocators (`frames`), the loops (`loops`).
//! Invariants: the first is the one that gains are against; there is no gain where the intervals overlap.

use afflux_frames::linux::{BatchedDrain, ListPerClass, SingleList, Zone, ZoneTunables};
use afflux_frames::{Allocator, Magazines};

use super::loops::{self, Load, Memory, Work};
use crate::statistics::Estimate;

/// One allocator.
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) run: fn(&Load, &Memory) -> Result<f64, String>,
}

/// All, the one that gains are against first.
pub(super) const VARIANTS: [Variant; 5] = [
    Variant { name: "SingleList", run: run::<Zone<SingleList>> },
    Variant { name: "ListPerClass", run: run::<Zone<ListPerClass>> },
    Variant { name: "BatchedDrain", run: run::<Zone<BatchedDrain>> },
    Variant { name: "ZoneTunables", run: run::<Zone<ZoneTunables>> },
    Variant { name: "afflux", run: run::<Magazines> },
];

/// 512 MiB: from that size on `batch` and `high` are those of the published vectors, 31 and 186.
const FRAMES: u32 = 1 << 17;

fn run<A: Allocator>(load: &Load, memory: &Memory) -> Result<f64, String> {
    loops::run(&A::new(FRAMES), load, memory)
}

/// How a loop went, by variant.
pub(super) struct Measured {
    pub(super) work: Work,
    pub(super) threads: usize,
    pub(super) estimates: Vec<Estimate>,
    /// Whether each interval was within the wanted share of its mean.
    pub(super) sure: bool,
    pub(super) instructions: Vec<Option<f64>>,
}

impl Measured {
    /// By how many percent more a variant does in the same time than the single list, if that is sure.
    pub(super) fn gain_percent(&self, variant: usize) -> Option<f64> {
        let (base, own) = (&self.estimates[0], &self.estimates[variant]);
        own.differs_from(base).then(|| (base.mean / own.mean - 1.0) * 100.0)
    }
}
