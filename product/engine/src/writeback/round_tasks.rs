//! The tasks that run rounds of syncs: each has one file's at a time, and stays for the next.
//!
//! Owns: the choice of an idle task or a new one.
//! Does not own: how an idle task gets a file (`idle_task`), the meaning of a round (`sync`), which file needs one.
//! Invariants: a file never waits for a task.

use std::sync::Arc;

use afflux_device::platform::Platform;

use super::Writeback;
use super::idle_task::IdleTask;
use crate::devices::file::FileInner;

impl<P: Platform> Writeback<P> {
    /// Has a task run the rounds requested in the file's state, until none is left.
    pub(super) fn start_rounds(self: &Arc<Self>, file: &Arc<FileInner>) {
        let file = Arc::clone(file);
        match self.idle_tasks.take() {
            Some(task) => task.give(file),
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
        file = task.next_file().await;
    }
}
