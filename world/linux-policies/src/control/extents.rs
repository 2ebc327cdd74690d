//! Pages that the device has written and that still count as under writeback, since their extent has not ended.
//!
//! ext4 ends the writeback of new blocks extent by extent. An extent ends at a multiple of its longest length in the
//! file, and with the flusher's slice.
//!
//! Linux 6.1: `ext4_writepages` has an `io_end` for each extent, `mpage_prepare_extent_to_map` stops at the end of the
//! slice, and `ext4_end_bio` leaves the pages to the end of the `io_end`. Its allocator gives aligned pieces of 2,048
//! blocks (traced).
//!
//! Not modelled: positions of several files in one device's count of pages. Of more than two slices under way, the
//! older ones count as ended.
//!
//! Owns: the begins of the last slices. Does not own: the length of a slice, the sum over all devices (`control`).
//! Invariants: unended pages are pages that the device has written since the last slice but one began.

/// The extents of a device that are under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extents {
    /// Begins of the last two slices, as counts of pages that the device got before.
    slices: [u64; 2],
}

impl Extents {
    /// A slice begins after `submitted` pages.
    pub(crate) fn slice_begins(&mut self, submitted: u64) {
        if self.slices[1] < submitted {
            self.slices = [self.slices[1], submitted];
        }
    }

    /// Unended pages of a device that has written so many.
    pub(crate) fn unended(&self, written: u64, longest: u64) -> u64 {
        let slice = self.slices.iter().rfind(|begin| **begin <= written);
        slice.map_or(0, |slice| written - (written / longest * longest).max(*slice))
    }
}

#[cfg(test)]
mod tests;
