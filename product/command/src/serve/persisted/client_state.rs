//! The clients of NFS version 4 for the next server: the names of those that may have open files and locks, and all
//! their state for a server on this host: in the arena, and in a file after an orderly end.
//!
//! Owns: both files and their forms, the thread that persists the lists of names in their order.
//! Does not own: the state, which clients these are, and how the next server waits for them (`afflux_nfs`).
//! Invariants: the last list that was reported as persisted is persisted, or a later one. A list that cannot be read is
//! no empty list: others wait as for a missing client, and no client reclaims locks, since another client may have them
//! by now. A list is out of date once a server with another state directory has served, and counts as unreadable. A
//! server of directories without a state directory persists none: its clients have to mount again, and have nothing to
//! ask for. A volume in a store has the list beside its data, so that a server on another host finds it.
//!
//! Each server removes the file of the state durably before it serves, and only the next one after the server that
//! wrote the file takes its contents: a server without version 4 lets others change what a client had locked
//! (`a_server_without_version_4_in_between_ends_the_state_of_clients`). The file has the number of that server. It is
//! written after the last answer (`after_an_orderly_stop_clients_go_on_with_and_without_an_arena`). A volume in a store
//! has none: another host may have served it since. The file names no directories: each open has its file's handle,
//! which names the export. Its words are mostly zero, so it has the runs of the others. Bytes of any other form are
//! refused, and no word outside the memory is stored.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afflux_engine::lock;
use afflux_frames::{CLIENT_STATE_BYTES, FrameTable, Memory, Part};
use afflux_linux_device::{LinuxPlatform, WorkerPool};
use afflux_nfs::{ClientList, ClientMemory, ListChange, LostOpen, Server, UNKNOWN_CLIENTS};
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
use crate::serve::persisted::{CLIENT_STATE, CLIENTS, StateDirectory};
#[cfg(feature = "object")]
use crate::serve::stores::VolumeLocation;

/// Words of a piece of the state.
const PIECE_WORDS: usize = CLIENT_STATE_BYTES / 8;
/// The first words of the file. Another form has another number.
const FORM: &str = "afflux-nfs-state 4";
/// Most bytes of its first line.
const HEAD_BYTES_MAX: usize = 64;

/// Lines about opens that have ended.
const LOST_LINES_MAX: usize = 8;

/// Reports which opens of clients have ended with the last server.
fn tell_lost(lost: &[LostOpen]) {
    for LostOpen { file, client, error } in lost.iter().take(LOST_LINES_MAX) {
        warn!(
            "client {client} had the file with the number {file} open at the last server, and this server does not find \
             that file: {error}. The open has ended, with its locks; the client opens the file again if it is there."
        );
    }
    if lost.len() > LOST_LINES_MAX {
        warn!("{} more open files of clients have ended in this way", lost.len() - LOST_LINES_MAX);
    }
}

/// Removes the state of an earlier server, since this server does not go on with it, and nobody may later.
pub(crate) fn forget(directory: &StateDirectory) {
    let Some(path) = directory.own_file(CLIENT_STATE) else { return };
    // Nobody reads it.
    match private_directory::take(&path, u64::MAX) {
        Ok(None) => {}
        Ok(Some(_)) => info!("clients of NFS version 4 of the last server ask again for their open files and locks"),
        Err(error) => {
            let shown = output::shown(path.display());
            warn!(
                "{shown} is of clients of an earlier server and cannot be removed: {error}; remove it before version 4 is served"
            );
        }
    }
}

/// The state of clients in a server's memory.
pub(crate) struct ClientState {
    pieces: Arc<FrameTable<[AtomicU64; PIECE_WORDS]>>,
    /// The file for an orderly end.
    file: Option<StateFile>,
}

impl ClientState {
    /// The memory for a server that begins, with the inherited state.
    pub(crate) fn taken(memory: &Arc<Memory>, persisted: PersistedClients) -> (Option<Self>, ClientMemory) {
        let PersistedClients { previous_names, list, state } = persisted;
        let state = state.map(|file| Self { pieces: Arc::new(memory.table(Part::Clients)), file });
        state.iter().for_each(Self::take);
        let words = state.as_ref().map(|state| Arc::clone(&state.pieces) as _);
        (state, ClientMemory { previous_names, list, words, told: Some(Arc::new(tell_lost)) })
    }

