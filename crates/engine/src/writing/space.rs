//! Room on the device for what is accepted.
//!
//! While a device has plenty of free space, writes are accepted without asking. Once what is free
//! comes within a margin (`reserve_below_bytes`) of what is dirty, everything dirty gets its place
//! first, and from then on each write before it is accepted: so the writer learns of a full disk, and
//! not the flusher. Plenty is twice the margin, so that the border is not crossed at every write.
//!
//! Owns: when to reserve, and for which ranges.
//! Does not own: what is free (the device says so).
//! Invariants: nothing is accepted near the border before all that is dirty has its place. A device
//! that cannot reserve is not asked to mean it.

use std::ops::Range;
use std::sync::Arc;

use super::Writing;
use crate::cache::nodes::{Nodes, Tag};
use crate::devices::file::FileInner;
use crate::error::{DeviceError, Error};
use crate::platform::Platform;
use crate::request::Operation;
use crate::settings::Knob;
use crate::units::PAGE_BYTES;
use crate::wait::lock;

impl<P: Platform> Writing<P> {
    /// Near a full device: has the range reserved before it is accepted.
    pub(super) async fn reserve_space(&self, file: &Arc<FileInner>, range: &Range<u64>) -> Result<(), Error> {
        let device = &file.device;
        let margin = device.knob(self.base.settings(), Knob::ReserveBytes);
        let owed = device.admission.pages().bytes();
        let reserving = device.is_reserving();
        let plenty = if reserving { margin.saturating_mul(2) } else { margin };
        if device.free_bytes_hint() >= plenty.saturating_add(owed) {
            device.set_reserving(false);
            return Ok(());
        }
        if !reserving {
            for dirty in device.unclean_files() {
                for range in dirty_ranges(&dirty, &self.base.cache.nodes) {
                    match self.reserve(&dirty, &range).await {
                        // A file that is gone from the device takes up no room.
                        Ok(()) | Err(Error::Device(DeviceError::Stale)) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            device.set_reserving(true);
        }
        self.reserve(file, range).await
    }

    async fn reserve(&self, file: &Arc<FileInner>, range: &Range<u64>) -> Result<(), Error> {
        let operation = Operation::Reserve { offset: range.start, len: range.end - range.start };
        match self.writeback.call(file, operation).await {
            Err(DeviceError::Unsupported) => Ok(()),
            other => other.map_err(Error::Device),
        }
    }
}

/// What of the file is dirty and not being written, in bytes.
fn dirty_ranges(file: &FileInner, nodes: &Nodes) -> Vec<Range<u64>> {
    let _state = lock(&file.state);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut from = 0;
    while let Some(page) = file.pages.index.next_tagged(nodes, from, Tag::Dirty) {
        let (start, end) = (page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
        from = page + 1;
    }
    ranges
}
