//! The kernel's `redirty_tail`: a file with more to write goes to the young end of the files that have had no turn.
//!
//! Owns: the file's age there. Does not own: the lists (`devices`).
//! Invariants: the list stays in the order of age.

use std::sync::Arc;

use crate::devices::file::{FileInner, FileState};
use crate::platform::Nanos;

impl FileInner {
    /// As [`FileInner::requeue`], with the place of a file that has had no turn.
    pub(crate) fn requeue_redirtied(self: &Arc<Self>, state: &mut FileState, now: Nanos) {
        if self.returns_to_lists(state, now) {
            let at = redirtied_at(state.marks.dirtied_at(), self.device.agenda().youngest_dirty(), now);
            self.queue_dirty(state, at);
            self.device.flusher().raise();
        }
    }
}

/// The age of a file that is put behind the youngest file without a turn. Unchanged, or `now` if that file is younger,
/// so that the list stays in order (kernel-facts, section 2.2).
fn redirtied_at(dirtied_at: Nanos, youngest: Option<Nanos>, now: Nanos) -> Nanos {
    if youngest.is_some_and(|youngest| dirtied_at < youngest) { now } else { dirtied_at }
}

#[cfg(test)]
mod tests;
