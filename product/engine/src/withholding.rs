//! Dirty pages that stay off the device: until their holder lets go, or until other bytes are durable.
//!
//! Owns: the wait until a range is withheld, the order of ranges, the limit of withheld pages.
//! Does not own: the ranges and their pages (`devices::file`), syncs (`sync`).
//! Invariants: no range waits for itself, through any number of others. Withheld pages take at most a part of their
//! device's dirty limit; beyond that, earlier bytes are synced, or the writer is refused. A chain of orders is followed
//! in a loop, and each link once, so that its length costs heap memory alone
//! (`a_chain_of_orders_as_long_as_two_files_may_have_is_synced_and_dropped`). A search for circles visits each range
//! once, and ends when one of its two sides is through (`equal_orders_along_a_chain_are_searched_once`).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use afflux_device::client::Client;
use afflux_device::error::Error;
use afflux_device::platform::Platform;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use crate::devices::file::{Earlier, FileInner, Obstacles};
use crate::devices::withholding::{Ordered, RangeId, do_overlap};
use crate::dirty::unwritable_pages_max;
use crate::writeback::Writeback;

/// Withheld pages may take this part of their device's dirty limit.
const WITHHELD_PART: u64 = 4;
/// The most withheld ranges of a file.
const RANGES_MAX: usize = 4096;

/// A range whose bytes stay off the device until this is dropped.
pub(crate) struct RangeHolder {
    file: Arc<FileInner>,
    number: RangeId,
}

impl Drop for RangeHolder {
    fn drop(&mut self) {
        self.file.let_go(self.number);
    }
}

impl<P: Platform> Writeback<P> {
    /// [`Engine::withhold`](crate::Engine::withhold).
    pub(crate) async fn withhold(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: &Range<u64>,
    ) -> Result<RangeHolder, Error> {
        self.wait_for_range(file).await?;
        let pages = FileInner::pages_of(range);
        let holder = RangeHolder { file: Arc::clone(file), number: file.withhold(&pages) };
        unmarked(file, &pages).await;
        Ok(holder)
    }

    /// [`Engine::order_after`](crate::Engine::order_after).
    pub(crate) async fn order_after(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: &Range<u64>,
        first: &Arc<FileInner>,
        earlier: &Range<u64>,
    ) -> Result<(), Error> {
        self.wait_for_range(file).await?;
        let pages = FileInner::pages_of(range);
        {
            let _one_at_a_time = lock(&self.ordering);
            if must_wait_for((first, &FileInner::pages_of(earlier)), (file, &pages)) {
                return Err(Error::OrderCycle);
            }
            let ordered = file.order(&pages, Earlier { file: Arc::downgrade(first), range: earlier.clone() });
            if !self.is_awaited(first, file, &ordered) {
                file.let_go(ordered.number);
            }
        }
        unmarked(file, &pages).await;
        Ok(())
    }

    /// Returns once one more range of the file may be withheld.
    async fn wait_for_range(self: &Arc<Self>, file: &Arc<FileInner>) -> Result<(), Error> {
        while lock(&file.state).withheld.ranges() >= RANGES_MAX {
            let next = lock(&file.state).withheld.first_order();
            let Some(order) = next else { return Err(Error::TooManyWithheld { max: RANGES_MAX }) };
            self.sync_earlier(file, &order).await?;
        }
        Ok(())
    }

    /// Notes that a range of `file` waits for bytes of `first`. Returns false if all of them are durable.
    fn is_awaited(&self, first: &Arc<FileInner>, file: &Arc<FileInner>, ordered: &Ordered) -> bool {
        let mut state = lock(&first.state);
        if state.is_discarded() || state.is_durable() {
            return false;
        }
        state.withheld.later().add(file, ordered);
        first.owe_awaited_flush(&mut state, self.base.now());
        true
    }

    /// Syncs a range of which some bytes have to wait for others, after those. An earlier sync may have to wait for
    /// others as well: they stand on a list, and not in each other, so that a long chain needs no stack.
    pub(crate) async fn sync_in_order(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        range: Range<u64>,
        order: (RangeId, Earlier),
        client: Option<&Client>,
    ) -> Result<(), Error> {
        let (mut later, mut now) = (Vec::new(), (Arc::clone(file), range));
        let mut next = Some(order);
        loop {
            match next.take() {
                Some((number, earlier)) => match earlier.file.upgrade() {
                    Some(first) => later.push(std::mem::replace(&mut now, (first, earlier.range))),
                    None => now.0.let_go(number),
                },
                None => match later.pop() {
                    // Without work, no round did this.
                    Some(waited) => self.let_go_later(&std::mem::replace(&mut now, waited).0, 0, &(0..0)),
                    None => return Ok(()),
                },
            }
            next = self.sync_or_order(&now.0, client, &now.1).await?;
        }
    }

    /// What bytes of the range have to wait for.
    ///
    /// # Errors
    /// A holder withholds some bytes of the range.
    pub(crate) fn order_of(file: &FileInner, range: &Range<u64>) -> Result<Option<(RangeId, Earlier)>, Error> {
        let Obstacles { holder, earlier } = file.obstacles(range);
        if holder { Err(Error::Withheld) } else { Ok(earlier) }
    }