    fn words(&self) -> &[AtomicU64] {
        (*self.pieces).as_ref()
    }

    /// Takes the state that a server has persisted at its orderly end, unless the memory has that of a killed one.
    fn take(&self) {
        let Some(StateFile { path, previous_server, .. }) = &self.file else { return };
        let most = (HEAD_BYTES_MAX + bytes_max(self.words().len())) as u64;
        let taken = private_directory::take(path, most);
        if let Err(error) = taken.and_then(|bytes| bytes.map_or(Ok(()), |bytes| self.fill(&bytes, *previous_server))) {
            // Only the words that the file has filled: a store to another word would take memory.
            let filled = self.words().iter().filter(|word| word.load(Ordering::Relaxed) != 0);
            filled.for_each(|word| word.store(0, Ordering::Relaxed));
            info!("clients ask again for their open files and locks: {}: {error}", output::shown(path.display()));
        }
    }

    /// Takes the state in a file of the server with the run `previous_server`.
    fn fill(&self, bytes: &[u8], previous_server: Option<u64>) -> io::Result<()> {
        let wrong = || io::Error::other("it is not of the last server, or of one with another cache");
        let words = self.words();
        if words.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
            return Ok(());
        }
        let head = self.head(previous_server.ok_or_else(wrong)?);
        let runs = bytes.strip_prefix(head.as_bytes()).ok_or_else(wrong)?;
        decode(runs, words).ok_or_else(wrong)
    }

    fn head(&self, run_id: u64) -> String {
        format!("{FORM} {:x} {run_id:016x}\n", self.words().len())
    }

    /// Persists the state of a server that answers no more calls. All of it fits, however many clients there are.
    pub(crate) fn keep(&self) {
        let Some(StateFile { path, run_id, .. }) = &self.file else { return };
        let (head, runs) = (self.head(*run_id), encode(self.words()));
        if let Err(error) = private_directory::leave(path, &[head.as_bytes(), &runs]) {
            warn!("clients will ask again for their open files and locks: {}: {error}", output::shown(path.display()));
        }
    }
}

const WORD_BYTES: usize = 8;
/// The offset and the length of a run: two numbers of 32 bits.
const RUN_HEAD_BYTES: usize = 8;
/// A run ends before so many zeros: they take no less space than the head of another run.
const GAP_WORDS: usize = 2;

/// Most bytes for so many words.
pub(crate) const fn bytes_max(words: usize) -> usize {
    RUN_HEAD_BYTES + words * WORD_BYTES
}

/// The words as bytes.
pub(crate) fn encode(words: &[AtomicU64]) -> Vec<u8> {
    let is_zero = |at: usize| words[at].load(Ordering::Relaxed) == 0;
    let (mut bytes, mut at) = (Vec::new(), 0);
    while at < words.len() {
        if is_zero(at) {
            at += 1;
            continue;
        }
        let (mut end, mut next) = (at + 1, at + 1);
        while next < words.len() && next < end + GAP_WORDS {
            next += 1;
            if !is_zero(next - 1) {
                end = next;
            }
        }
        [at, end - at].iter().for_each(|number| bytes.extend((*number as u32).to_le_bytes()));
        words[at..end].iter().for_each(|word| bytes.extend(word.load(Ordering::Relaxed).to_le_bytes()));
        at = end;
    }
    bytes
}

/// Stores the words of `bytes` at their offsets. None for bytes of another form; some words may be stored then.
pub(crate) fn decode(bytes: &[u8], words: &[AtomicU64]) -> Option<()> {
    let mut left = bytes;
    while !left.is_empty() {
        let (head, behind) = left.split_first_chunk::<RUN_HEAD_BYTES>()?;
        let head = u64::from_le_bytes(*head);
        let (at, count) = ((head as u32) as usize, (head >> 32) as usize);
        let run = words.get(at..at.checked_add(count)?)?;
        let (values, behind) = behind.split_at_checked(count * WORD_BYTES)?;
        let (values, _) = values.as_chunks::<WORD_BYTES>();
        run.iter().zip(values).for_each(|(word, value)| word.store(u64::from_le_bytes(*value), Ordering::Relaxed));
        left = behind;
    }
    Some(())
}

