//! Where in a file the operations of a scenario happen.
//!
//! Owns: the range of a file that is used, how far off some of it is, how places and lengths are drawn.
//! Does not own: which operations there are (`generate`, `habits`).
//! Invariants: equal draws give equal places.

use afflux_simulator::Random;

pub(crate) const PAGE: u64 = 4096;

/// Where in a file things happen.
pub(crate) struct Places {
    pub(crate) pages: u64,
    far: u64,
    far_per_mille: u64,
    aligned_per_mille: u64,
    pages_max: u64,
    /// Of 1,000 offsets, how many follow the last operation of their task.
    pub(crate) sequential_per_mille: u64,
}

impl Places {
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
