//! The files of a cache, one for each file of the host, and their descriptors.
//!
//! Owns: the set of cached files, their handles, their claims, when they give up their descriptors, how many files
//! without a handle retain their pages; the exclusive access of each append to a file.
//! Does not own: the pages (the engine), descriptors beside the one that a file was opened with (`platform-linux`),
//! noticing others' changes (`coherence`).
//! Invariants: a device and an inode are one file. A file with a handle retains the descriptor that it was opened with;
//! a file without a handle gives its descriptors up once all of it is durable. Only such files are dropped from the
//! cache. The host is never called under the lock of all files: a mount that hangs blocks only the users of its files.
//! A dropped append, also one that has the access, blocks no further append.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use afflux_engine::{Backing, DeviceId};
use afflux_linux_device::{FileClaim, HostFile, LentDescriptor, RevokedDescriptors, SpareDescriptors, claim, unclaim};

use crate::coherence::{EngineSnapshot, KnownHostState, SizeChange, Stamp};
use crate::devices::{CacheDevice, DeviceNumber};
use crate::error::Error;

/// Longest wait for a file that another cache has.
const CLAIM_PATIENCE: Duration = Duration::from_secs(2);
const CLAIM_PAUSE: Duration = Duration::from_millis(5);

/// A file of the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct HostFileKey {
    pub(crate) device: DeviceNumber,
    pub(crate) inode: u64,
}

/// A file of the cache.
pub(crate) struct CachedFile {
    pub(crate) key: HostFileKey,
    pub(crate) file: afflux_engine::File,
    pub(crate) host: Arc<HostFile>,
    pub(crate) device: Arc<CacheDevice>,
    /// The path of its last opening, for people.
    path: Mutex<PathBuf>,
    /// Whether a write has not been followed by a sync of the whole file.
    pub(crate) unsynced: AtomicBool,
    pub(crate) tail: Tail,
    known: Mutex<KnownHostState>,
}

impl CachedFile {
    pub(crate) fn path(&self) -> PathBuf {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_path(&self, path: PathBuf) {
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }

    /// Adds the file's name to an engine's error.
    pub(crate) fn error(&self, error: afflux_engine::Error) -> Error {
        let path = self.path();
        if error == afflux_engine::Error::Device(afflux_engine::DeviceError::Stale) && self.host.given().is_none() {
            return Error::Gone { path };
        }
        Error::from_engine(&path, error, self.file.size_max())
    }

    /// Notes a write, before it happens.
    pub(crate) fn note_written(&self) {
        // A plain load first, so that the cache line stays shared among writers.
        if !self.unsynced.load(Ordering::Relaxed) {
            self.unsynced.store(true, Ordering::SeqCst);
        }
    }

    /// All of the file is durable: descriptors that were opened to write it may be closed.
    pub(crate) fn unkeep_descriptor(&self) {
        self.host.unkeep_writable(|| self.unsynced.load(Ordering::SeqCst) || !self.file.is_clean());
    }

    fn known(&self) -> MutexGuard<'_, KnownHostState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state to take before the host is asked.
    pub(crate) fn before_look(&self) -> EngineSnapshot {
        EngineSnapshot::of(&self.file)
    }

    /// Whether the host was asked within `within`.
    pub(crate) fn was_looked_at(&self, within: Duration) -> bool {
        self.known().is_newer_than(within)
    }

    /// A change by another program, if the host's answer shows one.
    pub(crate) fn seen(&self, before: &EngineSnapshot, stamp: Stamp) -> Option<SizeChange> {
        if self.device.size.is_some() { None } else { self.known().seen(&self.file, before, stamp) }
    }

    /// Saves the file's state as it gives up its descriptors. False if the state is unknown, or others have changed the
    /// file. Asks the host only if we have changed the file since the last check. If others have, the next opening
    /// finds another state than the saved one.
    fn try_save_look(&self) -> bool {
        let before = self.before_look();
        if self.known().is_unchanged(&before) {
            return true;
        }
        let stamp = self.host.given().and_then(|fd| Stamp::of(&fd).ok());
        stamp.is_some_and(|stamp| self.seen(&before, stamp).is_none() && self.is_as(&stamp))
    }

    /// Whether the host's file is unchanged since then.
    fn is_as(&self, stamp: &Stamp) -> bool {
        self.known().is_as(stamp, self.device.size.is_some())
    }

    /// Whether all writes are durable. Bytes written during a sync may be on the device when it ends, without being
    /// flushed by it; the engine tracks that.
    pub(crate) fn is_durable(&self) -> bool {
        self.is_flushed() && !self.unsynced.load(Ordering::SeqCst)
    }

    /// Whether the engine has neither dirty nor unflushed bytes of it.
    pub(crate) fn is_flushed(&self) -> bool {
        self.file.is_clean() && !self.file.has_unflushed()
    }
}

/// A cache's state of a file beside its pages.
struct FileEntry {
    file: Arc<CachedFile>,
    handles: usize,
    /// The kind of claim on the host's file, while there is a descriptor.
    claim: Option<FileClaim>,
    /// Whether a call is asking the host to change the claim into one for writing.
    is_upgraded: bool,
    /// Its position among the files without a handle.
    idle: Option<u64>,
}

pub(crate) struct Files {
    state: Mutex<FilesState>,
    /// Signals the end of an upgrade of a claim, successful or not.
    upgraded: Condvar,
    pub(crate) spare: Arc<SpareDescriptors>,
    bounds: ClosedFileBounds,
}

/// The bounds of cached files without a handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosedFileBounds {
    /// Most files without a handle that are not durable yet, each with a descriptor.
    pub(crate) unwritten_files: usize,
    /// Most durable files without a handle.
    pub(crate) idle_files: usize,
}