/// Most names of a list, as in a store. A server knows fewer clients.
const NAMES_MAX: usize = 65_536;

/// The list of names. One thread makes the changes that have come, and persists the list as it is then.
struct PersistedList {
    to_make: Arc<Mutex<ToMake>>,
    /// The thread's own.
    names: Arc<Mutex<BTreeSet<u64>>>,
    thread: WorkerPool,
    persist: Arc<dyn Fn(Vec<u64>) -> Result<(), String> + Send + Sync>,
}

/// Changes of the list, and the calls that wait until the list with these is persisted.
#[derive(Default)]
struct ToMake {
    change: ListChange,
    waiting: Vec<oneshot::Sender<bool>>,
}

impl PersistedList {
    /// With the names that an earlier server has persisted.
    fn begin(
        names: &[u64],
        persist: impl Fn(Vec<u64>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Arc<dyn ClientList> {
        Arc::new(Self {
            to_make: Arc::default(),
            names: Arc::new(Mutex::new(names.iter().copied().collect())),
            thread: WorkerPool::new("nfs-clients", 1, 64),
            persist: Arc::new(persist),
        })
    }
}

impl ClientList for PersistedList {
    fn change(&self, names: ListChange) -> BoxFuture<'static, bool> {
        let (done, told) = oneshot::channel();
        let mut to_make = lock(&self.to_make);
        to_make.change.extend(names);
        to_make.waiting.push(done);
        let (to_make, names, persist) = (Arc::clone(&self.to_make), Arc::clone(&self.names), Arc::clone(&self.persist));
        self.thread.post(move || {
            let ToMake { change, waiting } = std::mem::take(&mut *lock(&to_make));
            if waiting.is_empty() {
                return;
            }
            let persisted = persist(changed(&mut lock(&names), &change));
            if let Err(error) = &persisted {
                warn!("after a restart, clients may lose locks to others: {error}");
            }
            waiting.into_iter().for_each(|done| _ = done.send(persisted.is_ok()));
        });
        told.map(|persisted| persisted.unwrap_or(false)).boxed()
    }
}

/// The names after a change.
fn changed(names: &mut BTreeSet<u64>, change: &ListChange) -> Vec<u64> {
    for (name, is_listed) in change {
        if *is_listed {
            names.insert(*name)
        } else {
            names.remove(name)
        };
    }
    names.iter().copied().collect()
}

/// The names and the state of clients that a server leaves to the next one.
#[derive(Default)]
pub(crate) struct PersistedClients {
    /// The names that an earlier server has persisted.
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
    /// The run of the last server, if that ended in order: its file is taken.
    pub(crate) previous_server: Option<u64>,
    /// The run of this server.
    pub(crate) run_id: u64,
}

/// Those on this host: names in a file, and all state.
pub(crate) fn on_host(directory: &StateDirectory, run: ServerRun) -> PersistedClients {
    let previous_server = match run.last {
        LastRun::Ended { run_id, .. } if run.is_next => Some(run_id),
        LastRun::Ended { .. } | LastRun::Begun { .. } | LastRun::Unknown => None,
    };
    let path = directory.own_file(CLIENT_STATE);
    let state = Some(path.map(|path| StateFile { path, previous_server, run_id: run.run_id }));
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
    let list = PersistedList::begin(&previous_names, move |names| {
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

/// Reports what became of the clients of an earlier server.
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
    let list = PersistedList::begin(&previous_names.names, move |names| {
        let persisted = place.platform.block_on(PreviousClients { epoch, names }.keep(&objects, &clock));
        persisted.map_err(|error| place.failed(&error).to_string())
    });
    Ok(PersistedClients { previous_names: previous_names.names, list: Some(list), state: None })
}

#[cfg(test)]
mod tests;
