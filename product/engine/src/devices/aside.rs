//! A request is set aside, and ends later: the changes in the accounts of its device and file.
//!
//! Owns: what a request without a slot no longer takes from other files, and takes back for its end.
//! Does not own: which requests are set aside, and when (`writeback::overdue`); the rest of a request's end.
//! Invariants: while a request is set aside, its file is held: it gets no other request. Its pages stay under writeback
//! and dirty, with room beyond the device's limit, as failed pages have it. All accounts but the slot change under the
//! file's lock, which an end takes before it takes anything back: an end never comes before what it ends.

use std::sync::Arc;

use afflux_device::platform::Nanos;
use afflux_pages::wait::lock;

use super::busy::TransferKind;
use super::file::FileInner;
use super::request_table::{Load, RequestEntry, RequestInFlight};

impl Load {
    fn kind(self) -> (TransferKind, u64) {
        match self {
            Self::Read => (TransferKind::Read, 0),
            Self::Write { bytes, .. } => (TransferKind::Write, bytes),
        }
    }
}

impl FileInner {
    /// Sets a request of the file aside, unless it has ended or too many are; returns whether it did.
    pub(crate) fn try_set_aside(self: &Arc<Self>, request: &RequestInFlight, now: Nanos) -> bool {
        let device = &self.device;
        {
            let mut state = lock(&self.state);
            if !device.requests.entries.try_set_aside(request.number) {
                return false;
            }
            state.hold();
            if let Load::Write { pages, ticket, .. } = request.load {
                state.failures.set_aside(ticket.amount(pages));
                self.note_failed(&mut state);
                device.in_flight.set_aside(ticket, pages);
                device.requests.uncount_write();
            }
            let (kind, bytes) = request.load.kind();
            device.figures.set_aside(kind, bytes, (request.submitted, now));
        }
        device.slots().give_back(1);
        device.requests.write_ended().wake_all();
        true
    }

    /// A request of the file has ended; returns whether it was set aside. If so, it has no slot to give back, and the
    /// caller puts the file back in its lists.
    pub(crate) fn request_ended(&self, entry: RequestEntry) -> bool {
        let ended = self.device.requests.entries.end(entry);
        if ended.is_aside {
            let mut state = lock(&self.state);
            state.release();
            if let Load::Write { pages, ticket, .. } = ended.load {
                state.failures.take_back(ticket.amount(pages));
                self.device.in_flight.take_back(ticket, pages);
            }
        }
        ended.is_aside
    }
}