    /// Syncs the bytes that a range of the file waits for, and lets go of it unless it waits for more of them by now.
    async fn sync_earlier(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        (number, earlier): &(RangeId, Earlier),
    ) -> Result<(), Error> {
        let Some(first) = earlier.file.upgrade() else {
            file.let_go(*number);
            return Ok(());
        };
        self.sync(&first, None, earlier.range.clone()).await?;
        // Without work, no round did this.
        self.let_go_later(&first, 0, &(0..0));
        Ok(())
    }

    /// Lets go of ranges whose bytes of the file a sync of `range` made durable, with positions up to `last`. A sync
    /// does not write bytes that wait for others themselves: ranges that wait for such bytes stay. If the file is
    /// durable or gone, all ranges are let go.
    pub(crate) fn let_go_later(&self, file: &Arc<FileInner>, last: u64, range: &Range<u64>) {
        let freed = {
            let state = &mut *lock(&file.state);
            if state.is_durable() || state.is_discarded() {
                state.withheld.later().take(u64::MAX, &(0..u64::MAX), |_| false)
            } else {
                let mut later = std::mem::take(state.withheld.later());
                let freed = later.take(last, range, |range| file.has_withheld_in(state, range));
                *state.withheld.later() = later;
                if state.withheld.later().last_position().is_some() {
                    file.owe_awaited_flush(state, self.base.now());
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
    pub(crate) async fn wait_to_withhold(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        pages: &Range<u64>,
    ) -> Result<(), Error> {
        let device = &file.device;
        if !lock(&file.state).withheld.has_any_in(pages) {
            return Ok(());
        }
        let more = pages.end - pages.start;
        let max = (self.base.devices.totals.part_pages() / WITHHELD_PART).max(1);
        // Beyond the policy's own limit earlier bytes are synced, but nobody is refused.
        let synced_above = max.min(unwritable_pages_max(&self.base.devices, device, self.base.moment()));
        let lacks = |max: u64| device.charges.unwritable.withheld_pages() + more > max;
        let mut next = 0;
        while lacks(synced_above)
            && let Some(other) = device.worklist().withholding_from(next)
        {
            next = other.pages.slot + 1;
            while let Some(order) = other.obstacles(&(0..u64::MAX)).earlier
                && lacks(synced_above)
            {
                self.sync_earlier(&other, &order).await?;
            }
        }
        match lacks(max) {
            true => Err(Error::TooMuchWithheld { max_bytes: max * PAGE_BYTES }),
            false => Ok(()),
        }
    }
}

/// Whether pages of a file wait, through any number of other ranges, for pages of `last`. Searches from both ends
/// alternately: mostly one of them has few neighbours.
fn must_wait_for(first: (&Arc<FileInner>, &Range<u64>), last: (&Arc<FileInner>, &Range<u64>)) -> bool {
    if Arc::ptr_eq(first.0, last.0) && do_overlap(first.1, last.1) {
        return true;
    }
    let (mut before, mut after) = (Side::default(), Side::default());
    before.visit(Arc::clone(first.0), first.1.clone());
    after.visit(Arc::clone(last.0), last.1.clone());
    let reaches = |file: &Arc<FileInner>, pages: &Range<u64>, end: (&Arc<FileInner>, &Range<u64>)| {
        Arc::ptr_eq(file, end.0) && do_overlap(pages, end.1)
    };
    loop {
        let Some((file, pages)) = before.pending.pop() else { return false };
        if reaches(&file, &pages, last) {
            return true;
        }
        let earlier = lock(&file.state).withheld.orders_within(&pages);
        for earlier in earlier {
            if let Some(file) = earlier.file.upgrade() {
                before.visit(file, FileInner::pages_of(&earlier.range));
            }
        }
        let Some((file, pages)) = after.pending.pop() else { return false };
        if reaches(&file, &pages, first) {
            return true;
        }
        let bytes = pages.start * PAGE_BYTES..pages.end.saturating_mul(PAGE_BYTES);
        let later = lock(&file.state).withheld.later().after(&bytes);
        for (file, number) in later {
            // It may have been let go since.
            let Some(file) = file.upgrade() else { continue };
            let pages = lock(&file.state).withheld.ordered_pages(number);
            pages.into_iter().for_each(|pages| after.visit(Arc::clone(&file), pages));
        }
    }
}

/// A search from one end of the ranges that wait for each other.
#[derive(Default)]
struct Side {
    pending: Vec<(Arc<FileInner>, Range<u64>)>,
    /// Ranges that were found, by file slot.
    seen: BTreeSet<(u32, u64, u64)>,
}

impl Side {
    fn visit(&mut self, file: Arc<FileInner>, pages: Range<u64>) {
        if self.seen.insert((file.pages.slot, pages.start, pages.end)) {
            self.pending.push((file, pages));
        }
    }
}

/// Returns once no sync that began earlier has pages of the range written.
async fn unmarked(file: &FileInner, pages: &Range<u64>) {
    file.queue.until(|| (!file.is_marked_within(pages)).then_some(())).await;
}