#[derive(Default)]
struct FilesState {
    entries: HashMap<HostFileKey, FileEntry>,
    /// Files without a handle, the longest idle first: with a descriptor, and without.
    held: BTreeMap<u64, HostFileKey>,
    resting: BTreeMap<u64, HostFileKey>,
    next_idle: u64,
}

/// The outcome of opening a file.
pub(crate) enum OpenOutcome {
    /// The file is open.
    In {
        file: Arc<CachedFile>,
        /// Whether the cache had a descriptor of the file already. Other programs may then have changed the file
        /// unnoticed.
        was_held: bool,
    },
    /// This cache had the file and gave it up meanwhile: the caller must claim it first.
    TooLate(OpenRequest),
}

/// A file that is to be opened.
pub(crate) struct OpenRequest {
    pub(crate) fd: LentDescriptor,
    pub(crate) key: HostFileKey,
    pub(crate) path: PathBuf,
    pub(crate) device: Arc<CacheDevice>,
    pub(crate) stamp: Stamp,
    pub(crate) write: bool,
}

impl Files {
    pub(crate) fn new(spare_descriptors: usize, bounds: ClosedFileBounds) -> Self {
        Self {
            state: Mutex::default(),
            upgraded: Condvar::new(),
            spare: SpareDescriptors::new(spare_descriptors),
            bounds,
        }
    }

    fn state(&self) -> MutexGuard<'_, FilesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a handle of the file; `make` makes a file that is new to the cache. `claimed` is the result of
    /// [`Files::claim_first`]. May block.
    pub(crate) fn open(
        &self,
        wanted: OpenRequest,
        claimed: Option<FileClaim>,
        make: impl FnOnce(&CacheDevice, Backing, u64) -> afflux_engine::File,
    ) -> Result<OpenOutcome, Error> {
        let mut dropped = None;
        let mut state = self.state_with_claim(&wanted);
        let key = wanted.key;
        match (state.entries.get(&key), claimed) {
            (Some(entry), _) if entry.claim.is_some() => return self.open_again(state, wanted),
            (_, None) => return Ok(OpenOutcome::TooLate(wanted)),
            (Some(entry), Some(_)) if entry.file.is_as(&wanted.stamp) => {}
            // Another program may have changed the file while it had no descriptor; then the cached pages are void.
            (Some(_), Some(_)) => dropped = state.remove(&key),
            (None, Some(_)) => {}
        }
        let file = match state.entries.get_mut(&key) {
            Some(entry) => {
                entry.lend(wanted.fd, wanted.path);
                (entry.claim, entry.handles) = (claimed, 1);
                let (file, idle) = (Arc::clone(&entry.file), entry.idle.take());
                state.unidle(idle);
                file
            }
            None => {
                let entry = FileEntry::new(wanted, claimed, &self.spare, make);
                let file = Arc::clone(&entry.file);
                state.entries.insert(key, entry);
                file
            }
        };
        drop(state);
        drop(dropped);
        Ok(OpenOutcome::In { file, was_held: false })
    }

