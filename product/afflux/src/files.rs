//! The files of a cache, one for each file of the host, and their descriptors.
//!
//! Owns: which file is cached, who has it open, its claim, when it lets go of its descriptors, how many files that
//! nobody has open are kept with their pages.
//! Does not own: the pages (the engine), descriptors beside the one that a file was opened with (`platform-linux`),
//! noticing what others changed (`coherence`).
//! Invariants: a device and an inode are one file. A file with a handle has the descriptor that it was opened with; one
//! that nobody has open has none, from when all of it is durable. Only such files are dropped from the cache. The host is
//! never called with the lock of all files held: a mount that hangs keeps those alone who use its files.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afflux_engine::{Backing, DeviceId};
use afflux_linux::{Claim, HostFile, SpareDescriptors, TakenBack, claim, unclaim};

use crate::coherence::{Before, Foreign, Known, Stamp};
use crate::devices::{CacheDevice, DeviceKey};
use crate::error::Error;
use crate::tail::Tail;

/// How long a file is waited for that another cache has.
const CLAIM_PATIENCE: Duration = Duration::from_secs(2);
const CLAIM_PAUSE: Duration = Duration::from_millis(5);

/// A file of the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FileKey {
    pub(crate) device: DeviceKey,
    pub(crate) inode: u64,
}

/// A file of the cache.
pub(crate) struct CachedFile {
    pub(crate) key: FileKey,
    pub(crate) file: afflux_engine::File,
    pub(crate) host: Arc<HostFile>,
    pub(crate) device: Arc<CacheDevice>,
    /// As it was opened last, for people.
    path: Mutex<PathBuf>,
    /// Something was written that no sync of the whole file has followed.
    pub(crate) unsynced: AtomicBool,
    pub(crate) tail: Tail,
    known: Mutex<Known>,
}

