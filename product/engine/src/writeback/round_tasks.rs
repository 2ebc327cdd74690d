//! The tasks that run rounds of syncs: each has one file's at a time, and stays for the next.
//!
//! Owns: how an idle task gets a file.
//! Does not own: the meaning of a round (`sync`), which file needs one.
//! Invariants: an idle task holds no file. At most [`IDLE_MAX`] stay; a file never waits for a task.

use std::sync::{Arc, Mutex};

use afflux_device::devices::file::FileInner;
use afflux_device::platform::Platform;
use afflux_pages::wait::{WaitQueue, lock};

use super::Writeback;

/// A task takes about 1 KiB.
pub(super) const IDLE_MAX: usize = 64;

/// Where an idle task gets its next file.
#[derive(Default)]
pub(super) struct IdleTask {
    file: Mutex<Option<Arc<FileInner>>>,
    given: WaitQueue,
}

impl<P: Platform> Writeback<P> {
    /// Has a task run the rounds requested in the file's state, until none is left.
    pub(super) fn start_rounds(self: &Arc<Self>, file: &Arc<FileInner>) {
        let file = Arc::clone(file);
        match self.idle_tasks.take() {
            Some(task) => {
                *lock(&task.file) = Some(file);
                task.given.wake_all();
            }
            None => self.base.platform.spawn("sync", run_rounds_of_files(Arc::clone(self), file)),
        }
    }
}

async fn run_rounds_of_files<P: Platform>(writeback: Arc<Writeback<P>>, mut file: Arc<FileInner>) {
    let task = Arc::new(IdleTask::default());
    loop {
        while writeback.run_next_round(&file, false).await {}
        drop(file);
        if !writeback.idle_tasks.try_keep(Arc::clone(&task)) {
            return;
        }
        file = task.given.until(|| lock(&task.file).take()).await;
    }
}