    /// Locks the state. If `wanted` depends on the claim, first waits until no upgrade of it is running.
    fn state_with_claim(&self, wanted: &OpenRequest) -> MutexGuard<'_, FilesState> {
        let changes = |state: &mut FilesState| {
            wanted.write && state.entries.get(&wanted.key).is_some_and(|entry| entry.is_upgraded)
        };
        self.upgraded.wait_while(self.state(), changes).unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens another handle of a file that has a descriptor. The file retains that one, unless it cannot be used for
    /// writing.
    fn open_again(&self, mut state: MutexGuard<'_, FilesState>, wanted: OpenRequest) -> Result<OpenOutcome, Error> {
        let Some(entry) = state.entries.get_mut(&wanted.key) else { return Ok(OpenOutcome::TooLate(wanted)) };
        let file = Arc::clone(&entry.file);
        entry.handles += 1;
        let idle = entry.idle.take();
        entry.is_upgraded = wanted.write && entry.claim == Some(FileClaim::Shared);
        let upgrades = entry.is_upgraded;
        state.unidle(idle);
        drop(state);
        if upgrades {
            self.upgrade(&file, wanted)?
        } else {
            file.set_path(wanted.path)
        }
        Ok(OpenOutcome::In { file, was_held: true })
    }

    /// Has the host change the claim into one for writing, and the file retain the descriptor with that claim. The
    /// caller has counted the new handle already; an error gives it back.
    fn upgrade(&self, file: &Arc<CachedFile>, wanted: OpenRequest) -> Result<(), Error> {
        let OpenRequest { fd, path, .. } = wanted;
        // The file's own shared claim would be in the way.
        let given = file.host.given();
        given.iter().for_each(unclaim);
        let claimed = claimed(&fd, &path, true);
        match &claimed {
            Ok(_) => {
                file.host.lend(fd);
                file.set_path(path);
            }
            Err(_) => given.iter().for_each(|given| drop(claim(given, FileClaim::Shared))),
        }
        if let Some(entry) = self.state().entries.get_mut(&file.key) {
            entry.is_upgraded = false;
            entry.claim = claimed.as_ref().ok().copied().or(entry.claim);
        }
        self.upgraded.notify_all();
        if claimed.is_err() {
            self.close(file);
        }
        claimed.map(drop)
    }

    /// Claims the host's file; none if this cache has it already. Waits a moment for another cache: a killed process
    /// holds its files until the kernel has finished its requests. Blocks.
    pub(crate) fn claim_first(
        &self,
        wanted: &OpenRequest,
        goes_on: impl Fn() -> Result<(), Error>,
    ) -> Result<Option<FileClaim>, Error> {
        let began = Instant::now();
        loop {
            goes_on()?;
            // A file that this cache has is not another's.
            let has_it = self.state().entries.get(&wanted.key).is_some_and(|entry| entry.claim.is_some());
            if has_it {
                return Ok(None);
            }
            match claimed(&wanted.fd, &wanted.path, wanted.write) {
                Err(Error::InUse { .. }) if began.elapsed() < CLAIM_PATIENCE => std::thread::sleep(CLAIM_PAUSE),
                Err(error) => return Err(error),
                Ok(claim) => return Ok(Some(claim)),
            }
        }
    }

