//! Readers that go backward, or leap by the same distance each time.
//!
//! Owns: how a stride is told from chance, what is read ahead of it.
//! Does not own: what is read in order (`afflux`).
//! Invariants: a stride is armed by equal leaps alone, and by more of them the more reads of the file were at random.
//! Gaps that are cheaper to read than to leap over are read; otherwise single records, one, two, four at a time.

use std::ops::Range;

use super::{Ahead, Terms};

/// Equal leaps that arm it.
const LEAPS: u8 = 2;

/// A file's.
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
    /// Where it reads.
    at: u64,
    /// Records from there on that are read ahead.
    ahead: u64,
    /// Of these, how many came last: with the first of them more are read.
    batch: u64,
}

impl Strides {
    /// A read that missed begins so far from the one before; whether that is a stride by now.
    pub(super) fn leaps(&mut self, from: u64, pages: &Range<u64>, doubt: u8) -> bool {
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

    /// Nobody goes on by it.
    pub(super) fn stop(&mut self) {
        self.armed = None;
    }

    /// Reads are in order.
    pub(super) fn disarm(&mut self) {
        *self = Self::default();
    }

    /// What to read when it has just been armed.
    pub(super) fn reads_first(&mut self, terms: &Terms) -> Ahead {
        self.armed.as_mut().map_or(Ahead::NONE, |armed| armed.more(terms))
    }

    /// A read at a place: whether the stride leads there. If it is time to, more is read ahead.
    pub(super) fn reads(&mut self, start: u64, terms: &Terms) -> Option<Ahead> {
        let armed = self.armed.as_mut()?;
        let leaps = leaps_between(armed.at, start, armed.leap)?;
        if leaps > armed.ahead + 1 {
            return None;
        }
        armed.at = start;
        armed.ahead = armed.ahead.saturating_sub(leaps);
        Some(if armed.ahead < armed.batch.max(1) { armed.more(terms) } else { Ahead::NONE })
    }

    /// As `trigger` of a window: a reader who goes forward is to be looked at with the next record that counts.
    pub(super) fn trigger(&self) -> Option<u64> {
        let armed = self.armed.filter(|armed| armed.ahead > 0)?;
        let records = armed.ahead.saturating_sub(armed.batch) + 1;
        let next = armed.at.checked_add_signed(armed.leap.saturating_mul(records as i64));
        if armed.leap < 0 { Some(0) } else { next }
    }
}

impl Armed {
    fn more(&mut self, terms: &Terms) -> Ahead {
        let through = self.leap.unsigned_abs() - self.record.min(self.leap.unsigned_abs()) <= terms.law.gap;
        // What one record more takes of the window.
        let pages = if through { self.leap.unsigned_abs() } else { self.record };
        let most = terms.law.most.min((terms.left)() / 2).min(terms.most) / pages.max(1);
        let least = if through { terms.law.first / pages.max(1) } else { 1 };
        let records = (2 * self.batch).max(least).max(1).min(most);
        let (from, to) = (self.place(self.ahead + 1), self.place(self.ahead + records));
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

    /// Where a record from here on begins; nothing before the file's start.
    fn place(&self, records: u64) -> Option<u64> {
        self.at.checked_add_signed(self.leap.checked_mul(records as i64)?)
    }
}

/// How many leaps lead from one place to another, at least one.
fn leaps_between(from: u64, to: u64, leap: i64) -> Option<u64> {
    let between = to.wrapping_sub(from) as i64;
    (between != 0 && between % leap == 0 && between / leap > 0).then(|| (between / leap) as u64)
}
