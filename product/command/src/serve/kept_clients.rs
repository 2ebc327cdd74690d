//! The names of the clients of NFS version 4 that may have open files and locks, kept for the next server.
//!
//! Owns: the file, and the thread that writes it.
//! Does not own: which clients these are, and how the next server waits for them (`afflux_nfs`).
//! Invariants: the file has the last list whose end was told, or a later one. A server without a state directory keeps none:
//! its clients have to mount again, and have nothing to ask for.

use std::path::PathBuf;
use std::sync::Arc;

use afflux_linux::WorkerPool;
use afflux_nfs::ClientList;
use afflux_report::output;
use futures_util::future::{BoxFuture, FutureExt};
use tracing::{info, warn};

use crate::private_directory;

struct Kept {
    path: PathBuf,
    /// One thread: lists are written in their order.
    pool: WorkerPool,
}

impl ClientList for Kept {
    fn keep(&self, names: Vec<u64>) -> BoxFuture<'static, ()> {
        let (path, (done, told)) = (self.path.clone(), futures_channel::oneshot::channel());
        self.pool.post(move || {
            let text: String = names.iter().map(|name| format!("{name:016x}\n")).collect();
            if let Err(error) = private_directory::replace(&path, &text) {
                let path = output::shown(path.display());
                warn!("after a restart, clients may lose locks to others: {path}: {error}");
            }
            let _ = done.send(());
        });
        told.map(drop).boxed()
    }
}

/// The names that an earlier server has left, and the list for the next one.
pub(super) fn taken(path: Option<PathBuf>) -> (Vec<u64>, Option<Arc<dyn ClientList>>) {
    let Some(path) = path else { return (Vec::new(), None) };
    let left = private_directory::read(&path).unwrap_or_default();
    let left: Vec<u64> = left.lines().filter_map(|line| u64::from_str_radix(line, 16).ok()).collect();
    if !left.is_empty() {
        info!("{} clients of NFS version 4 had state: others wait for them, at most 70 s", left.len());
    }
    (left, Some(Arc::new(Kept { path, pool: WorkerPool::new("nfs-clients", 1, 64) })))
}
