//! The questions to a readahead policy, and its possible answers.
//!
//! Owns: a policy's input about a file's readers and its device, its possible answers; the device's account of pages
//! read ahead at the starts of files.
//! Does not own: the choice of the policy (`readahead`), its rules, frames and requests.
//! Invariants: pure arithmetic on pages. An answer is a wish. The account of openings stays within its limit, and
//! concurrent changes of it take effect one after the other (`loom_a_spend_beside_a_payment_is_not_forgotten`).

use std::ops::Range;

use afflux_pages::page::PagesAhead;
use afflux_pages::sync::atomic::{AtomicI64, Ordering};

use crate::readahead::prices::WindowSizes;

/// A policy from elsewhere, with the state of one file's readers. It learns of every read.
pub trait ReadaheadPolicy: Send {
    /// A read of `pages` missed its first page. Returns the pages to read in addition.
    fn missed(&mut self, pages: &Range<u64>, limits: &ReadaheadLimits, cached: &dyn Cached) -> Range<u64>;

    /// A read of these bytes found all of them cached. Returns the pages to read ahead now.
    fn used(&mut self, bytes: &Range<u64>, limits: &ReadaheadLimits, cached: &dyn Cached) -> Range<u64>;

    /// A request of several pages failed.
    fn failed(&mut self);

    /// A caller's advice for the file.
    fn advise(&mut self, advice: Advice);
}

/// Limits on the pages that are read ahead at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadaheadLimits {
    /// The most pages of a window, by the knob; 0 disables readahead.
    pub most: u64,
    /// The most pages of a request of the device.
    pub request_pages: u64,
}

/// A caller's advice on how a file will be read, as in `posix_fadvise`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Advice {
    /// No expectation: takes earlier advice back.
    #[default]
    Normal,
    /// In order: windows are large at once, wherever a read begins.
    Sequential,
    /// Nothing is read ahead.
    Random,
    /// The range will be read: it is read ahead now, as far as frames, requests and quota are free.
    WillNeed,
    /// The range will not be read: its clean pages leave the cache.
    DontNeed,
    /// No page will be read again: pages leave the cache once a stream has passed them.
    NoReuse,
}

/// Limits on readahead at this moment.
#[derive(Clone, Copy)]
pub(crate) struct AheadTerms<'a> {
    /// The file's size in pages.
    pub file_pages: u64,
    /// The most pages of a window, by the knob; 0 disables readahead.
    pub most: u64,
    /// The most pages of a request of the device.
    pub request_pages: u64,
    /// Windows that suit the device.
    pub window_sizes: WindowSizes,
    /// How many more unread pages may be in the cache. Called only by policies that read ahead: the count is spread
    /// over many cache lines.
    pub remaining: &'a dyn Fn() -> u64,
    /// The account of openings of the device's files.
    pub openings: &'a Openings,
    /// How many pages of the file were read ahead so far, and how many of these were used.
    pub pages_ahead: &'a dyn Fn() -> PagesAhead,
}

/// The pages of a file that are in the cache, or being read into it.
pub trait Cached {
    /// The number of such pages that end right before a page, up to `most`.
    fn before(&self, page: u64, most: u64) -> u64;

    /// The first absent page from `from` on, among `most` pages.
    fn first_absent(&self, from: u64, most: u64) -> Option<u64>;
}

/// Pages to read ahead: `count` ranges of the same length, each `step` pages further on or back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ahead {
    pub(crate) first: Range<u64>,
    pub(crate) step: i64,
    /// The number of ranges.
    pub count: u64,
}

impl Ahead {
    /// A plan that reads nothing.
    pub(crate) const NONE: Self = Self { first: 0..0, step: 0, count: 0 };

    pub(crate) fn one(pages: Range<u64>) -> Self {
        Self { count: u64::from(!pages.is_empty()), first: pages, step: 0 }
    }

    /// The ranges, as far as they are inside a file at all.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let (first, step) = (self.first.clone(), self.step);
        (0..self.count).map_while(move |number| {
            let by = step.checked_mul(number as i64)?;
            Some(first.start.checked_add_signed(by)?..first.end.checked_add_signed(by)?)
        })
    }

    /// The end of the single range if it begins at this page; otherwise the page itself.
    pub(crate) fn end_from(&self, page: u64) -> u64 {
        if self.count == 1 && self.first.start == page { self.first.end } else { page }
    }
}

/// How far readahead came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadaheadEnd {
    /// To the end: all pages are cached or being read.
    Through,
    /// To this page, where no request was free.
    NoRequest(u64),
    /// To this page, where no frame was free.
    NoFrame(u64),
}

impl AheadTerms<'_> {
    pub(super) fn limits(&self) -> ReadaheadLimits {
        ReadaheadLimits { most: self.most, request_pages: self.request_pages }
    }
}

/// Pages missed that earn one.
const EARNS: u64 = 128;
const PAGES_MAX: i64 = 64;

/// The account of a device's first reads of files.
#[derive(Debug)]
pub(crate) struct Openings {
    /// In parts of a page.
    balance: AtomicI64,
}

impl Openings {
    pub(crate) fn new() -> Self {
        Self { balance: AtomicI64::new(PAGES_MAX * EARNS as i64) }
    }

    /// Pages that an opening may read ahead now.
    fn remaining(&self) -> u64 {
        (self.balance.load(Ordering::Relaxed) / EARNS as i64).max(0) as u64
    }

    /// The most pages that an opening with a call of `asked` pages may read ahead: as much again may overdraw.
    pub(super) fn granted(&self, asked: u64) -> u64 {
        match self.remaining() {
            0 => 0,
            remaining => remaining.max(asked),
        }
    }

    pub(super) fn spend(&self, pages: u64) {
        self.change(-((pages * EARNS) as i64));
    }

    pub(super) fn pay_back(&self, pages: u64) {
        if pages > 0 {
            self.change((pages * EARNS) as i64);
        }
    }

    pub(super) fn note_missed(&self, pages: u64) {
        self.change(pages as i64);
    }

    fn change(&self, by: i64) {
        let changed = |balance: i64| Some(balance.saturating_add(by).min(PAGES_MAX * EARNS as i64));
        let _always = self.balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    }
}

#[cfg(test)]
mod tests;

#[cfg(all(test, loom))]
mod loom_models;
