//! The entries of requests in a device: which request is in flight, and which have given their slots back before their
//! end.
//!
//! A request may stay in the device for long while others come and go. For example, a program holds the lock of its
//! file in the host, or a part of a disk fails slowly. Such a request is set aside. Its slot goes to another request,
//! so a few files cannot take all slots.
//!
//! Owns: an entry for each request in flight, and the mark of a request set aside.
//! Does not own: the slots (`requests`), the time that is too long (`policy`), the looks (`writeback::overdue`).
//! Invariants: a request is set aside once at most, and while it is in flight. The requests set aside are no more than
//! the device's slots, so a request with a slot always finds an entry.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afflux_device::platform::Nanos;
use afflux_pages::wait::lock;

use super::in_flight::Ticket;

/// The load of a request besides its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// A read request in flight.
    Read,
    /// A write request in flight.
    Write {
        /// Length of the request in bytes.
        bytes: u64,
        /// Its pages, in whole or in part.
        pages: u64,
        /// The policy's ticket for the request.
        ticket: Ticket,
    },
}

/// A request in its entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestInFlight {
    /// No other request of the device has this number, ever.
    pub number: u64,
    /// The file, by its slot.
    pub file: u32,
    pub(crate) load: Load,
    /// When it was submitted.
    pub submitted: Nanos,
    /// Whether it was set aside, and its slot given to another.
    pub is_aside: bool,
}

/// Where a request is, until it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestEntry(u32);

/// The entries of a device's requests.
pub(crate) struct RequestTable {
    entries: Box<[Mutex<Option<RequestInFlight>>]>,
    begun: AtomicU64,
    aside: AtomicU32,
}

impl RequestTable {
    /// Entries for a device with `slots` slots, and for as many requests set aside.
    pub(super) fn new(slots: u32) -> Self {
        let entries = (0..2 * slots).map(|_| Mutex::new(None)).collect();
        Self { entries, begun: AtomicU64::new(0), aside: AtomicU32::new(0) }
    }

    /// A request of the file with the slot `file` is about to be submitted; it has a slot of the device.
    pub(crate) fn begin(&self, file: u32, load: Load, now: Nanos) -> RequestEntry {
        loop {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            let at = (number % self.entries.len() as u64) as usize;
            let mut entry = lock(&self.entries[at]);
            if entry.is_none() {
                *entry = Some(RequestInFlight { number, file, load, submitted: now, is_aside: false });
                return RequestEntry(at as u32);
            }
        }
    }

    /// The request has ended; returns what it was.
    pub(super) fn end(&self, entry: RequestEntry) -> RequestInFlight {
        let ended = lock(&self.entries[entry.0 as usize]).take().expect("a request ends once");
        if ended.is_aside {
            self.aside.fetch_sub(1, Ordering::Relaxed);
        }
        ended
    }

    /// The number of entries. A request has the entry of its number, modulo this.
    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    /// The requests in flight, each as it was at one moment.
    pub(crate) fn all(&self) -> impl Iterator<Item = RequestInFlight> {
        self.entries.iter().filter_map(|entry| *lock(entry))
    }

    /// Marks a request as set aside, unless it has ended, or as many as the device has slots are; returns whether it
    /// did. The caller gives the slot back.
    pub(super) fn try_set_aside(&self, number: u64) -> bool {
        let most = self.entries.len() as u32 / 2;
        let mut entry = lock(&self.entries[(number % self.entries.len() as u64) as usize]);
        let Some(request) = entry.as_mut().filter(|request| request.number == number && !request.is_aside) else {
            return false;
        };
        let one_more = |aside: u32| (aside < most).then_some(aside + 1);
        request.is_aside = self.aside.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok();
        request.is_aside
    }
}

#[cfg(test)]
mod tests;
