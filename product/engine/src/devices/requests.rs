//! The requests in flight to a device, and the room for more.
//!
//! Owns: the slots for transfers, those for calls without data, the frames of reads in flight, the count of writes, the
//! places.
//! Does not own: the policy's limits (`in_flight`), the pages under writeback (`charges`).
//! Invariants: a write that ends was counted. A read takes and gives back a slot and its frames.

use std::sync::atomic::{AtomicU32, Ordering};

use afflux_pages::wait::{Permits, WaitQueue};

use super::request_table::RequestTable;

pub(crate) struct Requests {
    pub(super) slots: Permits,
    /// Syncs, reservations and changes of shape in flight. They have slots of their own: many files whose syncs do not
    /// end leave reads and writes theirs.
    pub calls: Permits,
    pub(super) read_frames: Permits,
    /// Writes in flight, or about to be submitted.
    writes: AtomicU32,
    write_ended: WaitQueue,
    pub entries: RequestTable,
}

impl Requests {
    /// A device with `slots` slots. Reads have no frames until a limit is set.
    pub(super) fn new(slots: u32) -> Self {
        Self {
            slots: Permits::new(slots.into()),
            calls: Permits::new(slots.into()),
            read_frames: Permits::new(0),
            writes: AtomicU32::new(0),
            write_ended: WaitQueue::new(),
            entries: RequestTable::new(slots),
        }
    }

    pub(crate) fn writes(&self) -> u64 {
        u64::from(self.writes.load(Ordering::Relaxed))
    }

    /// Counts one more write in flight unless there are `most`.
    pub(crate) fn try_count_write(&self, most: u32) -> bool {
        let more = |count| (count < most).then_some(count + 1);
        self.writes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Counts one write less in flight.
    pub(crate) fn uncount_write(&self) {
        let before = self.writes.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "a write ends that was not counted");
    }

    /// Tasks that wait for a write to end, to take over its request.
    pub(crate) fn write_ended(&self) -> &WaitQueue {
        &self.write_ended
    }
}