    /// Removes a handle. After the last one the file is idle.
    pub(crate) fn close(&self, file: &Arc<CachedFile>) {
        let mut state = self.state();
        let FilesState { entries, held, next_idle, .. } = &mut *state;
        let Some(entry) = entries.get_mut(&file.key) else { return };
        entry.handles -= 1;
        if entry.handles == 0 {
            *next_idle += 1;
            entry.idle = Some(*next_idle);
            held.insert(*next_idle, file.key);
        }
    }

    /// Closes the file's descriptors if it has no handle and all of it is durable. Also drops the files that have been
    /// idle longest, if there are too many. Blocks.
    pub(crate) fn release_descriptors(&self, file: &Arc<CachedFile>) {
        let Some(idle) = self.releasable_idle(file) else { return };
        // The last check for others' changes: afterwards there is nothing to compare with.
        let is_known = file.try_save_look();
        let Some((taken_back, dropped)) = self.takes_back(file, idle, is_known) else { return };
        // Otherwise the claim would live as long as a read that is still in flight.
        taken_back.given().into_iter().for_each(unclaim);
        drop(taken_back);
        drop(dropped);
    }

    /// The file's idle number, if it has no handle, has a descriptor, and all of it is durable.
    fn releasable_idle(&self, file: &Arc<CachedFile>) -> Option<u64> {
        let state = self.state();
        let entry = state.entries.get(&file.key).filter(|entry| Arc::ptr_eq(&entry.file, file))?;
        entry.idle.filter(|_| entry.claim.is_some() && file.is_durable())
    }

    /// Takes the file's descriptors, for the caller to close, unless the file was opened since. If the state of the
    /// host's file is not known, its pages go, too. Also takes surplus idle files.
    fn takes_back(
        &self,
        file: &Arc<CachedFile>,
        idle: u64,
        is_known: bool,
    ) -> Option<(RevokedDescriptors, Vec<FileEntry>)> {
        let mut dropped = Vec::new();
        let mut state = self.state();
        let FilesState { entries, held, resting, .. } = &mut *state;
        let entry = entries.get_mut(&file.key).filter(|entry| Arc::ptr_eq(&entry.file, file))?;
        // Another thread may have opened or written it while the host was asked.
        if entry.idle != Some(idle) || entry.claim.is_none() || !file.is_durable() {
            return None;
        }
        let taken_back = file.host.take_back();
        entry.claim = None;
        if is_known {
            held.remove(&idle);
            resting.insert(idle, file.key);
        } else {
            dropped.extend(state.remove(&file.key));
        }
        while state.resting.len() > self.bounds.idle_files {
            let Some((_, key)) = state.resting.pop_first() else { break };
            dropped.extend(state.remove(&key));
        }
        Some((taken_back, dropped))
    }

    /// The file that must be written before another may be opened, if there are too many unwritten files without a
    /// handle.
    pub(crate) fn file_to_release(&self) -> Option<Arc<CachedFile>> {
        let state = self.state();
        let over = state.held.len() > self.bounds.unwritten_files;
        let (_, key) = state.held.first_key_value().filter(|_| over)?;
        state.entries.get(key).map(|entry| Arc::clone(&entry.file))
    }

    /// Puts a file that could not be written behind the others without a handle.
    pub(crate) fn later(&self, file: &CachedFile) {
        let mut state = self.state();
        let FilesState { entries, held, next_idle, .. } = &mut *state;
        let Some(entry) = entries.get_mut(&file.key) else { return };
        if let Some(idle) = entry.idle.filter(|idle| held.remove(idle).is_some()) {
            *next_idle = idle.max(*next_idle) + 1;
            entry.idle = Some(*next_idle);
            held.insert(*next_idle, file.key);
        }
    }

