//! The ranges of a scenario's operations in a file.
//!
//! Owns: the used range of a file, the distance of its far part, the draws of offsets and lengths.
//! Does not own: the operations (`generate`, `patterns`).
//! Invariants: equal draws give equal ranges.

use afflux_simulator::Random;

pub(crate) const PAGE: u64 = 4096;

/// The range of a file that operations use.
pub(crate) struct Offsets {
    pub(crate) pages: u64,
    far: u64,
    far_per_mille: u64,
    aligned_per_mille: u64,
    pages_max: u64,
    /// Of 1,000 offsets, how many continue the last operation of their task.
    pub(crate) sequential_per_mille: u64,
}

impl Offsets {
    pub(crate) fn draw(random: &mut Random) -> Self {
        Self {
            pages: random.pick(&[1, 2, 4, 16, 64, 200]),
            far: random.pick(&[1 << 20, 1 << 30, 1 << 44, (1 << 62) + 4096]),
            far_per_mille: random.pick(&[0, 0, 20, 200]),
            aligned_per_mille: random.pick(&[0, 300, 800]),
            pages_max: random.pick(&[1, 2, 4, 16]),
            sequential_per_mille: random.pick(&[0, 0, 300, 950]),
        }
    }

    pub(crate) fn offset(&self, random: &mut Random) -> u64 {
        let start = if random.chance(self.far_per_mille) { self.far } else { 0 };
        let offset = start + random.below(self.pages * PAGE);
        if random.chance(self.aligned_per_mille) { offset / PAGE * PAGE } else { align(offset, unit(random)) }
    }

    pub(crate) fn len(&self, random: &mut Random) -> u64 {
        if random.chance(self.aligned_per_mille) {
            return random.between(1, self.pages_max) * PAGE;
        }
        let len = random.between(1, self.pages_max * PAGE);
        align(len, unit(random)).max(1)
    }
}

fn align(number: u64, unit: u64) -> u64 {
    number / unit * unit
}

fn unit(random: &mut Random) -> u64 {
    random.pick(&[1, 1, 512, 4096])
}
