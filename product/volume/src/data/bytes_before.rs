//! A file's bytes before a change of them.
//!
//! A change that fails, or whose caller goes away, may have changed bytes all the same. Then the times show it, and
//! others are told.
//!
//! Owns: the answer to the question whether bytes may have changed since.
//! Does not own: the changes (`read_write`, `holes`), the times (`objects::inode`), telling others (`coherence`).
//! Invariants: bytes that have changed are never taken for unchanged: they are dirty, or the engine has counted their
//! way to the host. `product/volume/tests/simulated/holes.rs` holds this.

use afflux_engine::File;

/// A file right before a change.
pub(super) struct BytesBefore {
    /// The engine's count of changes on the host.
    host_changes: u64,
}

impl BytesBefore {
    pub(super) fn of(file: &File) -> Self {
        Self { host_changes: file.change_count() }
    }

    /// Whether bytes of the file may have changed since.
    pub(super) fn may_have_changed(&self, file: &File) -> bool {
        !file.is_clean() || file.change_count() != self.host_changes
    }
}
