//! One object of the volume: what it is known by, its open file, its attributes.
//!
//! Owns: the attributes as told to clients, how they follow from the host's and from unwritten data,
//! the engine's file of a regular file.
//! Does not own: the table it is found in (`table`), calls to the host (the other modules).
//! Invariants: `size`, `mtime` and `ctime` of what one call was told as *after* is what the next
//! change is told as *before*. Times never go back by our own doing. The state's lock is never held
//! across an await or a host call. A file whose last name is gone is discarded with the last holder.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use engine::{Engine, File, Nanos, Platform};
use futures_util::lock::Mutex as TaskMutex;

use crate::attributes::{Attributes, Before, Consistency, Kind, Timestamp};
use crate::directory::{DeviceKey, Node, Stat};
use crate::handle::{FileHandle, Identity};
use crate::listing::Listed;
use crate::location::Location;

/// Most descriptors that a file's bytes take beside the object's own: the one it was opened with, one
/// past the host's cache, one through it.
const DESCRIPTORS_PER_FILE: usize = 3;

/// An object of the volume: a file, a directory, a symbolic link, ... One for each host object.
pub struct Inode<P: Platform> {
    pub(crate) identity: Identity,
    pub(crate) handle: FileHandle,
    pub(crate) node: Node,
    kind: Kind,
    fileid: u64,
    pub(crate) device: DeviceKey,
    /// Held by one change of attributes or of a directory's entries at a time.
    pub(crate) changing: TaskMutex<()>,
    /// Held while the file is being opened.
    pub(crate) opening: TaskMutex<()>,
    /// Up to which change the host has made a directory or attributes durable.
    pub(crate) durable: TaskMutex<u64>,
    /// Counts our own changes, before and after each: what was seen of the host in between is void.
    pub(crate) changes: AtomicU64,
    /// Used since the last search for something to drop.
    pub(crate) recent: AtomicBool,
    /// Whether it stands in the queue of those whose times are to be set.
    pub(crate) settling: AtomicBool,
    state: Mutex<State>,
    /// When it was last known to be inside the exports: nanoseconds of the platform's clock.
    pub(crate) confined: AtomicU64,
    /// The last piece read of a directory.
    pub(crate) listed: Mutex<Option<Listed>>,
    /// The engine's file, from the first use of its bytes.
    file: OnceLock<File>,
    /// The tree has said that it can be written.
    writable: AtomicBool,
    engine: Arc<Engine<P>>,
    /// Descriptors held by all inodes; this one's share is given back with it.
    descriptors: Arc<AtomicUsize>,
}

/// What changes under the state's lock.
pub(crate) struct State {
    /// The host's attributes as last seen: the baseline to detect others' changes against.
    pub(crate) stat: Stat,
    /// When the host was last asked.
    pub(crate) checked: Nanos,
    /// The times as clients are told.
    atime: Timestamp,
    mtime: Timestamp,
    ctime: Timestamp,
    /// The size as clients were last told.
    size: u64,
    /// The host's modification time is not the client's: to be set once the file is clean.
    pub(crate) unsettled: bool,
    /// Something was written since the last sync of the whole file.
    pub(crate) unflushed: bool,
    /// The last name is gone.
    pub(crate) removed: bool,
    /// The serving user's rights, while they are known.
    pub(crate) access: Option<u8>,
    /// Where it was last found, for trees that cannot open identities.
    pub(crate) location: Option<Location>,
}

/// What a look at the host says of an object that nobody here was changing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// As it was.
    Same,
    /// Others changed it: what is cached of its bytes is void.
    Foreign,
    /// We were changing it: nothing can be said.
    Busy,
}

impl<P: Platform> Inode<P> {
    pub(crate) fn new(
        engine: &Arc<Engine<P>>,
        identity: Identity,
        handle: FileHandle,
        node: Node,
        stat: Stat,
        now: Nanos,
        descriptors: &Arc<AtomicUsize>,
    ) -> Self {
        descriptors.fetch_add(1, Ordering::Relaxed);
        let descriptors = Arc::clone(descriptors);
        let state = State {
            stat,
            checked: now,
            atime: stat.atime,
            mtime: stat.mtime,
            ctime: stat.ctime,
            size: stat.size,
            unsettled: false,
            unflushed: false,
            removed: false,
            access: None,
            location: None,
        };
        Self {
            identity,
            handle,
            node,
            kind: stat.kind,
            fileid: stat.fileid,
            device: stat.device,
            changing: TaskMutex::new(()),
            opening: TaskMutex::new(()),
            durable: TaskMutex::new(0),
            changes: AtomicU64::new(0),
            recent: AtomicBool::new(true),
            settling: AtomicBool::new(false),
            state: Mutex::new(state),
            confined: AtomicU64::new(now.0),
            listed: Mutex::new(None),
            file: OnceLock::new(),
            writable: AtomicBool::new(false),
            engine: Arc::clone(engine),
            descriptors,
        }
    }

