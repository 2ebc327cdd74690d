//! A touch of a page, and sequences of touches.
//!
//! Owns: the definition of a touch, the sizes of a sequence, the share of writes. Does not own: the generators.

use afflux_simulator::Random;

/// Writes among 100 touches of a generator with writes.
const WRITE_PERCENT: u64 = 30;

/// A touch of one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// The page.
    pub page: u32,
    /// The page is written to.
    pub write: bool,
    /// The number of following pages that are read ahead if they are absent.
    pub ahead: u8,
}

impl Touch {
    pub(super) fn read(page: u64) -> Self {
        Self { page: page as u32, write: false, ahead: 0 }
    }

    pub(super) fn write(page: u64) -> Self {
        Self { write: true, ..Self::read(page) }
    }
}

/// The size of a sequence.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Pages that are touched repeatedly.
    pub pages: u64,
    /// Frames of the cache; only the loop uses this.
    pub frames: u64,
    /// The number of touches.
    pub touches: u64,
}

impl Sizes {
    /// This many touches of one file's pages, one after the other.
    pub(super) fn times(self, mut next: impl FnMut(u64) -> Touch) -> Sequence {
        (0..self.touches).map(&mut next).collect::<Vec<_>>().into()
    }
}

/// Touches, and the files of their pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sequence {
    /// The touches in order.
    pub touches: Vec<Touch>,
    /// The first page of each file, ascending from 0.
    pub files: Vec<u32>,
}

impl Sequence {
    /// One more than the highest possible page.
    pub fn pages(&self) -> u32 {
        self.touches.iter().map(|touch| touch.page + u32::from(touch.ahead) + 1).max().unwrap_or(0)
    }
}

impl From<Vec<Touch>> for Sequence {
    /// All pages belong to one file.
    fn from(touches: Vec<Touch>) -> Self {
        Self { touches, files: vec![0] }
    }
}

/// A touch of this page, drawn to be a write or a read.
pub(super) fn read_or_write(page: u64, random: &mut Random) -> Touch {
    if random.below(100) < WRITE_PERCENT { Touch::write(page) } else { Touch::read(page) }
}
