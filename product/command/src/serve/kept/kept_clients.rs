//! The names of the clients of NFS version 4 that may have open files and locks, kept for the next server.
//!
//! Owns: the file and the thread that writes it; the order of the lists for a volume in a store.
//! Does not own: which clients these are, and how the next server waits for them (`afflux_nfs`).
//! Invariants: the last list whose end was told is kept, or a later one. A server of directories without a state
//! directory keeps none: its clients have to mount again, and have nothing to ask for. A volume in a store has the list
//! beside its data, so that a server on another host finds it.

use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "object")]
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "object")]
use afflux_engine::Platform;
use afflux_linux_device::{LinuxPlatform, WorkerPool};
use afflux_nfs::{ClientList, Server};
#[cfg(feature = "object")]
use afflux_object::LeftClients;
use afflux_report::output;
#[cfg(feature = "object")]
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use tracing::{info, warn};

use crate::private_directory;
use crate::serve::kept::state::{CLIENT_STATE, CLIENTS, StateDirectory};
#[cfg(feature = "object")]
use crate::serve::stores::store_place::StorePlace;

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

/// The names and the state of clients that a server leaves to the next one.
#[derive(Default)]
pub(crate) struct KeptClients {
    /// The names that an earlier server has left.
    pub(crate) left: Vec<u64>,
    /// The list for the next server.
    pub(crate) list: Option<Arc<dyn ClientList>>,
    /// If this host alone serves the volume, all state may be kept here. With a state directory, its file after an
    /// orderly end.
    pub(crate) state: Option<Option<PathBuf>>,
}

/// Those on this host: names in a file, and all state.
pub(crate) fn on_host(directory: &StateDirectory) -> KeptClients {
    let state = Some(directory.file(CLIENT_STATE));
    let Some(path) = directory.file(CLIENTS) else { return KeptClients { state, ..KeptClients::default() } };
    let left = private_directory::read(&path).unwrap_or_default();
    let left = left.lines().filter_map(|line| u64::from_str_radix(line, 16).ok()).collect();
    let list = Kept { path, pool: WorkerPool::new("nfs-clients", 1, 64) };
    KeptClients { left, list: Some(Arc::new(list)), state }
}

/// Tells what became of the clients of an earlier server.
pub(crate) fn report(server: &Server<LinuxPlatform>) {
    let back = server.held_by_version_4().map_or(0, |(clients, _, _)| clients);
    if back > 0 {
        info!("{back} clients of NFS version 4 go on with their open files and locks");
    }
    let missing = server.missing_clients();
    if missing > 0 {
        info!("{missing} clients of NFS version 4 had state: others wait for them, at most 70 s");
    }
}

/// The last list, and the calls that wait for it to be kept.
#[cfg(feature = "object")]
#[derive(Default)]
struct ToKeep {
    names: Vec<u64>,
    waiting: Vec<futures_channel::oneshot::Sender<()>>,
}

/// A list beside the data of a volume in a store. One task keeps the lists, and passes over all but the last.
#[cfg(feature = "object")]
struct InStore {
    to_keep: Arc<Mutex<ToKeep>>,
    /// Wakes the task.
    changed: futures_channel::mpsc::Sender<()>,
}

#[cfg(feature = "object")]
impl ClientList for InStore {
    fn keep(&self, names: Vec<u64>) -> BoxFuture<'static, ()> {
        let (done, told) = futures_channel::oneshot::channel();
        let mut to_keep = self.to_keep.lock().unwrap_or_else(PoisonError::into_inner);
        to_keep.names = names;
        to_keep.waiting.push(done);
        // A full channel wakes the task as well. Without the task this server is ending.
        let _ = self.changed.clone().try_send(());
        told.map(drop).boxed()
    }
}

/// Those of a volume in a store, opened for writing with this epoch.
#[cfg(feature = "object")]
pub(crate) fn in_store(place: &StorePlace, epoch: u32) -> KeptClients {
    let (objects, clock) = (place.store.objects(), place.store.clock());
    let left = place.platform.block_on(LeftClients::left(&objects, &clock)).unwrap_or_else(|error| {
        warn!("clients of NFS version 4 may lose locks to others: {}", place.failed(&error));
        LeftClients::default()
    });
    let (changed, mut changes) = futures_channel::mpsc::channel(1);
    let (to_keep, of_task) = (Arc::<Mutex<ToKeep>>::default(), place.clone());
    let lists = InStore { to_keep: Arc::clone(&to_keep), changed };
    place.platform.spawn("nfs clients", async move {
        while changes.next().await.is_some() {
            let ToKeep { names, waiting } =
                std::mem::take(&mut *to_keep.lock().unwrap_or_else(PoisonError::into_inner));
            if waiting.is_empty() {
                continue;
            }
            if let Err(error) = (LeftClients { epoch, names }).keep(&objects, &clock).await {
                warn!("after a restart, clients may lose locks to others: {}", of_task.failed(&error));
            }
            for done in waiting {
                let _ = done.send(());
            }
        }
    });
    KeptClients { left: left.names, list: Some(Arc::new(lists)), state: None }
}
