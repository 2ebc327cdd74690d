//! The allocators under test, and the results of a loop with each.
//!
//! Owns: the list of allocators, the definition of a gain.
//! Does not own: the allocators (`afflux_frames`, `afflux_kernels`), the loops (`loops`).
//! Invariants: gains are against the first allocator; there is no gain if the intervals overlap. The last allocator
//! hands out single frames only.

use afflux_frames::{Effort, FRAME_BYTES, FrameId, Frames};
use afflux_kernels::zone::{BatchedDrain, Form, ListPerClass, Mobility, SingleList, Temperature, Zone, ZoneTunables};

use super::loops::{self, Allocator, Load, LoopKind, Memory};
use crate::statistics::Estimate;

/// One allocator.
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) run: fn(&Load, &Memory) -> Result<f64, String>,
}

/// All allocators; gains are against the first.
pub(super) const VARIANTS: [Variant; 5] = [
    Variant { name: "SingleList", run: run::<SingleList> },
    Variant { name: "ListPerClass", run: run::<ListPerClass> },
    Variant { name: "BatchedDrain", run: run::<BatchedDrain> },
    Variant { name: "ZoneTunables", run: run::<ZoneTunables> },
    Variant { name: "afflux", run: run_ours },
];

/// The allocators that can run a loop.
pub(super) fn variants_of(work: LoopKind) -> &'static [Variant] {
    if work.asks_single_frames() { &VARIANTS } else { &VARIANTS[..VARIANTS.len() - 1] }
}

/// 512 MiB: from that size on, `batch` and `high` have the published vectors' values, 31 and 186.
const FRAMES: u32 = 1 << 17;

fn run<F: Form>(load: &Load, memory: &Memory) -> Result<f64, String> {
    loops::run(&Zone::<F>::new(FRAMES, load.threads), load, memory)
}

fn run_ours(load: &Load, memory: &Memory) -> Result<f64, String> {
    let frames = Frames::new(u64::from(FRAMES) * FRAME_BYTES as u64).map_err(|error| error.to_string())?;
    loops::run(&SingleFrames(frames), load, memory)
}

impl<F: Form> Allocator for Zone<F> {
    #[inline]
    fn allocate(&self, cpu: usize, order: u8, mobility: Mobility) -> Option<u32> {
        self.take(cpu, order, mobility, self.watermarks().low, Temperature::Hot)
    }

    #[inline]
    fn free(&self, cpu: usize, first: u32, order: u8) {
        Zone::free(self, cpu, first, order, Temperature::Hot);
    }
}

/// The product's frames. They have no classes, and a bad free aborts. A thread finds its own CPU.
struct SingleFrames(Frames);

impl Allocator for SingleFrames {
    #[inline]
    fn allocate(&self, _: usize, order: u8, _: Mobility) -> Option<u32> {
        if order == 0 { self.0.allocate(Effort::Normal).map(FrameId::raw) } else { None }
    }

    #[inline]
    fn free(&self, _: usize, frame: u32, _: u8) {
        self.0.free(FrameId::new(frame));
    }
}

/// The results of a loop, by variant of those that can run it.
pub(super) struct Measured {
    pub(super) work: LoopKind,
    pub(super) threads: usize,
    pub(super) estimates: Vec<Estimate>,
    pub(super) instructions: Vec<Option<f64>>,
}

impl Measured {
    /// The percentage by which a variant does more in the same time than the single list, if that is significant.
    pub(super) fn gain_percent(&self, variant: usize) -> Option<f64> {
        let (base, own) = (&self.estimates[0], &self.estimates[variant]);
        own.differs_from(base).then(|| (base.mean / own.mean - 1.0) * 100.0)
    }
}
