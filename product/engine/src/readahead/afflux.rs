//! Windows in the device's own time: as large as the device needs, no larger than the reader's use so far.
//!
//! Random reads succeed each other by chance, often so in a small file. So reads elsewhere raise a doubt, which limits
//! a chance opening to a smaller part of the file. A stream that goes on lowers the doubt again.
//!
//! Calls need not come in order: a client with many in flight does not send them quite in order. Near the end of an
//! open stream a read is the stream's. If no stream is open yet, pages that are being read count as cached.
//!
//! Owns: one file's stream: its position, how far ahead was read, how much trust it has; what may be read for nothing;
//! how a stride is distinguished from chance, and the pages read ahead of it.
//! Does not own: the windows that suit the device (`prices`), what openings of files may read ahead (`seam`), the
//! counts of pages (`page::unread`), the limit on unread pages (`reading`).
//! Invariants: a window is never larger than the stream's consumption so far, except the first. Once pages of the file
//! were read for nothing, it is no larger than the file's credit, or than a small part of the consumption. A stream
//! opens at the file's start, on exact succession, or where the pages before are cached. A read elsewhere is read
//! exactly, and closes the stream. At most two windows are ahead: the next is read when the reader enters the last. On
//! a store there are three, one of which may wait for its request: the next is read when the reader is two away from
//! the end. Pages lost for ever are at most the first credit, what was earned, and the windows before the first loss
//! was seen. Only equal leaps arm a stride, and it takes more of them the more reads of the file were random.

use std::ops::Range;

use afflux_pages::page::PagesAhead;

use crate::readahead::seam::{Advice, Ahead, AheadTerms, Cached, ReadaheadEnd};

/// How many reads may overtake another: a client has 8 to 16 in flight.
const OVERTAKEN_MAX: u64 = 16;
/// The distance of overtaking is limited in a small file, too: everything is near there.
const OVERTAKEN_PART: u64 = 4;
/// The smallest window that memory, or a failure, leaves.
const CAP_MIN: u64 = 4;
/// The most doubt, and the doubt from which on a file counts as read at random.
const DOUBT_MAX: u8 = 16;
const RANDOM: u8 = 12;
/// Cached pages before a miss count as history if they are so many times the pages asked for, or, in a file read at
/// random, so many pages.
const HISTORY: u64 = 3;
const HISTORY_RANDOM: u64 = 32;

/// The part of a file's credit that a chance may cost.
const CHANCE_PART: u64 = 8;

/// One file's stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamWindow {
    /// Whether there is a stream to read ahead of.
    open: bool,
    /// Where the stream began.
    run_start: u64,
    /// The page after the furthest page that the stream asked for.
    next: u64,
    /// The page with which the reader enters the last window.
    mark: u64,
    /// The page after the last one to read ahead.
    end: u64,
    /// The page up to which this was done.
    issued: u64,
    /// Pages of the last window.
    size: u64,
    /// Pages that were in front of the last stream when it closed.
    unread_in_front: u64,
    /// The most pages that a window may have, given how much of earlier windows stayed in memory.
    cap: u64,
    doubt: u8,
    credit: Credit,
    /// Pages that the opening at the file's start read ahead, while nobody has come for them.
    opened: u64,
    /// The last read that missed, of the stream or not.
    last: Range<u64>,
    strides: Strides,
    advice: Advice,
}

impl Default for StreamWindow {
    /// The state of a file that nobody has read.
    fn default() -> Self {
        Self {
            open: false,
            run_start: 0,
            next: 0,
            mark: 0,
            end: 0,
            issued: 0,
            size: 0,
            unread_in_front: 0,
            cap: u64::MAX,
            doubt: 0,
            credit: Credit::default(),
            opened: 0,
            last: 0..0,
            strides: Strides::default(),
            advice: Advice::Normal,
        }
    }
}

