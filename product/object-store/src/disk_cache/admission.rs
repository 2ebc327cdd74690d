//! Which parts of objects enter the disk cache.
//!
//! A part for which a reader waits enters at once: the next random read finds it. It takes as much credit as it has
//! bytes. A part of a stream enters at its second read within the window. Of a stream are parts that the engine reads
//! ahead, and parts right behind an earlier read.
//!
//! The credit is at first what the disk cache has free. Each byte that is read from the disk gives one back. So parts
//! without a second reader fill the free space once, and then the window decides about all parts. A stream of any
//! length writes no more than the size of the disk cache, also one of many small files.
//!
//! Owns: the credit, the window of recent parts.
//! Does not own: the parts, their order of eviction.
//! Invariants: the window has a fixed size, and the newest part of a slot replaces the oldest one. The credit never
//! exceeds the size of the disk cache. (`tests`)

/// A part's hash.
pub(super) type PartHash = u64;

#[derive(Debug)]
pub(super) struct PartAdmission {
    credit_bytes: u64,
    credit_bytes_max: u64,
    /// The newest parts of each hash's slot, by other bits of their hashes, the oldest first.
    window: Vec<[u32; PARTS_PER_SLOT]>,
}

/// With a slot for each part that the disk has space for, few slots get more than these.
const PARTS_PER_SLOT: usize = 4;

impl PartAdmission {
    /// Begins with free space, and a window for a disk with space for so many parts.
    pub(super) fn new(free_bytes: u64, bytes: u64, parts: usize) -> Self {
        let window = vec![[0; PARTS_PER_SLOT]; parts.max(1)];
        Self { credit_bytes: free_bytes.min(bytes), credit_bytes_max: bytes, window }
    }

    /// Takes credit for a part for which a reader waits. Without credit, the window decides.
    pub(super) fn try_enter(&mut self, part: PartHash, bytes: u64) -> bool {
        if self.credit_bytes < bytes {
            return self.try_enter_again(part);
        }
        self.credit_bytes -= bytes;
        true
    }

    /// Whether the part was read within the window. From now on it is.
    pub(super) fn try_enter_again(&mut self, part: PartHash) -> bool {
        let at = (part % self.window.len() as u64) as usize;
        let mark = (part >> 32) as u32 | 1;
        let slot = &mut self.window[at];
        let found = slot.iter().position(|other| *other == mark);
        slot[found.unwrap_or(0)..].rotate_left(1);
        slot[PARTS_PER_SLOT - 1] = mark;
        found.is_some()
    }

    /// Gives credit for bytes that were read from the disk.
    pub(super) fn credit(&mut self, bytes: u64) {
        self.credit_bytes = (self.credit_bytes + bytes).min(self.credit_bytes_max);
    }
}

#[cfg(test)]
mod tests;