    /// What it is. Never changes.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its number in its file system. Never changes, never 0.
    pub fn fileid(&self) -> u64 {
        self.fileid
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn listed(&self) -> MutexGuard<'_, Option<Listed>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine's file, if the bytes were used.
    #[inline]
    pub(crate) fn file(&self) -> Option<&File> {
        self.file.get()
    }

    /// The engine's file, if it is known that it can be written.
    #[inline]
    pub(crate) fn writable_file(&self) -> Option<&File> {
        self.file.get().filter(|_| self.writable.load(Ordering::Acquire))
    }

    /// Keeps an opened file. Called with `opening` held.
    pub(crate) fn opened(&self, file: File) {
        assert!(self.file.set(file).is_ok(), "a file is opened once");
        self.descriptors.fetch_add(DESCRIPTORS_PER_FILE, Ordering::Relaxed);
    }

    pub(crate) fn descriptors_held(&self) -> usize {
        if self.file().is_some() { 1 + DESCRIPTORS_PER_FILE } else { 1 }
    }

    /// The tree has said that the file can be written.
    pub(crate) fn allow_writing(&self) {
        self.writable.store(true, Ordering::Release);
    }

    pub(crate) fn used_now(&self) {
        // A plain test first: the cache line stays shared among those that only read.
        if !self.recent.load(Ordering::Relaxed) {
            self.recent.store(true, Ordering::Relaxed);
        }
    }

    /// The count of changes, ordered after what was learnt of any that has ended.
    pub(crate) fn changes_seen(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.file().is_none_or(File::is_clean)
    }

    /// Whether it may be dropped and found again later with nothing lost.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        !state.unsettled && !state.unflushed && self.is_clean()
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.state().removed
    }

    /// The attributes now.
    pub(crate) fn attributes(&self) -> Attributes {
        self.told(&mut self.state())
    }

    /// The attributes now, unless the host was last asked `idle_ns` ago or longer and may be asked.
    pub(crate) fn fresh_attributes(&self, now: Nanos, idle_ns: u64) -> Option<Attributes> {
        let mut state = self.state();
        let fresh = now.since(state.checked) < idle_ns || state.unsettled || !self.is_clean();
        (fresh && !state.removed).then(|| self.told(&mut state))
    }

    /// What a client is told; remembered as what it was told.
    fn told(&self, state: &mut State) -> Attributes {
        let stat = state.stat;
        let (size, used) = match self.file() {
            Some(file) => {
                let size = file.size();
                let most = size.max(stat.size).next_multiple_of(4096);
                let unwritten = if file.is_clean() { 0 } else { file.dirty_bytes() };
                (size, stat.used.saturating_add(unwritten).min(most.max(stat.used)))
            }
            None => (stat.size, stat.used),
        };
        state.size = size;
        Attributes {
            kind: self.kind,
            mode: stat.mode,
            links: if state.removed { 0 } else { stat.links },
            uid: stat.uid,
            gid: stat.gid,
            size,
            used,
            device_major: stat.device_major,
            device_minor: stat.device_minor,
            fsid: self.identity.fsid(),
            fileid: self.fileid,
            atime: state.atime,
            mtime: state.mtime,
            ctime: state.ctime,
        }
    }

    /// Both sides of an operation that changed nothing.
    pub(crate) fn unchanged(&self) -> Consistency {
        let mut state = self.state();
        let before = state.before();
        Consistency { before: Some(before), after: Some(self.told(&mut state)) }
    }

    /// Marks a change of the bytes at `now`, by a client.
    #[inline]
    pub(crate) fn written(&self, now: Timestamp) -> Consistency {
        self.changes.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        let before = state.before();
        state.mtime = now.moved_past(state.mtime);
        state.ctime = now.moved_past(state.ctime);
        state.unsettled = true;
        state.unflushed = true;
        Consistency { before: Some(before), after: Some(self.told(&mut state)) }
    }