/// The relation of a missed read to the stream.
enum StreamRelation {
    /// The rest of the read before, which was served in parts.
    SameRead,
    /// The stream continues behind the pages read ahead.
    On,
    /// Other reads have overtaken this read, or the pages are about to be read ahead.
    Late,
    /// The pages were read ahead, and are no longer cached.
    Evicted,
    /// The pages before are cached, but too few to be a history.
    Near,
    /// A stream begins, which has read from there on.
    Opens {
        run_start: u64,
    },
    Elsewhere,
}

impl StreamWindow {
    pub(super) fn missed(&mut self, pages: &Range<u64>, terms: &AheadTerms, cached: &dyn Cached) -> Ahead {
        if terms.most == 0 || self.advice == Advice::Random {
            self.close();
            return Ahead::NONE;
        }
        if let Some(ahead) = self.strides.reads(pages.start, terms) {
            self.last = pages.clone();
            return ahead;
        }
        let relation = self.relation(pages, terms, cached);
        if !matches!(relation, StreamRelation::SameRead) {
            self.credit.note_missed(pages.end - pages.start);
            terms.openings.note_missed(pages.end - pages.start);
        }
        let before = std::mem::replace(&mut self.last, pages.clone());
        match relation {
            StreamRelation::SameRead if self.open && pages.end == self.next => {
                Ahead::one(pages.end..self.end.max(pages.end))
            }
            StreamRelation::SameRead => Ahead::NONE,
            StreamRelation::Late => {
                self.next = self.next.max(pages.end);
                Ahead::NONE
            }
            StreamRelation::Near => {
                self.close();
                (self.run_start, self.next) = (pages.start, pages.end);
                Ahead::NONE
            }
            StreamRelation::Evicted => {
                self.cap = (self.size.min(self.cap) / 2).max(CAP_MIN);
                self.lose_confidence(1);
                self.go_on(pages, terms)
            }
            StreamRelation::On => {
                terms.openings.pay_back(std::mem::take(&mut self.opened));
                self.doubt = self.doubt.saturating_sub(1);
                self.widen_cap(pages.end - pages.start);
                self.go_on(pages, terms)
            }
            StreamRelation::Opens { run_start } => self.opens(run_start, pages, terms),
            StreamRelation::Elsewhere => self.elsewhere(&before, pages, terms),
        }
    }

    pub(super) fn used(&mut self, pages: &Range<u64>, terms: &AheadTerms) -> Ahead {
        if terms.most == 0 {
            self.close();
            return Ahead::NONE;
        }
        if self.strides.is_armed() {
            return self.strides.reads(pages.start, terms).unwrap_or(Ahead::NONE);
        }
        if !self.open || pages.end <= self.mark {
            return Ahead::NONE;
        }
        if pages.start > self.end + OVERTAKEN_MAX * (pages.end - pages.start) {
            self.lose_confidence(1);
            if self.doubt == DOUBT_MAX {
                self.close();
            }
            return Ahead::NONE;
        }
        self.doubt = self.doubt.saturating_sub(1);
        terms.openings.pay_back(std::mem::take(&mut self.opened));
        if self.cap < terms.window_sizes.most {
            self.cap += (self.cap / 8).max(1);
        }
        self.next = self.next.max(pages.end);
        let from = self.end.max(self.next);
        self.reads_ahead(from, pages.end - pages.start, terms)
    }

    pub(super) fn issued(&mut self, came: ReadaheadEnd) {
        self.issued = self.end;
        let (ReadaheadEnd::NoRequest(end) | ReadaheadEnd::NoFrame(end)) = came else { return };
        if end < self.end {
            (self.end, self.issued) = (end, end);
            self.mark = self.mark.min(end);
            if matches!(came, ReadaheadEnd::NoFrame(_)) {
                self.cap = (self.size / 2).max(CAP_MIN);
            }
        }
    }

