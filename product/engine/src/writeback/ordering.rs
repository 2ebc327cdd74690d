//! Dirty pages that stay off the device: until their holder lets go, or until other bytes are durable.
//!
//! Owns: the wait until a range is withheld, the order of ranges, the room for withheld pages.
//! Does not own: the ranges and their pages (`devices::file`), syncs (`sync`).
//! Invariants: no range waits for itself, through any number of others. Withheld pages take at most a part of their
//! device's dirty limit; beyond that, earlier bytes are synced, or the writer is refused.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use super::Writeback;
use crate::client::Client;
use crate::devices::file::{Earlier, FileInner, Obstacles, RangeNumber, overlap};
use crate::error::Error;
use crate::platform::Platform;
use crate::units::PAGE_BYTES;
use crate::wait::lock;

/// Withheld pages may take this part of their device's dirty limit.
const ROOM_PART: u64 = 4;
/// The most withheld ranges of a file.
const RANGES_MAX: usize = 4096;

/// A range whose bytes stay off the device until this is dropped.
pub(crate) struct Holder {
    file: Arc<FileInner>,
    number: RangeNumber,
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.file.let_go(self.number);
    }
}

impl<P: Platform> Writeback<P> {
    /// [`Engine::withhold`](crate::Engine::withhold).
    pub(crate) async fn withhold(self: &Arc<Self>, file: &Arc<FileInner>, range: &Range<u64>) -> Result<Holder, Error> {
        self.room_for_range(file).await?;
        let pages = FileInner::pages_of(range);
        let holder = Holder { file: Arc::clone(file), number: file.withhold(pages.clone(), None) };
        unmarked(file, &pages).await;
        Ok(holder)
    }

    /// [`Engine::order_after`](crate::Engine::order_after).
    pub(crate) async fn order_after(
        self: &Arc<Self>,
        (file, range): (&Arc<FileInner>, &Range<u64>),
        (first, earlier): (&Arc<FileInner>, &Range<u64>),
    ) -> Result<(), Error> {
        self.room_for_range(file).await?;
        let pages = FileInner::pages_of(range);
        {
            let _one_at_a_time = lock(&self.ordering);
            if waits_for((first, earlier), (file, &pages)) {
                return Err(Error::OrderCycle);
            }
            let after = Earlier { file: Arc::downgrade(first), range: earlier.clone() };
            let number = file.withhold(pages.clone(), Some(after));
            if !self.is_awaited(first, (file, number), earlier) {
                file.let_go(number);
            }
        }
        unmarked(file, &pages).await;
        Ok(())
    }

    /// Returns once one more range of the file may be withheld.
    async fn room_for_range(self: &Arc<Self>, file: &Arc<FileInner>) -> Result<(), Error> {
        while lock(&file.state).withheld.ranges() >= RANGES_MAX {
            let next = lock(&file.state).withheld.first_order();
            let Some(order) = next else { return Err(Error::TooManyWithheld { max: RANGES_MAX }) };
            self.sync_earlier(file, &order, None).await?;
        }
        Ok(())
    }

    /// Notes that a range waits for bytes of `first`. Returns false if all of them are durable.
    fn is_awaited(&self, first: &Arc<FileInner>, range: (&Arc<FileInner>, RangeNumber), earlier: &Range<u64>) -> bool {
        let mut state = lock(&first.state);
        if state.is_discarded() || state.is_durable() {
            return false;
        }
        state.withheld.add_later(range.0, range.1, earlier.clone());
        first.owe_awaited_flush(&mut state, self.base.now());
        true
    }

    /// Makes bytes durable that have to be before bytes of the range, and lets go of these. Returns false if all bytes of
    /// the range may be written.
    ///
    /// # Errors
    /// A holder withholds some bytes of the range; or the error of a sync.
    pub(super) async fn clears_way(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        client: Option<&Client>,
        range: &Range<u64>,
    ) -> Result<bool, Error> {
        let Obstacles { holder, earlier } = file.obstacles(range);
        if holder {
            return Err(Error::Withheld);
        }
        let Some(order) = earlier else { return Ok(false) };
        self.sync_earlier(file, &order, client).await?;
        Ok(true)
    }

    /// Syncs the bytes that a range of the file waits for, and lets go of it unless it waits for more of them by now.
    /// On the heap, since such a sync may need another.
    fn sync_earlier<'a>(
        self: &'a Arc<Self>,
        file: &'a Arc<FileInner>,
        (number, earlier): &'a (RangeNumber, Earlier),
        client: Option<&'a Client>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> {
        Box::pin(async move {
            let Some(first) = earlier.file.upgrade() else {
                file.let_go(*number);
                return Ok(());
            };
            self.sync(&first, client, earlier.range.clone()).await?;
            // Without work, no round did this.
            self.let_go_later(&first, 0, &(0..0));
            Ok(())
        })
    }

    /// Lets go of ranges whose bytes of the file a sync of `range` made durable, with places up to `last`. If the file is
    /// durable or gone, all ranges are let go.
    pub(crate) fn let_go_later(&self, file: &Arc<FileInner>, last: u64, range: &Range<u64>) {
        let freed = {
            let mut state = lock(&file.state);
            if state.is_durable() || state.is_discarded() {
                state.withheld.take_later(u64::MAX, &(0..u64::MAX))
            } else {
                let freed = state.withheld.take_later(last, range);
                if state.withheld.last_later().is_some() {
                    file.owe_awaited_flush(&mut state, self.base.now());
                }
                freed
            }
        };
        freed.into_iter().for_each(|(file, number)| file.upgrade().into_iter().for_each(|file| file.let_go(number)));
    }

    /// Returns once the pages may become dirty, if they would be withheld.
    ///
    /// # Errors
    /// Holders withhold as much as they may; or the error of a sync of earlier bytes.
    pub(crate) async fn room_to_withhold(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        pages: &Range<u64>,
    ) -> Result<(), Error> {
        let device = &file.device;
        let (more, max) = (pages.end - pages.start, (self.base.devices.totals.part_pages() / ROOM_PART).max(1));
        let lacks = || device.charges.unwritable.withheld_pages() + more > max;
        if !lock(&file.state).withheld.touches(pages) || !lacks() {
            return Ok(());
        }
        for other in device.agenda().unclean_files().iter().filter(|other| other.withholds()) {
            while let Some(order) = other.obstacles(&(0..u64::MAX)).earlier
                && lacks()
            {
                self.sync_earlier(other, &order, None).await?;
            }
        }
        match lacks() {
            true => Err(Error::TooMuchWithheld { max_bytes: max * PAGE_BYTES }),
            false => Ok(()),
        }
    }
}

/// Whether bytes of a file wait, through any number of other ranges, for pages of `last`.
fn waits_for(first: (&Arc<FileInner>, &Range<u64>), last: (&Arc<FileInner>, &Range<u64>)) -> bool {
    let mut left = vec![(Arc::clone(first.0), first.1.clone())];
    while let Some((file, range)) = left.pop() {
        let pages = FileInner::pages_of(&range);
        if Arc::ptr_eq(&file, last.0) && overlap(&pages, last.1) {
            return true;
        }
        let earlier = lock(&file.state).withheld.earlier(&pages);
        left.extend(earlier.into_iter().filter_map(|earlier| Some((earlier.file.upgrade()?, earlier.range))));
    }
    false
}

/// Returns once no sync that began earlier has pages of the range written.
async fn unmarked(file: &FileInner, pages: &Range<u64>) {
    file.queue.until(|| (!file.is_marked_within(pages)).then_some(())).await;
}
