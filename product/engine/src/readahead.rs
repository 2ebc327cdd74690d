//! Readahead: what is read of a file before anybody asks for it. The seam between those who decide and `reading`.
//!
//! Owns: what a policy is told of a file's readers and of its device, what it may answer, which policies there are.
//! Does not own: the policies' rules (`afflux`, `linux`); frames and requests (`reading`); hits, which pass the
//! *trigger* of their file and are told of only beyond it.
//! Invariants: pure arithmetic on pages. What is answered is a wish: pages that are there, frames or requests that
//! cannot be had at once, are left out, and the policy is told how far it came.

mod afflux;
pub(crate) mod law;
mod linux;
pub(crate) mod prices;
mod strides;

use std::ops::Range;

use law::Law;

use crate::settings::did_you_mean;
use crate::units::PAGE_BYTES;

/// Who decides what is read ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Readahead {
    /// Windows in the device's own time, and no more than the reader has used.
    #[default]
    Afflux,
    /// As Linux 6.1: windows of up to `read_ahead_kb`, doubled as a file is read on.
    Linux,
}

impl Readahead {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Afflux, Self::Linux];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Afflux => "afflux",
            Self::Linux => "linux",
        }
    }

    /// The policy of that name.
    ///
    /// # Errors
    /// When there is none; the error lists the names.
    pub fn from_name(name: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|policy| policy.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|policy| policy.name()).collect();
            let near = did_you_mean(name, names.iter().copied());
            format!("there is no such readahead{near}; there are {}", names.join(" and "))
        })
    }
}

/// What somebody who opened a file says of how it will be read, as `posix_fadvise` has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Advice {
    /// Nothing is known: what was said before is taken back.
    #[default]
    Normal,
    /// In order: windows are large at once, wherever a read begins.
    Sequential,
    /// Nothing is read ahead.
    Random,
    /// The range will be read: it is read ahead now, as far as there is room.
    WillNeed,
    /// The range will not be read: its clean pages leave the cache.
    DontNeed,
    /// What is read will not be read again: pages leave the cache once a stream has passed them.
    NoReuse,
}

/// What may be read ahead at this moment.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// Pages of the file.
    pub(crate) file_pages: u64,
    /// Most pages of a window, by the knob; 0 is none at all.
    pub(crate) most: u64,
    /// The same for the policy that goes by `read_ahead_kb`.
    pub(crate) linux_most: u64,
    /// Most pages of a request of the device.
    pub(crate) request_pages: u64,
    /// Windows that suit the device.
    pub(crate) law: Law,
    /// How many pages more may be in the cache that nobody has asked for. Asked by those alone who read ahead: it is
    /// a look at many lines.
    pub(crate) left: &'a dyn Fn() -> u64,
}

/// Which pages of a file are in the cache, or on their way into it.
pub(crate) trait Cached {
    /// How many there are that end right before a page, up to `most`.
    fn before(&self, page: u64, most: u64) -> u64;

    /// The first that is absent, from a page on, among so many.
    fn first_absent(&self, from: u64, most: u64) -> Option<u64>;
}

/// Pages to read ahead: a range, and the same again so many times, each so many pages further on or back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ahead {
    pub(crate) first: Range<u64>,
    pub(crate) step: i64,
    pub(crate) count: u64,
}

impl Ahead {
    /// Nothing.
    pub(crate) const NONE: Self = Self { first: 0..0, step: 0, count: 0 };

    /// One range.
    pub(crate) fn one(pages: Range<u64>) -> Self {
        Self { count: u64::from(!pages.is_empty()), first: pages, step: 0 }
    }

    /// The ranges, as far as they are in a file at all.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let (first, step) = (self.first.clone(), self.step);
        (0..self.count).map_while(move |number| {
            let by = step.checked_mul(number as i64)?;
            Some(first.start.checked_add_signed(by)?..first.end.checked_add_signed(by)?)
        })
    }

    /// Where a range ends that begins at this page; there otherwise.
    pub(crate) fn end_from(&self, page: u64) -> u64 {
        if self.count == 1 && self.first.start == page { self.first.end } else { page }
    }
}

/// How far readahead came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Came {
    /// All of it is read, or there.
    Through,
    /// No request was left from this page on.
    NoRequest(u64),
    /// No frame was.
    NoFrame(u64),
}

/// What is known of one file's readers.
#[derive(Clone, Debug)]
pub(crate) enum Window {
    Afflux(afflux::Window),
    Linux(linux::Window),
}

/// Asks the policy that the file has.
macro_rules! ask {
    ($window:ident, $one:ident => $answer:expr) => {
        match $window {
            Window::Afflux($one) => $answer,
            Window::Linux($one) => $answer,
        }
    };
}

impl Window {
    /// Of a file that nobody has read.
    pub(crate) fn new(policy: Readahead) -> Self {
        match policy {
            Readahead::Afflux => Self::Afflux(afflux::Window::default()),
            Readahead::Linux => Self::Linux(linux::Window::default()),
        }
    }

    /// A read of `pages` missed its first page. Returns what to read beside.
    pub(crate) fn missed(&mut self, pages: &Range<u64>, terms: &Terms, cached: &dyn Cached) -> Ahead {
        ask!(self, window => window.missed(pages, terms, cached))
    }

    /// A read of these bytes that ends beyond the trigger has them all. Returns what to read now.
    pub(crate) fn used(&mut self, bytes: &Range<u64>, terms: &Terms, cached: &dyn Cached) -> Ahead {
        let pages = bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES);
        match self {
            Self::Afflux(window) => window.used(&pages, terms),
            Self::Linux(window) => window.used(&pages, bytes.end / PAGE_BYTES, terms, cached),
        }
    }

    /// What was answered last is on its way.
    pub(crate) fn issued(&mut self, came: Came) {
        match self {
            Self::Afflux(window) => window.issued(came),
            // The kernel does not look, either.
            Self::Linux(_) => {}
        }
    }

    /// A request of several pages failed.
    pub(crate) fn failed(&mut self) {
        ask!(self, window => window.failed());
    }

    /// How the file will be read.
    pub(crate) fn advise(&mut self, advice: Advice) {
        ask!(self, window => window.advise(advice));
    }

    /// Reads that end beyond this page are told of; nothing if none are.
    pub(crate) fn trigger(&self) -> Option<u64> {
        ask!(self, window => window.trigger())
    }
}

#[cfg(test)]
mod tests;