    /// Windows are small for a time: they begin anew, and grow with each that is used.
    pub(super) fn failed(&mut self) {
        self.close();
        self.cap = CAP_MIN;
        // Its pages were not lost for want of a reader.
        self.credit = Credit::default();
    }

    pub(super) fn advise(&mut self, advice: Advice) {
        let (cap, doubt) = (u64::MAX, 0);
        *self = Self { advice, cap, doubt, last: self.last.clone(), ..Self::default() };
    }

    pub(super) fn trigger(&self) -> Option<u64> {
        if self.strides.is_armed() { self.strides.trigger() } else { self.open.then_some(self.mark) }
    }

    /// How far from the stream a read may be and still be its.
    fn tolerance(asked: u64, terms: &AheadTerms) -> u64 {
        (OVERTAKEN_MAX * asked).min(terms.file_pages / OVERTAKEN_PART)
    }

    /// Whether a read at this page may be the stream's, give or take what others overtook.
    fn is_near(&self, start: u64, tolerance: u64) -> bool {
        (self.next.saturating_sub(tolerance)..=self.end + tolerance).contains(&start)
    }

    /// Pages read ahead that the stream's reader may still ask for, in order or late; none without a stream.
    fn awaited(&self, asked: u64) -> Awaited {
        if !self.open {
            return Awaited::default();
        }
        let late = (OVERTAKEN_MAX * asked).min(self.next.saturating_sub(self.run_start));
        Awaited { in_front: self.issued.saturating_sub(self.next), late }
    }

    fn relation(&self, pages: &Range<u64>, terms: &AheadTerms, cached: &dyn Cached) -> StreamRelation {
        let (start, asked) = (pages.start, pages.end - pages.start);
        let tolerance = Self::tolerance(asked, terms);
        if pages.end == self.last.end && start > self.last.start {
            return StreamRelation::SameRead;
        }
        if start > 0 && self.open && self.is_near(start, tolerance) {
            return match start {
                _ if start >= self.end => StreamRelation::On,
                _ if start >= self.next && start < self.issued => StreamRelation::Evicted,
                _ => StreamRelation::Late,
            };
        }
        let follows = start == self.last.end && !self.last.is_empty();
        if start == 0 || self.advice == Advice::Sequential {
            return StreamRelation::Opens { run_start: start };
        }
        if follows {
            let run_start = if self.next == start { self.run_start } else { self.last.start };
            return StreamRelation::Opens { run_start };
        }
        let history = if self.doubt < RANDOM { HISTORY * asked } else { HISTORY_RANDOM.max(HISTORY * asked) };
        let most = terms.window_sizes.most.max(history);
        match cached.before(start, most) {
            found if found >= history => StreamRelation::Opens { run_start: start - found },
            found if found >= asked => StreamRelation::Near,
            _ => StreamRelation::Elsewhere,
        }
    }

