//! Portions: where runs are dear and many payers wait, a payer dirties a long run at a time, then waits for its cost.
//!
//! A hundred writers that enter evenly own a hundredth of the band each. Their runs are so short that a disk seeks most
//! of the time, and a flash stick copies a whole block for each. A band stretched for them makes runs longer, and a
//! sync of everything that much later. A portion makes one payer's run long; the others' follow later. The device is at
//! full speed with few runs dirty, each payer has the same part as before, and a light writer waits little. Portions
//! end in their file at multiples of their size, as flash blocks and file systems' extents do.
//!
//! Owns: when there are portions and how large they are; how much of the given portions is not dirtied yet.
//! Does not own: debts (`payer`), the queue (the engine's).
//! Invariants: a given portion counts as backlog until it is dirtied or expires, so that the band bounds both. One
//! payer at a time is admitted from the queue.

use std::collections::BTreeMap;

use crate::prices::PAGE_BYTES;
use crate::{Band, Cost, DirectionPrices, Knobs, MIB, MILLISECOND};

/// A band holds so many portions, as far as it may be stretched.
const IN_BAND: Cost = 8;
/// A portion takes at most this part of the band.
const PART_MAX: Cost = 4;
/// The smallest portion.
const BYTES_MIN: u64 = MIB;
/// A payer that has not dirtied its portion after so long gets a smaller one next.
const LASTS_NS: u64 = 1000 * MILLISECOND;
/// The next portion is halved this often at most.
const HALVINGS_MAX: u32 = 7;
/// The most that a portion may cost if its payer's runs are short, in portions.
const COST_MAX: Cost = 2;
/// A payer admitted from the queue takes its portion within this time.
const TAKEN_NS: u64 = 100 * MILLISECOND;

/// The band and the bytes of a portion, if there are portions. `stretched` is the band for `payers` that enter evenly.
pub(super) fn terms(knobs: &Knobs, prices: &DirectionPrices, stretched: Band, payers: u64) -> Option<(Band, u64)> {
    if knobs.portion_bytes == 0 || stretched.end_ns <= knobs.budget_ns {
        return None;
    }
    let mut bytes = knobs.portion_bytes;
    let wanted_ns = prices.cost_ns(1, bytes).saturating_mul(IN_BAND.min(payers + 1));
    let end_ns = wanted_ns.clamp(knobs.budget_ns, stretched.end_ns);
    while bytes / 2 >= BYTES_MIN && prices.cost_ns(0, bytes) > end_ns / PART_MAX {
        bytes /= 2;
    }
    Some((Band { end_ns }, bytes))
}

/// The portions given out on a device.
#[derive(Debug, Default)]
pub(super) struct Portions {
    /// By number: the oldest first, which is the first to expire.
    open: BTreeMap<u64, Open>,
    /// The sum over `open`.
    remaining_ns: Cost,
    given: u64,
    /// Until then a payer admitted from the queue may take one.
    awaited_until_ns: u64,
}

#[derive(Debug)]
struct Open {
    remaining_ns: Cost,
    until_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Portion {
    number: u64,
    remaining_pages: u64,
    remaining_ns: Cost,
}

/// The memory of a payer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PayerPortion {
    portion: Option<Portion>,
    halvings: u32,
    /// The payer was sent to the queue.
    queued: bool,
}

/// A portion that a payer asks for.
pub(super) struct PortionRequest<'a> {
    pub(super) band: Band,
    pub(super) backlog_ns: Cost,
    pub(super) prices: &'a DirectionPrices,
    /// Size of a portion.
    pub(super) bytes: u64,
    /// The page that the payer writes.
    pub(super) page: u64,
    /// The payer was admitted from the queue, so it gets its portion even if the band is full.
    pub(super) is_admitted: bool,
}

impl Portions {
    /// The cost of pages not dirtied yet.
    pub(super) fn remaining_ns(&mut self, now_ns: u64) -> Cost {
        self.expire(now_ns);
        self.remaining_ns
    }

    /// Drops expired portions. Returns how many entries it looked at: at most one more than it dropped.
    fn expire(&mut self, now_ns: u64) -> usize {
        let mut looks = 0;
        while let Some(oldest) = self.open.first_entry() {
            looks += 1;
            if oldest.get().until_ns > now_ns {
                break;
            }
            self.remaining_ns -= oldest.remove().remaining_ns;
        }
        looks
    }

