//! How many pages of a file may be read for nothing: a small part of what its readers asked for.
//!
//! A file begins with a little credit. Each page that its readers miss earns a part of a page, and each page read ahead
//! and used a larger part. A page read ahead that no reader has used costs one, in the cache or evicted. If a reader
//! uses the page later, the account gets the page back. Only the window in front of the present stream costs nothing,
//! since its reader is on the way. Late calls of that stream may still ask for pages behind its furthest read; these
//! cost nothing either, unless they were unread before the stream opened.
//!
//! Owns: this account. Does not own: the counts of pages (`page::unread`), what a window may be without credit
//! (`afflux`).
//! Invariants: pages lost for ever are at most the first credit, what was earned, and the windows before the first loss
//! was seen.

use afflux_pages::page::PagesAhead;

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

#[cfg(test)]
mod tests;