    fn opens(&mut self, run_start: u64, pages: &Range<u64>, terms: &AheadTerms) -> Ahead {
        self.strides.disarm();
        let asked = pages.end - pages.start;
        // A stream's calls may overtake each other. They then open the stream more than once, until its first pages
        // arrive.
        let goes_on = self.open && self.is_near(pages.start, Self::tolerance(asked, terms));
        let mut awaited = self.awaited(asked);
        if !goes_on {
            let in_front = if self.open { awaited.in_front } else { self.unread_in_front };
            self.credit.note_stream((terms.pages_ahead)(), in_front);
            awaited = Awaited::default();
        }
        if pages.start == 0 && self.open && self.next < terms.file_pages {
            // Last time the file was not read through from its start.
            self.lose_confidence(2);
        }
        self.run_start = run_start;
        self.next = pages.end;
        let run = pages.end - run_start;
        if run > asked {
            self.widen_cap(asked);
        }
        // Three reads in a row are no chance: as much again may be read. Fewer may be chance.
        let trusted = if run >= HISTORY * asked { run } else { asked };
        let wished = if self.advice == Advice::Sequential {
            terms.window_sizes.most
        } else {
            let balance = self.credit.balance((terms.pages_ahead)(), terms.file_pages, awaited);
            let chance = terms.window_sizes.first.max(2 * asked);
            let most = if balance.none_lost { chance } else { asked + balance.pages / CHANCE_PART };
            let most = if pages.start == 0 { most.min(asked + terms.openings.granted(asked)) } else { most };
            chance.min(most).max(if trusted > asked { asked + balance.granted(trusted) } else { asked })
        };
        let size = wished.min(self.chance(terms).max(trusted)).min(asked + terms.window_sizes.most);
        let size = size.min(self.cap).min((terms.remaining)() / 2).min(asked + terms.most).max(asked);
        self.open = size > asked;
        (self.mark, self.end, self.issued) = (pages.end, pages.start + size, pages.end);
        self.size = size;
        if pages.start == 0 {
            self.opened = self.end.min(terms.file_pages).saturating_sub(pages.end);
            terms.openings.spend(self.opened);
        }
        Ahead::one(pages.end..self.end)
    }

    /// A window no larger than the pages asked for is never used, and would stay so for ever.
    fn widen_cap(&mut self, asked: u64) {
        self.cap = self.cap.max(2 * asked);
    }

    /// The stream is where nothing was read ahead.
    fn go_on(&mut self, pages: &Range<u64>, terms: &AheadTerms) -> Ahead {
        self.next = self.next.max(pages.end);
        self.reads_ahead(self.next, pages.end - pages.start, terms)
    }

    /// The next window, from a page on.
    fn reads_ahead(&mut self, from: u64, asked: u64, terms: &AheadTerms) -> Ahead {
        let run = if self.advice == Advice::Sequential { u64::MAX } else { self.next - self.run_start };
        let awaited = self.awaited(asked);
        let balance = self.credit.balance((terms.pages_ahead)(), terms.file_pages, awaited);
        let is_trusted = self.advice == Advice::Sequential;
        let run = if is_trusted { run } else { balance.granted(run) };
        let first = terms.window_sizes.first.min(self.chance(terms));
        let first = if balance.none_lost { first } else { first.min(balance.pages / CHANCE_PART) };
        let most = terms.window_sizes.most.min(self.cap).min(terms.most).min((terms.remaining)() / 2);
        let size = first.max(run).min(most);
        self.mark = from;
        self.end = self.end.max(from);
        if size < asked.max(CAP_MIN).min(terms.window_sizes.most).min(terms.most) {
            // Too little for a request; the reader is looked at again when it misses.
            return Ahead::NONE;
        }
        if terms.window_sizes.early {
            self.mark = from.saturating_sub(2 * size).max(self.next);
        }
        self.issued = self.issued.max(from);
        (self.end, self.size) = (from + size, size);
        Ahead::one(from..self.end)
    }

    fn elsewhere(&mut self, before: &Range<u64>, pages: &Range<u64>, terms: &AheadTerms) -> Ahead {
        let asked = pages.end - pages.start;
        let overtakes_the_first = before.is_empty() && pages.start <= OVERTAKEN_MAX * asked;
        if !overtakes_the_first {
            self.lose_confidence(1);
        }
        self.close();
        (self.run_start, self.next) = (pages.start, pages.end);
        if !before.is_empty() && self.strides.try_arm(before.start, pages, self.doubt) {
            return self.strides.reads_first(terms);
        }
        Ahead::NONE
    }

    fn lose_confidence(&mut self, by: u8) {
        self.doubt = (self.doubt + by).min(DOUBT_MAX);
    }

    fn close(&mut self) {
        if self.open {
            self.unread_in_front = self.issued.saturating_sub(self.next);
        }
        self.open = false;
        self.strides.stop();
        (self.run_start, self.size) = (self.next, 0);
    }

