//! A file's marks about its device's lists.
//!
//! Owns: in which lists the file is, its place, its age. Does not own: the lists.
//! Invariants: no dirty page that is not in flight is older than the file.

use afflux_device::platform::Nanos;

use crate::devices::ready::ReadyPosition;

#[derive(Default)]
pub(crate) struct Marks {
    /// The file's place among the files that may be written.
    pub(in crate::devices) position: ReadyPosition,
    /// When the file became dirty.
    pub(in crate::devices) dirtied_at: Nanos,
    /// Whether the file may be written and is listed for that, or has its turn.
    pub(in crate::devices) queued: bool,
    /// Whether the file is listed for a sync.
    pub(in crate::devices) sync_queued: bool,
    /// Whether the file is listed to be come back to.
    pub(in crate::devices) retry_queued: bool,
}

impl Marks {
    /// When the file became dirty: no dirty page that is not in flight is older.
    pub(crate) fn dirtied_at(&self) -> Nanos {
        self.dirtied_at
    }

    /// No dirty page that is not in flight is older than this.
    pub(crate) fn raise_dirtied_at(&mut self, at: Nanos) {
        self.dirtied_at = self.dirtied_at.max(at);
    }

    /// The file's turn has ended, and the file is in no list of files that may be written.
    pub(crate) fn slice_ends(&mut self) {
        self.queued = false;
    }

    /// The file has its turn for a sync.
    pub(crate) fn sync_begins(&mut self) {
        self.sync_queued = false;
    }

    /// A sync's caller gives the file its turn: until [`Marks::sync_begins`] nobody lists the file for a sync. Returns
    /// false if it is listed already.
    pub(crate) fn try_keep_off_list_for_sync(&mut self) -> bool {
        !std::mem::replace(&mut self.sync_queued, true)
    }

    /// The flusher has come back to the file.
    pub(crate) fn retry_begins(&mut self) {
        self.retry_queued = false;
    }
}