impl CachedFile {
    pub(crate) fn path(&self) -> PathBuf {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_path(&self, path: PathBuf) {
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }

    /// Says what the engine said, with the file's name.
    pub(crate) fn error(&self, error: afflux_engine::Error) -> Error {
        let path = self.path();
        if error == afflux_engine::Error::Device(afflux_engine::DeviceError::Stale) && self.host.given().is_none() {
            return Error::Gone { path };
        }
        Error::from_engine(&path, error, self.file.size_max())
    }

    /// Notes that something is written, before it is.
    pub(crate) fn note_written(&self) {
        // A plain look first: the line stays shared among writers.
        if !self.unsynced.load(Ordering::Relaxed) {
            self.unsynced.store(true, Ordering::SeqCst);
        }
    }

    /// All of it is durable: descriptors that were opened to write it may be closed.
    pub(crate) fn unkeep_descriptor(&self) {
        self.host.unkeep_writable(|| self.unsynced.load(Ordering::SeqCst) || !self.file.is_clean());
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be taken before the host is asked.
    pub(crate) fn before_look(&self) -> Before {
        Before::of(&self.file)
    }

    /// Whether the host was asked within so long.
    pub(crate) fn was_looked_at(&self, within: Duration) -> bool {
        self.known().is_newer_than(within)
    }

    /// What the host's answer says of others.
    pub(crate) fn seen(&self, before: &Before, stamp: Stamp) -> Option<Foreign> {
        if self.device.size.is_some() { None } else { self.known().seen(&self.file, before, stamp) }
    }

    /// Keeps how the file is as it gives up its descriptors. False if that cannot be told, or others changed it before.
    fn look_last(&self) -> bool {
        let before = self.before_look();
        let stamp = self.host.given().and_then(|fd| Stamp::of(&fd).ok());
        stamp.is_some_and(|stamp| self.seen(&before, stamp).is_none() && self.is_as(&stamp))
    }

    /// Whether the host's file is as it was last.
    fn is_as(&self, stamp: &Stamp) -> bool {
        self.known().is_as(stamp, self.device.size.is_some())
    }

    /// Whether all that was written is durable. What is written while a sync runs may be on the device when it ends, and
    /// not be flushed with it: the engine knows.
    pub(crate) fn is_durable(&self) -> bool {
        self.file.is_clean() && !self.unsynced.load(Ordering::SeqCst) && !self.file.awaits_flush()
    }
}

/// What a cache has of a file beside its pages.
struct Entry {
    file: Arc<CachedFile>,
    handles: usize,
    /// The kind of claim on the host's file, while there is a descriptor.
    claim: Option<Claim>,
    /// Somebody asks the host to make the claim one for writing.
    is_upgraded: bool,
    /// Where it stands among those that nobody has open.
    idle: Option<u64>,
}

/// All files.
pub(crate) struct Files {
    state: Mutex<State>,
    /// A claim was upgraded, or was not.
    upgraded: Condvar,
    pub(crate) spare: Arc<SpareDescriptors>,
    bounds: Bounds,
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Files that nobody has open and that are not durable yet, each with a descriptor.
    pub(crate) unwritten_files: usize,
    /// Files that nobody has open.
    pub(crate) idle_files: usize,
}

#[derive(Default)]
struct State {
    entries: HashMap<FileKey, Entry>,
    /// Those that nobody has open, longest ago first: with a descriptor, and without.
    held: BTreeMap<u64, FileKey>,
    resting: BTreeMap<u64, FileKey>,
    next_idle: u64,
}

/// What became of a file that somebody wanted to open.
pub(crate) enum Came {
    /// It is open.
    In {
        file: Arc<CachedFile>,
        /// This cache had a descriptor of it already, so others may have changed it unnoticed.
        was_held: bool,
    },
    /// This cache had the file and let go of it meanwhile: it is to be claimed first.
    TooLate(Wanted),
}

/// A file that somebody wants to open.
pub(crate) struct Wanted {
    pub(crate) fd: OwnedFd,
    pub(crate) key: FileKey,
    pub(crate) path: PathBuf,
    pub(crate) device: Arc<CacheDevice>,
    pub(crate) stamp: Stamp,
    pub(crate) write: bool,
}

impl Files {
    pub(crate) fn new(spare_descriptors: usize, bounds: Bounds) -> Self {
        Self {
            state: Mutex::default(),
            upgraded: Condvar::new(),
            spare: SpareDescriptors::new(spare_descriptors),
            bounds,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the file once more; a new one is made by `make`. `claimed` is the answer of [`Files::claim_first`]. May block.
    pub(crate) fn open(
        &self,
        wanted: Wanted,
        claimed: Option<Claim>,
        make: impl FnOnce(&CacheDevice, Backing, u64) -> afflux_engine::File,
    ) -> Result<Came, Error> {
        let mut dropped = None;
        let mut state = self.state_with_claim(&wanted);
        let key = wanted.key;
        match (state.entries.get(&key), claimed) {
            (Some(entry), _) if entry.claim.is_some() => return self.open_again(state, wanted),
            (_, None) => return Ok(Came::TooLate(wanted)),
            (Some(entry), Some(_)) if entry.file.is_as(&wanted.stamp) => {}
            // Others may have changed it while it had no descriptor; then what is cached is void.
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
                let entry = Entry::new(wanted, claimed, &self.spare, make);
                let file = Arc::clone(&entry.file);
                state.entries.insert(key, entry);
                file
            }
        };
        drop(state);
        drop(dropped);
        Ok(Came::In { file, was_held: false })
    }

    /// Waits for whoever has the host change the claim, if `wanted` needs to know it.
    fn state_with_claim(&self, wanted: &Wanted) -> MutexGuard<'_, State> {
        let changes =
            |state: &mut State| wanted.write && state.entries.get(&wanted.key).is_some_and(|entry| entry.is_upgraded);
        self.upgraded.wait_while(self.state(), changes).unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file once more that has a descriptor. It keeps that, unless the file cannot be written with it.
    fn open_again(&self, mut state: MutexGuard<'_, State>, wanted: Wanted) -> Result<Came, Error> {
        let Some(entry) = state.entries.get_mut(&wanted.key) else { return Ok(Came::TooLate(wanted)) };
        let file = Arc::clone(&entry.file);
        entry.handles += 1;
        let idle = entry.idle.take();
        entry.is_upgraded = wanted.write && entry.claim == Some(Claim::Shared);
        let upgrades = entry.is_upgraded;
        state.unidle(idle);
        drop(state);
        if upgrades {
            self.upgrade(&file, wanted)?
        } else {
            file.set_path(wanted.path)
        }
        Ok(Came::In { file, was_held: true })
    }

    /// Has the host make the claim one for writing, and the file keep the descriptor that has it. The file has a handle
    /// more already, which is given back on an error.
    fn upgrade(&self, file: &Arc<CachedFile>, wanted: Wanted) -> Result<(), Error> {
        let Wanted { fd, path, .. } = wanted;
        // Its own claim would stand in the way.
        let given = file.host.given();
        given.iter().for_each(unclaim);
        let claimed = claimed(&fd, &path, true);
        match &claimed {
            Ok(_) => {
                file.host.lend(fd);
                file.set_path(path);
            }
            Err(_) => given.iter().for_each(|given| drop(claim(given, Claim::Shared))),
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

    /// Claims the host's file, unless this cache has it already; then the answer is nothing. Waits a moment for another
    /// cache: a process that was killed has its files until the kernel is done with its requests. Blocks.
    pub(crate) fn claim_first(
        &self,
        wanted: &Wanted,
        goes_on: impl Fn() -> Result<(), Error>,
    ) -> Result<Option<Claim>, Error> {
        let began = Instant::now();
        loop {
            goes_on()?;
            // What this cache has already is no other's.
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

    /// One handle less. If it was the last, the file is idle.
    pub(crate) fn close(&self, file: &Arc<CachedFile>) {
        let mut state = self.state();
        let State { entries, held, next_idle, .. } = &mut *state;
        let Some(entry) = entries.get_mut(&file.key) else { return };
        entry.handles -= 1;
        if entry.handles == 0 {
            *next_idle += 1;
            entry.idle = Some(*next_idle);
            held.insert(*next_idle, file.key);
        }
    }

    /// Lets go of the file's descriptors if nobody has it open and all of it is durable, and of files that have been
    /// idle longest if there are too many. Blocks.
    pub(crate) fn rest(&self, file: &Arc<CachedFile>) {
        let Some(idle) = self.may_rest(file) else { return };
        // What others changed until now is looked for once more: afterwards there is nothing to compare it with.
        let is_known = file.look_last();
        let Some((taken_back, dropped)) = self.takes_back(file, idle, is_known) else { return };
        // The claim would live as long as a read that is still in flight.
        taken_back.given().into_iter().for_each(unclaim);
        drop(taken_back);
        drop(dropped);
    }

    /// Since when nobody has the file open, as a number, if all of it is durable and it has a descriptor.
    fn may_rest(&self, file: &Arc<CachedFile>) -> Option<u64> {
        let state = self.state();
        let entry = state.entries.get(&file.key).filter(|entry| Arc::ptr_eq(&entry.file, file))?;
        entry.idle.filter(|_| entry.claim.is_some() && file.is_durable())
    }

    /// Takes the file's descriptors, to be closed by the caller, unless somebody has opened it since. Whether the host's
    /// file is known says if its pages stay. Also files that are too many.
    fn takes_back(&self, file: &Arc<CachedFile>, idle: u64, is_known: bool) -> Option<(TakenBack, Vec<Entry>)> {
        let mut dropped = Vec::new();
        let mut state = self.state();
        let State { entries, held, resting, .. } = &mut *state;
        let entry = entries.get_mut(&file.key).filter(|entry| Arc::ptr_eq(&entry.file, file))?;
        // Others may have been at it while the host was asked.
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

    /// A file that nobody has open and that has to be written before another may be opened, if there are so many.
    pub(crate) fn in_the_way(&self) -> Option<Arc<CachedFile>> {
        let state = self.state();
        let over = state.held.len() > self.bounds.unwritten_files;
        let (_, key) = state.held.first_key_value().filter(|_| over)?;
        state.entries.get(key).map(|entry| Arc::clone(&entry.file))
    }

    /// Puts a file that could not be written behind the others that nobody has open.
    pub(crate) fn later(&self, file: &CachedFile) {
        let mut state = self.state();
        let State { entries, held, next_idle, .. } = &mut *state;
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

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<CachedFile>> {
        self.state().entries.values().map(|entry| Arc::clone(&entry.file)).collect()
    }

    /// Those of a device that somebody has open.
    pub(crate) fn open_now(&self, device: DeviceId) -> Vec<Arc<CachedFile>> {
        let state = self.state();
        let open = state.entries.values().filter(|entry| entry.handles > 0).map(|entry| &entry.file);
        open.filter(|file| file.device.id == device).cloned().collect()
    }

    /// Descriptors that files have: the ones they were opened with, and others.
    pub(crate) fn descriptors(&self) -> usize {
        self.state().entries.values().filter(|entry| entry.claim.is_some()).count() + self.spare.open()
    }

    /// The cache has ended: forgets the files. Their descriptors are the caller's, to be closed.
    pub(crate) fn forget(&self) -> Vec<TakenBack> {
        let state = std::mem::take(&mut *self.state());
        state.entries.values().map(|entry| entry.file.host.take_back()).collect()
    }
}

impl State {
    fn unidle(&mut self, idle: Option<u64>) {
        if let Some(idle) = idle {
            self.held.remove(&idle);
            self.resting.remove(&idle);
        }
    }

    /// Takes a file out; to be dropped without a lock held, for its pages go with it.
    fn remove(&mut self, key: &FileKey) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.unidle(entry.idle);
        Some(entry)
    }
}

impl Entry {
    /// A new one, open once.
    fn new(
        wanted: Wanted,
        claim: Option<Claim>,
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
            known: Mutex::new(Known::new(wanted.stamp)),
        };
        let entry = Self { file: Arc::new(file), handles: 1, claim, is_upgraded: false, idle: None };
        entry.lend(wanted.fd, wanted.path);
        entry
    }

    /// Gives the file a descriptor, of which it has none.
    fn lend(&self, fd: OwnedFd, path: PathBuf) {
        self.file.host.lend(fd);
        self.file.device.size.iter().for_each(|size| self.file.host.has_size(*size));
        self.file.set_path(path);
    }
}

fn claimed(fd: &OwnedFd, path: &Path, write: bool) -> Result<Claim, Error> {
    let wanted = if write { Claim::Alone } else { Claim::Shared };
    match claim(fd, wanted) {
        Ok(true) => Ok(wanted),
        Ok(false) => Err(Error::InUse { path: path.to_owned(), writing: write }),
        Err(_) => Err(Error::NotOpenedFor { path: path.to_owned(), wanted: if write { "writing" } else { "reading" } }),
    }
}