    /// The largest window that a chance may open: the more reads were elsewhere, the smaller a part of the file.
    fn chance(&self, terms: &AheadTerms) -> u64 {
        if self.doubt == 0 { u64::MAX } else { terms.file_pages >> (3 + self.doubt / 4) }
    }
}

/// Pages missed that earn one, and used pages that were read ahead.
const MISSED_EARN: u64 = 128;
const USED_EARN: u64 = 32;
/// The first credit is this part of a file, within bounds.
const FIRST_PART: u64 = 1024;
const FIRST_MIN: u64 = 4;
const FIRST_MAX: u64 = 64;
/// A file that was read well for long is not trusted with more than this.
const CREDIT_MAX: i64 = 1024;

/// The part of a run that a window may be without credit.
const INDEBTED_PART: u64 = 64;

#[derive(Clone, Default, Debug)]
pub(super) struct Credit {
    /// The counts before the file's first page came: its slot may have had another file.
    base: Option<PagesAhead>,
    /// Pages that readers missed.
    missed: u64,
    /// Earned beyond the limit, and so not granted.
    forgone: i64,
    /// Pages that were unread when the present stream opened: no call of this stream comes for them.
    unread_before: u64,
}

/// Pages read ahead that the reader of the present stream may still ask for.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Awaited {
    /// Those in front of it.
    pub(super) in_front: u64,
    /// The most that late calls may ask for, behind its furthest read.
    pub(super) late: u64,
}

/// The state of the account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Balance {
    /// Pages that may still be lost.
    pub(super) pages: u64,
    /// All pages read ahead were used, or are in front of their reader.
    pub(super) none_lost: bool,
}

impl Balance {
    /// The largest window after a run of so many pages.
    pub(super) fn granted(self, run: u64) -> u64 {
        if self.none_lost { run } else { run.min(self.pages.max(run / INDEBTED_PART)) }
    }
}

impl Credit {
    pub(super) fn note_missed(&mut self, pages: u64) {
        self.missed += pages;
    }

    /// Another stream opens, while `in_front` pages wait for the reader of the last one. That reader may come back.
    pub(super) fn note_stream(&mut self, now: PagesAhead, in_front: u64) {
        let PagesAhead { came, used } = self.counts(now);
        self.unread_before = came.saturating_sub(used).saturating_sub(in_front);
    }

    /// The pages of this file, without those of earlier files in its slot.
    fn counts(&mut self, now: PagesAhead) -> PagesAhead {
        let base = *self.base.get_or_insert(now);
        PagesAhead { came: now.came.wrapping_sub(base.came), used: now.used.wrapping_sub(base.used) }
    }

    /// The balance while the reader of the present stream is awaited.
    pub(super) fn balance(&mut self, now: PagesAhead, file_pages: u64, awaited: Awaited) -> Balance {
        let PagesAhead { came, used } = self.counts(now);
        let unread = came.saturating_sub(used).saturating_sub(awaited.in_front);
        let lost = unread.saturating_sub(awaited.late).max(unread.min(self.unread_before));
        let first = (file_pages / FIRST_PART).clamp(FIRST_MIN, FIRST_MAX);
        let earned = self.missed / MISSED_EARN + used / USED_EARN;
        let balance = (first + earned) as i64 - self.forgone - lost as i64;
        self.forgone += (balance - CREDIT_MAX).max(0);
        Balance { pages: balance.clamp(0, CREDIT_MAX) as u64, none_lost: lost == 0 }
    }
}

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

    /// Returns whether the stride leads to a read at this offset; if it is time, with more pages to read ahead.
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

/// The number of leaps from one offset to another, at least one.
fn strides_between(from: u64, to: u64, leap: i64) -> Option<u64> {
    let between = to.wrapping_sub(from) as i64;
    (between != 0 && between % leap == 0 && between / leap > 0).then(|| (between / leap) as u64)
}

#[cfg(test)]
mod tests;