    /// Lowers the rest of an open portion. A portion with nothing remaining is closed.
    fn set_remaining(&mut self, number: u64, remaining_ns: Cost) {
        let Some(open) = self.open.get_mut(&number) else { return };
        self.remaining_ns -= open.remaining_ns - remaining_ns;
        open.remaining_ns = remaining_ns;
        if remaining_ns == 0 {
            self.open.remove(&number);
        }
    }

    /// Whether one more payer may be admitted from the queue; that payer is then awaited.
    pub(super) fn try_admit_one(&mut self, now_ns: u64, band: Band, backlog_ns: Cost, portion_ns: Cost) -> bool {
        let with_it_ns = backlog_ns.saturating_add(self.remaining_ns(now_ns)).saturating_add(portion_ns);
        let has_room = now_ns >= self.awaited_until_ns && with_it_ns <= band.end_ns;
        let lets = has_room || backlog_ns <= band.free_ns();
        if lets {
            self.awaited_until_ns = now_ns.saturating_add(TAKEN_NS);
        }
        lets
    }

    fn give(&mut self, now_ns: u64, pages: u64, cost_ns: Cost) -> Portion {
        self.given += 1;
        self.open.insert(self.given, Open { remaining_ns: cost_ns, until_ns: now_ns.saturating_add(LASTS_NS) });
        self.remaining_ns += cost_ns;
        Portion { number: self.given, remaining_pages: pages, remaining_ns: cost_ns.saturating_mul(COST_MAX) }
    }
}

impl PayerPortion {
    /// The payer dirtied pages of this cost.
    pub(super) fn dirtied(&mut self, portions: &mut Portions, pages: u64, cost_ns: Cost) {
        let Some(portion) = self.portion.take() else { return };
        let Some(open_ns) = portions.open.get(&portion.number).map(|open| open.remaining_ns) else {
            self.halvings = (self.halvings + 1).min(HALVINGS_MAX);
            return;
        };
        let (remaining_pages, remaining_ns) =
            (portion.remaining_pages.saturating_sub(pages), portion.remaining_ns.saturating_sub(cost_ns));
        if remaining_pages == 0 || remaining_ns == 0 {
            portions.set_remaining(portion.number, 0);
            self.halvings = 0;
        } else {
            portions.set_remaining(portion.number, open_ns.saturating_sub(cost_ns).max(1).min(open_ns));
            self.portion = Some(Portion { remaining_pages, remaining_ns, ..portion });
        }
    }

    /// Remaining pages of the payer's portion.
    pub(super) fn remaining_pages(&self) -> Option<u64> {
        self.portion.map(|portion| portion.remaining_pages)
    }

    /// The payer's own part of the given portions.
    pub(super) fn own_ns(&self, portions: &Portions) -> Cost {
        self.portion.and_then(|portion| portions.open.get(&portion.number)).map_or(0, |open| open.remaining_ns)
    }

    /// The payer goes to the queue.
    pub(super) fn queues(&mut self) {
        (self.queued, self.portion) = (true, None);
    }

    /// Whether the payer was in the queue before.
    pub(super) fn take_queued(&mut self, portions: &mut Portions) -> bool {
        let queued = std::mem::take(&mut self.queued);
        if queued {
            portions.awaited_until_ns = 0;
        }
        queued
    }

    /// The pages of a portion that the payer takes, up to a multiple of its size from the page where it writes; none if
    /// the band is full.
    pub(super) fn takes(&mut self, portions: &mut Portions, now_ns: u64, request: &PortionRequest<'_>) -> Option<u64> {
        let PortionRequest { band, backlog_ns, .. } = *request;
        let pages = (request.bytes >> self.halvings).max(BYTES_MIN >> self.halvings) / PAGE_BYTES;
        let pages = pages - request.page % pages;
        let cost_ns = request.prices.cost_ns(1, pages * PAGE_BYTES);
        let is_full = backlog_ns > band.free_ns() && backlog_ns.saturating_add(cost_ns) > band.end_ns;
        if is_full && !request.is_admitted {
            return None;
        }
        self.portion = Some(portions.give(now_ns, pages, cost_ns));
        Some(pages)
    }
}

#[cfg(test)]
mod tests;
