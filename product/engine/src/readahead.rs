//! Readahead: reading pages of a file before anybody asks for them.
//!
//! Owns: the list of policies, the calls of the policy of a file.
//! Does not own: the seam (`seam`), the policies' rules (`afflux`); frames and requests (`reading`). Nor hits, which
//! pass the *trigger* of their file and are reported only beyond it.
//! Invariants: pure arithmetic on pages. An answer is a wish. Pages that are cached are skipped, and so are pages
//! without a free frame or request; the policy learns how far its answer came.

mod afflux;
pub(crate) mod prices;
mod seam;

use std::ops::Range;

use afflux_pages::units::PAGE_BYTES;

pub use seam::{Advice, Cached, ReadaheadLimits, ReadaheadPolicy};
pub(crate) use seam::{Ahead, AheadTerms, Openings, ReadaheadEnd};

/// The policy for readahead.
#[derive(Clone, Copy, Default)]
pub enum Readahead {
    /// Windows in the device's own time, and no larger than the reader's use so far.
    #[default]
    Afflux,
    /// A policy from elsewhere.
    Other {
        /// Name of the readahead, as the knob takes it.
        name: &'static str,
        /// Makes the state of a file that nobody has read.
        new: fn() -> Box<dyn ReadaheadPolicy>,
    },
}

impl Readahead {
    /// Name of the readahead, as the knob takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Afflux => "afflux",
            Self::Other { name, .. } => name,
        }
    }
}

impl std::fmt::Debug for Readahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The state of one file's readers.
pub(crate) enum ReaderState {
    /// For the policy in `afflux`.
    Afflux(afflux::StreamWindow),
    /// For a policy of another crate.
    Other(Box<dyn ReadaheadPolicy>),
}

/// Calls the policy of the file.
macro_rules! ask {
    ($window:ident, $one:ident => $answer:expr) => {
        match $window {
            ReaderState::Afflux($one) => $answer,
            ReaderState::Other($one) => $answer,
        }
    };
}

impl ReaderState {
    /// The state of a file that nobody has read.
    pub(crate) fn new(policy: Readahead) -> Self {
        match policy {
            Readahead::Afflux => Self::Afflux(afflux::StreamWindow::default()),
            Readahead::Other { new, .. } => Self::Other(new()),
        }
    }

    /// A read of `pages` missed its first page. Returns the pages to read in addition.
    pub(crate) fn missed(&mut self, pages: &Range<u64>, terms: &AheadTerms, cached: &dyn Cached) -> Ahead {
        match self {
            Self::Afflux(window) => window.missed(pages, terms, cached),
            Self::Other(window) => Ahead::one(window.missed(pages, &terms.limits(), cached)),
        }
    }

    /// A read of these bytes, which ends beyond the trigger, found them all cached. Returns the pages to read ahead
    /// now.
    pub(crate) fn used(&mut self, bytes: &Range<u64>, terms: &AheadTerms, cached: &dyn Cached) -> Ahead {
        match self {
            Self::Afflux(window) => {
                let pages = bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES);
                window.used(&pages, terms)
            }
            Self::Other(window) => Ahead::one(window.used(bytes, &terms.limits(), cached)),
        }
    }

    /// The last answer was carried out, as far as `came`.
    pub(crate) fn issued(&mut self, came: ReadaheadEnd) {
        if let Self::Afflux(window) = self {
            window.issued(came);
        }
    }

    /// A request of several pages failed.
    pub(crate) fn failed(&mut self) {
        ask!(self, window => window.failed());
    }

    /// A caller's advice for the file.
    pub(crate) fn advise(&mut self, advice: Advice) {
        ask!(self, window => window.advise(advice));
    }

    /// Reads that end beyond this page are reported; `None` if none are.
    pub(crate) fn trigger(&self) -> Option<u64> {
        match self {
            Self::Afflux(window) => window.trigger(),
            Self::Other(_) => Some(0),
        }
    }
}

#[cfg(test)]
mod tests;
