//! How many pages may be read ahead at the starts of a device's files: programs look at the starts of many files, and
//! read on in few of them, or in all.
//!
//! Each opening of a file at its start spends the pages that it reads ahead. They are paid back once the reader comes
//! for them. Pages that readers miss earn a part.
//!
//! Owns: this account of a device. Does not own: the windows (`afflux`), pages lost later in a file (`credit`).
//! Invariants: the account stays within its limit. Concurrent changes take effect one after the other
//! (`loom_a_spend_beside_a_payment_is_not_forgotten`).

use afflux_pages::sync::atomic::{AtomicI64, Ordering};

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

#[cfg(all(test, loom))]
mod loom_models;

#[cfg(test)]
mod tests;
