//! The requests of a file in flight.
//!
//! Owns: the numbers of writes, the pages of writes and of reads. Does not own: the device's requests.
//! Invariants: a later write has a higher number. Each request that begins ends once.

use crate::devices::in_order::InOrder;

#[derive(Default)]
pub(crate) struct FileFlight {
    /// Whether each is of a round that writes and flushes at once.
    writes: InOrder<bool>,
    writing_pages: u64,
    reads: u32,
    reading_pages: u64,
}

impl FileFlight {
    /// A write of so many pages was claimed; returns its number.
    pub(crate) fn write_begins(&mut self, pages: u64) -> u64 {
        self.writing_pages += pages;
        self.writes.begin(false)
    }

    pub(crate) fn write_ends(&mut self, number: u64, pages: u64) {
        self.writes.end(number);
        self.writing_pages -= pages;
    }

    pub(crate) fn read_begins(&mut self, pages: u64) {
        self.reads += 1;
        self.reading_pages += pages;
    }

    pub(crate) fn read_ends(&mut self, pages: u64) {
        self.reads -= 1;
        self.reading_pages -= pages;
    }

    /// Whether any request is in flight.
    pub(crate) fn has_any(&self) -> bool {
        self.reads > 0 || self.has_writes()
    }

    pub(crate) fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// The write is of a round that writes and flushes at once.
    pub(crate) fn mark_at_once(&mut self, number: u64) {
        if let Some(is_at_once) = self.writes.get_mut(number) {
            *is_at_once = true;
        }
    }

    /// Whether a write is in flight that is of no round at once.
    pub(crate) fn has_other_writes(&self) -> bool {
        self.writes.first(|is_at_once| !is_at_once).is_some()
    }

    pub(crate) fn next_write(&self) -> u64 {
        self.writes.next()
    }

    /// Whether a write with a lower number is in flight.
    pub(crate) fn has_writes_before(&self, number: u64) -> bool {
        self.writes.first(|_| true).is_some_and(|first| first < number)
    }

    pub(crate) fn writing_pages(&self) -> u64 {
        self.writing_pages
    }

    pub(crate) fn reading_pages(&self) -> u64 {
        self.reading_pages
    }
}
