//! Readers that go backward, or leap by the same distance each time.
//!
//! Owns: how a stride is told from chance, the pages read ahead of it.
//! Does not own: reads in order (`afflux`).
//! Invariants: only equal leaps arm a stride, and it takes more of them the more reads of the file were random. Gaps
//! that are cheaper to read than to leap over are read; otherwise single records, one, two, four at a time.

use std::ops::Range;

use super::seam::{Ahead, AheadTerms};

/// Equal leaps that arm a stride.
const LEAPS: u8 = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct Strides {
    leap: i64,
    equal: u8,
    armed: Option<Armed>,
}

/// A reader that leaps.
#[derive(Clone, Copy, Debug)]
struct Armed {
    leap: i64,
    /// Pages of a record.
    record: u64,
    /// The reader's position.
    at: u64,
    /// Records read ahead from there on.
    ahead: u64,
    /// Records of the last batch: a read of its first one triggers more.
    batch: u64,
}

impl Strides {
    /// A read of `pages` missed, after a read at `from`; returns whether there is a stride now.
    pub(super) fn try_arm(&mut self, from: u64, pages: &Range<u64>, doubt: u8) -> bool {
        let leap = pages.start.wrapping_sub(from) as i64;
        let record = pages.end - pages.start;
        self.equal = if leap == self.leap { self.equal.saturating_add(1) } else { 1 };
        self.leap = leap;
        let far = leap.unsigned_abs() > record || leap.unsigned_abs() == record && leap < 0;
        let arms = far && self.equal >= LEAPS + doubt / 4;
        if arms {
            self.armed = Some(Armed { leap, record, at: pages.start, ahead: 0, batch: 0 });
        }
        arms
    }

    pub(super) fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    /// No reader follows the stride.
    pub(super) fn stop(&mut self) {
        self.armed = None;
    }

    /// Reads are in order.
    pub(super) fn disarm(&mut self) {
        *self = Self::default();
    }

    /// The pages to read when the stride has just been armed.
    pub(super) fn reads_first(&mut self, terms: &AheadTerms) -> Ahead {
        self.armed.as_mut().map_or(Ahead::NONE, |armed| armed.more(terms))
    }

    /// Returns whether the stride leads to a read at this place; if it is time, with more pages to read ahead.
    pub(super) fn reads(&mut self, start: u64, terms: &AheadTerms) -> Option<Ahead> {
        let armed = self.armed.as_mut()?;
        let leaps = strides_between(armed.at, start, armed.leap)?;
        if leaps > armed.ahead + 1 {
            return None;
        }
        armed.at = start;
        armed.ahead = armed.ahead.saturating_sub(leaps);
        Some(if armed.ahead < armed.batch.max(1) { armed.more(terms) } else { Ahead::NONE })
    }

    /// Like `trigger` of a window: a forward reader is looked at again at the next record that matters.
    pub(super) fn trigger(&self) -> Option<u64> {
        let armed = self.armed.filter(|armed| armed.ahead > 0)?;
        let records = armed.ahead.saturating_sub(armed.batch) + 1;
        let next = armed.at.checked_add_signed(armed.leap.saturating_mul(records as i64));
        if armed.leap < 0 { Some(0) } else { next }
    }
}

impl Armed {
    fn more(&mut self, terms: &AheadTerms) -> Ahead {
        let through = self.leap.unsigned_abs() - self.record.min(self.leap.unsigned_abs()) <= terms.window_sizes.gap;
        // Pages that one more record takes of the window.
        let pages = if through { self.leap.unsigned_abs() } else { self.record };
        let most = terms.window_sizes.most.min((terms.remaining)() / 2).min(terms.most) / pages.max(1);
        let least = if through { terms.window_sizes.first / pages.max(1) } else { 1 };
        let records = (2 * self.batch).max(least).max(1).min(most);
        let (from, to) = (self.position(self.ahead + 1), self.position(self.ahead + records));
        let (Some(from), Some(to)) = (from, to.or(Some(0))) else { return Ahead::NONE };
        if records == 0 {
            return Ahead::NONE;
        }
        (self.ahead, self.batch) = (self.ahead + records, records);
        if through && self.leap > 0 {
            let before = from - self.leap.unsigned_abs() + self.record;
            Ahead::one(before..to + self.record)
        } else if through {
            Ahead::one(to..from + self.leap.unsigned_abs().max(self.record))
        } else {
            Ahead { first: from..from + self.record, step: self.leap, count: records }
        }
    }

    /// Where the record this many leaps ahead begins; `None` before the file's start.
    fn position(&self, records: u64) -> Option<u64> {
        self.at.checked_add_signed(self.leap.checked_mul(records as i64)?)
    }
}

/// The number of leaps from one place to another, at least one.
fn strides_between(from: u64, to: u64, leap: i64) -> Option<u64> {
    let between = to.wrapping_sub(from) as i64;
    (between != 0 && between % leap == 0 && between / leap > 0).then(|| (between / leap) as u64)
}
