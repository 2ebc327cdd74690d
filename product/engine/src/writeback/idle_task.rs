//! A task that has run rounds of syncs, and waits for the next file.
//!
//! Owns: how an idle task gets a file.
//! Does not own: the task itself and its rounds (`round_tasks`).
//! Invariants: an idle task holds no file. At most [`IDLE_MAX`] stay.

use std::sync::{Arc, Mutex};

use afflux_pages::wait::{WaitQueue, lock};

use crate::devices::file::FileInner;

/// A task takes about 1 KiB.
pub(super) const IDLE_MAX: usize = 64;

/// Where an idle task gets its next file.
#[derive(Default)]
pub(super) struct IdleTask {
    file: Mutex<Option<Arc<FileInner>>>,
    given: WaitQueue,
}

impl IdleTask {
    pub(super) fn give(&self, file: Arc<FileInner>) {
        *lock(&self.file) = Some(file);
        self.given.wake_all();
    }

    pub(super) async fn next_file(&self) -> Arc<FileInner> {
        self.given.until(|| lock(&self.file).take()).await
    }
}
