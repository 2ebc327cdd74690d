//! The tasks that run rounds of syncs: each has one file's at a time, and stays for the next.
//!
//! Owns: the tasks that have nothing to do, and how a file is handed to one.
//! Does not own: what a round is (`sync`), which file needs one.
//! Invariants: a task that has nothing to do holds no file. At most [`IDLE_MAX`] stay; a file never waits for a task.

use std::sync::{Arc, Mutex};

use super::Writeback;
use crate::devices::file::FileInner;
use crate::platform::Platform;
use crate::wait::{WaitQueue, lock};

/// A task takes some 1 KiB.
const IDLE_MAX: usize = 64;

/// Where a task without a file is handed the next.
#[derive(Default)]
struct Desk {
    file: Mutex<Option<Arc<FileInner>>>,
    given: WaitQueue,
}

/// Tasks without a file, the last one for the shortest time.
#[derive(Default)]
pub(super) struct IdleTasks(Mutex<Vec<Arc<Desk>>>);

impl<P: Platform> Writeback<P> {
    /// Has a task run the rounds that the file's state asks for, until there is none.
    pub(super) fn start_rounds(self: &Arc<Self>, file: &Arc<FileInner>) {
        let file = Arc::clone(file);
        let idle = lock(&self.idle_tasks.0).pop();
        match idle {
            Some(desk) => {
                *lock(&desk.file) = Some(file);
                desk.given.wake_all();
            }
            None => self.base.platform.spawn("sync", run_rounds_of_files(Arc::clone(self), file)),
        }
    }
}

async fn run_rounds_of_files<P: Platform>(writeback: Arc<Writeback<P>>, mut file: Arc<FileInner>) {
    let desk = Arc::new(Desk::default());
    loop {
        writeback.run_rounds(file).await;
        {
            let mut idle = lock(&writeback.idle_tasks.0);
            if idle.len() == IDLE_MAX {
                return;
            }
            idle.push(Arc::clone(&desk));
        }
        file = desk.given.until(|| lock(&desk.file).take()).await;
    }
}
