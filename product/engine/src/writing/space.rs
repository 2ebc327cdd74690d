//! Space on the device for accepted data.
//!
//! While a device has plenty of free space, writes are accepted without asking. Once free space comes within a margin
//! (`reserve_below_bytes`) of the dirty data, space for all dirty data is reserved first. From then on each write
//! reserves its space before it is accepted. So the writer learns of a full disk, and not the flusher. Plenty is twice
//! the margin, so that the border is not crossed at every write. A device with limits that free space does not show,
//! such as quotas of users, says that nothing is free. So there the writer learns of a limit, too.
//!
//! Owns: when to reserve, and for which ranges; the pass over the dirty files, one for all writers of the device.
//! Does not own: the count of free bytes (the device's), the stage of the pass (`devices::placing`).
//! Invariants: near the border nothing is accepted before the pass has requested space for all dirty data. A file whose
//! dirty pages got no space refuses its own writers until they get it. Other files' writers go on. On a device that
//! cannot reserve, writes are accepted without a reservation.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::Platform;
use afflux_device::request::Operation;
use afflux_device::settings::Knob;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use super::Writing;
use crate::devices::DeviceState;
use crate::devices::file::FileInner;
use crate::writeback::Writeback;

/// The most files that a pass requests space for at the same time: a refused request may take its time.
const TOGETHER: usize = 8;

/// The most dirty pages that one request reserves space for: the file's lock is held while they are looked for.
const RANGE_PAGES: u64 = 4096;

impl<P: Platform> Writing<P> {
    /// Reserves the range before it is accepted, if the device is nearly full.
    pub(super) async fn reserve_space(&self, file: &Arc<FileInner>, range: &Range<u64>) -> Result<(), Error> {
        let device = &file.device;
        let margin = device.knob(self.base.settings(), Knob::ReserveBytes);
        let owed = device.admission().pages().bytes();
        let plenty = if device.placing.has_begun() { margin.saturating_mul(2) } else { margin };
        if device.free_bytes_hint() >= plenty.saturating_add(owed) {
            device.placing.forget();
            return Ok(());
        }
        if device.placing.try_begin() {
            self.begin_pass(device);
        }
        device.placing.wait().await;
        let unplaced = lock(&file.state).unplaced_from;
        if let Some(from) = unplaced {
            allocate(&self.writeback, file, from).await?;
        }
        Ok(reserve(&self.writeback, file, range).await?)
    }

    /// Starts the tasks that reserve space for all dirty data on the device.
    fn begin_pass(&self, device: &Arc<DeviceState>) {
        let (writeback, device) = (Arc::clone(&self.writeback), Arc::clone(device));
        let tasks = device.worklist().unclean_count().min(TOGETHER);
        let pass = Arc::new(Pass { writeback, device, next_slot: AtomicU64::new(0) });
        for _ in 0..tasks {
            let pass = Arc::clone(&pass);
            self.base.platform.spawn("place", async move {
                while let Some(file) = pass.next_file() {
                    pass.allocate(&file).await;
                }
            });
        }
    }
}

/// A pass over the dirty files of a device. It ends when its last task ends.
struct Pass<P: Platform> {
    writeback: Arc<Writeback<P>>,
    device: Arc<DeviceState>,
    /// Files with slots from here on were not looked at yet.
    next_slot: AtomicU64,
}

impl<P: Platform> Pass<P> {
    fn next_file(&self) -> Option<Arc<FileInner>> {
        loop {
            let from = self.next_slot.load(Ordering::Relaxed);
            let file = self.device.worklist().unclean_from(u32::try_from(from).ok()?)?;
            let next = u64::from(file.pages.slot) + 1;
            if self.next_slot.compare_exchange(from, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return Some(file);
            }
        }
    }

    /// Requests space for the file's dirty pages. An error is stored for the file's own writers.
    async fn allocate(&self, file: &Arc<FileInner>) {
        let known_to_lack = {
            let state = &mut *lock(&file.state);
            let lacks = matches!(state.failures.error(), Some(DeviceError::NoSpace | DeviceError::Quota));
            if lacks && state.failures.pages() > 0 {
                state.unplaced_from.get_or_insert(0);
            }
            state.unplaced_from.is_some()
        };
        if !known_to_lack {
            let _ = allocate(&self.writeback, file, 0).await;
        }
    }
}

impl<P: Platform> Drop for Pass<P> {
    fn drop(&mut self) {
        self.device.placing.ends();
    }
}

/// Reserves space for the file's dirty pages, from a page on. If that fails, the file records the page where it failed.
async fn allocate<P: Platform>(
    writeback: &Arc<Writeback<P>>,
    file: &Arc<FileInner>,
    mut from: u64,
) -> Result<(), DeviceError> {
    let mut result = Ok(());
    let end = file.size().div_ceil(PAGE_BYTES);
    while let Some(pages) = dirty_pages(file, from..end) {
        let bytes = pages.start * PAGE_BYTES..pages.end * PAGE_BYTES;
        result = match reserve(writeback, file, &bytes).await {
            // A file that is gone from the device takes up no space.
            Err(DeviceError::Stale) => Ok(()),
            other => other,
        };
        from = pages.start;
        if result.is_err() {
            break;
        }
        from = pages.end;
    }
    lock(&file.state).unplaced_from = result.is_err().then_some(from);
    result
}

async fn reserve<P: Platform>(
    writeback: &Arc<Writeback<P>>,
    file: &Arc<FileInner>,
    range: &Range<u64>,
) -> Result<(), DeviceError> {
    let operation = Operation::Reserve { offset: range.start, len: range.end - range.start };
    match writeback.call(file, operation).await {
        Err(DeviceError::Unsupported) => Ok(()),
        other => other,
    }
}

/// The first run in the range of pages that are dirty and not being written, as long as the lock may be held for.
fn dirty_pages(file: &FileInner, range: Range<u64>) -> Option<Range<u64>> {
    let (_state, index, nodes) = (lock(&file.state), &file.pages.index, &file.cache.nodes);
    let tags = [Tag::Dirty, Tag::Withheld];
    let first = tags.iter().filter_map(|tag| index.next_tagged(nodes, range.start, *tag)).min();
    let first = first.filter(|page| range.contains(page))?;
    let far = range.end.min(first + file.cache.piece(RANGE_PAGES));
    let is_dirty = |page| tags.iter().any(|tag| index.has_tag(nodes, page, *tag));
    let end = (first + 1..far).find(|page| !is_dirty(*page)).unwrap_or(far);
    file.cache.longest_hold.raise_to(end - first);
    Some(first..end)
}