    /// The idle files of a device that still have a descriptor.
    pub(crate) fn idle_held(&self, device: DeviceId) -> Vec<Arc<CachedFile>> {
        let state = self.state();
        let held = state.held.values().filter_map(|key| state.entries.get(key)).map(|entry| &entry.file);
        held.filter(|file| file.device.id == device).cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<CachedFile>> {
        self.state().entries.values().map(|entry| Arc::clone(&entry.file)).collect()
    }

    /// The files of a device that have a handle.
    pub(crate) fn open_now(&self, device: DeviceId) -> Vec<Arc<CachedFile>> {
        let state = self.state();
        let open = state.entries.values().filter(|entry| entry.handles > 0).map(|entry| &entry.file);
        open.filter(|file| file.device.id == device).cloned().collect()
    }

    /// Number of all files' descriptors: those they were opened with, and others.
    pub(crate) fn descriptors(&self) -> usize {
        self.state().entries.values().filter(|entry| entry.claim.is_some()).count() + self.spare.open()
    }

    /// Forgets the files at the end of the cache. Returns their descriptors, for the caller to close.
    pub(crate) fn forget(&self) -> Vec<RevokedDescriptors> {
        let state = std::mem::take(&mut *self.state());
        state.entries.values().map(|entry| entry.file.host.take_back()).collect()
    }
}

impl FilesState {
    fn unidle(&mut self, idle: Option<u64>) {
        if let Some(idle) = idle {
            self.held.remove(&idle);
            self.resting.remove(&idle);
        }
    }

    /// Removes a file. The caller must drop it without a lock held, since its pages go with it.
    fn remove(&mut self, key: &HostFileKey) -> Option<FileEntry> {
        let entry = self.entries.remove(key)?;
        self.unidle(entry.idle);
        Some(entry)
    }
}

impl FileEntry {
    /// A new entry with one handle.
    fn new(
        wanted: OpenRequest,
        claim: Option<FileClaim>,
        spare: &Arc<SpareDescriptors>,
        make: impl FnOnce(&CacheDevice, Backing, u64) -> afflux_engine::File,
    ) -> Self {
        let host = HostFile::pooled(spare);
        let size = wanted.device.size.unwrap_or(wanted.stamp.size);
        let file = make(&wanted.device, Backing::new(Arc::<HostFile>::clone(&host)), size);
        let file = CachedFile {
            key: wanted.key,
            file,
            host,
            device: wanted.device,
            path: Mutex::default(),
            unsynced: AtomicBool::new(false),
            tail: Tail::default(),
            known: Mutex::new(KnownHostState::new(wanted.stamp)),
        };
        let entry = Self { file: Arc::new(file), handles: 1, claim, is_upgraded: false, idle: None };
        entry.lend(wanted.fd, wanted.path);
        entry
    }

    /// Gives a file without a descriptor one.
    fn lend(&self, fd: LentDescriptor, path: PathBuf) {
        self.file.host.lend(fd);
        self.file.device.size.iter().for_each(|size| self.file.host.note_size(*size));
        self.file.set_path(path);
    }
}

fn claimed(fd: &LentDescriptor, path: &Path, write: bool) -> Result<FileClaim, Error> {
    let wanted = if write { FileClaim::Alone } else { FileClaim::Shared };
    match claim(fd, wanted) {
        Ok(true) => Ok(wanted),
        Ok(false) => Err(Error::InUse { path: path.to_owned(), writing: write }),
        Err(_) => Err(Error::NotOpenedFor { path: path.to_owned(), wanted: if write { "writing" } else { "reading" } }),
    }
}

#[derive(Default)]
pub(crate) struct Tail(Mutex<TailState>);

#[derive(Default)]
struct TailState {
    taken: bool,
    waiting: Vec<Waker>,
}

/// The exclusive access; it ends when this is dropped.
pub(crate) struct TailGuard<'a>(&'a Tail);

impl Tail {
    /// Waits for exclusive access. When one ends, the first task that checks gets the next.
    pub(crate) async fn enter(&self) -> TailGuard<'_> {
        poll_fn(|cx| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !state.taken {
                state.taken = true;
                return Poll::Ready(TailGuard(self));
            }
            if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

impl Drop for TailGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.taken = false;
        // All are woken, since the first of them may be gone.
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
