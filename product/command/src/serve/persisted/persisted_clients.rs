//! The names of the clients of NFS version 4 that may have open files and locks, persisted for the next server.
//!
//! Owns: the file, the thread that keeps the lists in their order.
//! Does not own: which clients these are, and how the next server waits for them (`afflux_nfs`).
//! Invariants: the last list whose end was told is persisted, or a later one. A list that cannot be read is no empty
//! list: others wait as for a missing client, and no client reclaims locks, since another client may have them by now.
//! A list is out of date once a server with another state directory has served, and counts as unreadable. A server of
//! directories without a state directory keeps none: its clients have to mount again, and have nothing to ask for. A
//! volume in a store has the list beside its data, so that a server on another host finds it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use afflux_engine::lock;
use afflux_linux_device::{LinuxPlatform, WorkerPool};
use afflux_nfs::{ClientList, Server, UNKNOWN_CLIENTS};
#[cfg(feature = "object")]
use afflux_object::PreviousClients;
#[cfg(feature = "object")]
use afflux_report::failure::Outcome;
use afflux_report::output;
use futures_channel::oneshot;
use futures_util::future::{BoxFuture, FutureExt};
use tracing::{info, warn};

use crate::private_directory;
use crate::serve::persisted::last_run::{LastRun, ServerRun};
use crate::serve::persisted::state::{CLIENT_STATE, CLIENTS, StateDirectory};
#[cfg(feature = "object")]
use crate::serve::stores::volume_location::VolumeLocation;

/// Most names of a list, as in a store. A server knows fewer clients.
const NAMES_MAX: usize = 65_536;

/// Lists on the way to the place where they are persisted. One thread keeps them, and passes over all but the last.
struct Lists {
    to_keep: Arc<Mutex<ToKeep>>,
    thread: WorkerPool,
    keep: Arc<dyn Fn(Vec<u64>) -> Result<(), String> + Send + Sync>,
}

/// The last list, and the calls that wait for it to be persisted.
#[derive(Default)]
struct ToKeep {
    names: Vec<u64>,
    waiting: Vec<oneshot::Sender<bool>>,
}

impl Lists {
    fn persisted_by(keep: impl Fn(Vec<u64>) -> Result<(), String> + Send + Sync + 'static) -> Arc<dyn ClientList> {
        Arc::new(Self { to_keep: Arc::default(), thread: WorkerPool::new("nfs-clients", 1, 64), keep: Arc::new(keep) })
    }
}

impl ClientList for Lists {
    fn keep(&self, names: Vec<u64>) -> BoxFuture<'static, bool> {
        let (done, told) = oneshot::channel();
        let mut to_keep = lock(&self.to_keep);
        to_keep.names = names;
        to_keep.waiting.push(done);
        let (to_keep, keep) = (Arc::clone(&self.to_keep), Arc::clone(&self.keep));
        self.thread.post(move || {
            let ToKeep { names, waiting } = std::mem::take(&mut *lock(&to_keep));
            if waiting.is_empty() {
                return;
            }
            let persisted = keep(names);
            if let Err(error) = &persisted {
                warn!("after a restart, clients may lose locks to others: {error}");
            }
            waiting.into_iter().for_each(|done| _ = done.send(persisted.is_ok()));
        });
        told.map(|persisted| persisted.unwrap_or(false)).boxed()
    }
}

/// The names and the state of clients that a server leaves to the next one.
#[derive(Default)]
pub(crate) struct PersistedClients {
    /// The names that an earlier server has left.
    pub(crate) previous_names: Vec<u64>,
    /// The list for the next server.
    pub(crate) list: Option<Arc<dyn ClientList>>,
    /// If this host alone serves the volume, all state may be persisted here. With a state directory, its file after an
    /// orderly end.
    pub(crate) state: Option<Option<StateFile>>,
}

/// The file for the state of clients after an orderly end.
pub(crate) struct StateFile {
    pub(crate) path: PathBuf,
    /// The number of the last server, if that ended in order: its file is taken.
    pub(crate) previous_server: Option<u64>,
    /// The number of this server.
    pub(crate) number: u64,
}

/// Those on this host: names in a file, and all state.
pub(crate) fn on_host(directory: &StateDirectory, run: ServerRun) -> PersistedClients {
    let previous_server = match run.last {
        LastRun::Ended { number, .. } if run.is_next => number,
        LastRun::Ended { .. } | LastRun::Begun { .. } | LastRun::Unknown => None,
    };
    let path = directory.own_file(CLIENT_STATE);
    let state = Some(path.map(|path| StateFile { path, previous_server, number: run.number }));
    let Some(path) = directory.own_file(CLIENTS) else {
        return PersistedClients { state, ..PersistedClients::default() };
    };
    let previous_names = read_names(&path).and_then(|names| match run.is_next || names.is_empty() {
        true => Ok(names),
        false => Err(io::Error::other("another server may have served since")),
    });
    let previous_names = previous_names.unwrap_or_else(|error| {
        warn!(
            "{}: {error}. Clients of NFS version 4 that an earlier server had are unknown: they lose their locks, and \
             others wait for them, at most 70 s",
            output::shown(path.display())
        );
        UNKNOWN_CLIENTS.to_vec()
    });
    let list = Lists::persisted_by(move |names| {
        let text: String = names.iter().map(|name| format!("{name:016x}\n")).collect();
        let persisted = private_directory::replace(&path, &text);
        persisted.map_err(|error| format!("{}: {error}", output::shown(path.display())))
    });
    PersistedClients { previous_names, list: Some(list), state }
}

/// The names in a file. A missing file has none.
fn read_names(path: &Path) -> io::Result<Vec<u64>> {
    let text = match private_directory::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let name = |line| u64::from_str_radix(line, 16).map_err(|_| io::Error::other("a line of it is no client's name"));
    let lines = || text.lines().filter(|line| !line.is_empty());
    if lines().count() > NAMES_MAX {
        return Err(io::Error::other(format!("it has more than {NAMES_MAX} names")));
    }
    lines().map(name).collect()
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

/// Those of a volume in a store, opened for writing with this epoch. A list that cannot be read is no empty list: its
/// clients would lose their locks to others.
#[cfg(feature = "object")]
pub(crate) fn in_store(place: &VolumeLocation, epoch: u32) -> Outcome<PersistedClients> {
    let (objects, clock) = (place.store.objects(), place.store.clock());
    let previous_names =
        place.platform.block_on(PreviousClients::read(&objects, &clock)).map_err(|error| place.failed(&error))?;
    let place = place.clone();
    let list = Lists::persisted_by(move |names| {
        let persisted = place.platform.block_on(PreviousClients { epoch, names }.keep(&objects, &clock));
        persisted.map_err(|error| place.failed(&error).to_string())
    });
    Ok(PersistedClients { previous_names: previous_names.names, list: Some(list), state: None })
}

#[cfg(test)]
mod tests;