    /// Takes over what the host says after a change of ours to attributes, names or entries.
    /// `times`: which of the access and modification times clients are to be told as the host has them.
    pub(crate) fn changed(&self, stat: Stat, now: Nanos, times: Times) -> Consistency {
        self.changes.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        let before = state.before();
        state.stat = stat;
        state.checked = now;
        state.access = None;
        state.ctime = stat.ctime.moved_past(state.ctime);
        match times {
            Times::Keep => {}
            Times::Entries => state.mtime = stat.mtime.moved_past(state.mtime),
            Times::Set { atime, mtime } => {
                if atime {
                    state.atime = stat.atime;
                }
                if mtime {
                    state.mtime = stat.mtime;
                    // Writeback to come will move the host's again.
                    state.unsettled |= !self.is_clean();
                }
            }
        }
        state.removed |= stat.links == 0;
        Consistency { before: Some(before), after: Some(self.told(&mut state)) }
    }

    /// Whether the host, asked at about `now`, says something else than the baseline, and that cannot be
    /// our own writing back.
    pub(crate) fn differs(&self, stat: &Stat, now: Nanos) -> bool {
        let mut state = self.state();
        if state.is_like(stat) {
            state.checked = now;
            return false;
        }
        !state.unsettled && self.is_clean()
    }

    /// Compares what the host says with the baseline. `changes` is the count from before the host was
    /// asked. For [`Seen::Foreign`] the new attributes are taken over.
    pub(crate) fn observe(&self, stat: Stat, changes: u64, now: Nanos) -> Seen {
        let mut state = self.state();
        if self.changes.load(Ordering::Relaxed) != changes || state.removed {
            return Seen::Busy;
        }
        if state.unsettled || !self.is_clean() {
            // Writeback moves the host's times and size: only what it does not touch can be compared.
            state.stat = Stat { size: state.stat.size, mtime: state.stat.mtime, ..stat };
            return Seen::Busy;
        }
        state.checked = now;
        if state.is_like(&stat) {
            state.stat = stat;
            return Seen::Same;
        }
        state.foreign(stat);
        // What its names named does not count any more.
        self.changes.fetch_add(1, Ordering::Release);
        Seen::Foreign
    }

    /// The host's modification time was set to the client's, and this is how the file looks now.
    /// False if it was written to meanwhile.
    pub(crate) fn settled(&self, stat: Stat, changes: u64, now: Nanos) -> Option<Seen> {
        let mut state = self.state();
        if self.changes.load(Ordering::Relaxed) != changes || !self.is_clean() {
            return None;
        }
        state.unsettled = false;
        state.checked = now;
        let size = self.file().map_or(stat.size, File::size);
        if stat.size == size {
            state.stat = stat;
            return Some(Seen::Same);
        }
        state.foreign(stat);
        Some(Seen::Foreign)
    }

    /// The whole file was synced while `changes` stood.
    pub(crate) fn flushed(&self, changes: u64) {
        let mut state = self.state();
        if self.changes.load(Ordering::Relaxed) == changes {
            state.unflushed = false;
        }
    }
}

/// Which times a change moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Times {
    /// The change time alone.
    Keep,
    /// A directory's modification time too.
    Entries,
    /// Those that were set.
    Set {
        /// The access time.
        atime: bool,
        /// The modification time.
        mtime: bool,
    },
}

impl State {
    fn before(&self) -> Before {
        Before { size: self.size, mtime: self.mtime, ctime: self.ctime }
    }

    fn is_like(&self, stat: &Stat) -> bool {
        (stat.size, stat.mtime, stat.ctime) == (self.stat.size, self.stat.mtime, self.stat.ctime)
    }

    pub(crate) fn mtime(&self) -> Timestamp {
        self.mtime
    }

    fn foreign(&mut self, stat: Stat) {
        self.stat = stat;
        self.atime = stat.atime;
        self.mtime = stat.mtime;
        self.ctime = stat.ctime.moved_past(self.ctime);
        self.access = None;
    }
}

impl<P: Platform> Drop for Inode<P> {
    fn drop(&mut self) {
        let removed = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).removed;
        if let (true, Some(file)) = (removed, self.file()) {
            self.engine.discard(file);
        }
        self.descriptors.fetch_sub(self.descriptors_held(), Ordering::Relaxed);
    }
}
