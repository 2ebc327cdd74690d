//! How hard an allocation may try, and the free frames that it leaves to others.
//!
//! Owns: the efforts, the formula of the marks.
//! Does not own: the count of free frames.
//! Invariants: min ≤ low ≤ high.

#[cfg(test)]
mod tests;

/// How hard an allocation may try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// May use the reserve, since progress of writeback depends on it.
    Reserve,
    /// For a demand read or a write.
    Normal,
    /// Fails at once when frames are short: readahead.
    NoRetry,
}

/// Marks on the number of free frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watermarks {
    /// Only [`Effort::Reserve`] goes below this.
    pub min: u32,
    /// [`Effort::NoRetry`] stops here, and background reclaim starts.
    pub low: u32,
    /// Background reclaim stops here.
    pub high: u32,
}

impl Watermarks {
    /// The marks of an arena: 1/256 of the frames is for writeback's progress (4 to 1,024), and readahead stops with
    /// 1/64 left (8 to 8,192). Linux's square root would leave a cache of a few MiB nothing to use.
    pub fn of(frames: u32) -> Self {
        let low = (frames / 64).clamp(8, 8192);
        Self { min: (frames / 256).clamp(4, 1024), low, high: low + low / 2 }
    }

    /// The number of frames that this effort leaves free.
    pub const fn floor(&self, effort: Effort) -> u32 {
        match effort {
            Effort::Reserve => 0,
            Effort::Normal => self.min,
            Effort::NoRetry => self.low,
        }
    }
}
