//! One object of the volume: what it is known by, its open file, its attributes.
//!
//! Owns: the attributes as told to clients, how they follow from the host's and from unwritten data,
//! the engine's file of a regular file, when what is remembered of callers' rights is forgotten.
//! Does not own: the table it is found in (`table`), calls to the host (the other modules).
//! Invariants: `size`, `mtime` and `ctime` of what one call was told as *after* is what the next
//! change is told as *before*; both are taken at the change, under one lock. Times never go back by our
//! own doing. The state's lock is never held across an await or a host call. A file whose last name is
//! gone is discarded with the last holder.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use afflux_engine::{Engine, File, Nanos, Platform};
use futures_util::lock::Mutex as TaskMutex;

use crate::error::VolumeError;
use crate::objects::handle::FileHandle;
use crate::objects::location::Location;
use crate::objects::rights::{self, Asked, Remembered, Use};
use crate::objects::usage::{Mark, Usage};
use crate::tree::attributes::{Attributes, Before, Consistency, Kind, Timestamp, without_privileges};
use crate::tree::caller::Caller;
use crate::tree::directory::{DeviceKey, Node, Stat};
use crate::tree::identity::Identity;
use crate::tree::listed::Listing;

/// Most descriptors that a file's bytes take beside the object's own: the one it was opened with, one
/// past the host's cache, one through it.
const DESCRIPTORS_PER_FILE: usize = 3;

const PAGE_BYTES: u64 = 4096;

/// Most seconds by which a host's times may be behind those that clients were told because it keeps
/// them coarsely; more, and its clock was set.
const CLOCK_BEHIND_S_MAX: i64 = 2;

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
    /// Held while the file is being opened, or the directory read for a listing.
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
    /// What the caller that was looked at last may do.
    remembered: Remembered,
    /// When it was last known to be inside the exports: nanoseconds of the platform's clock.
    pub(crate) confined: AtomicU64,
    /// What is kept of a directory's listing.
    pub(crate) listed: Mutex<Listing>,
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
    /// What was written since `stat`.
    usage: Usage,
    /// The bits that give rights are gone for clients, and from the host with what is written back: we
    /// may not take them away there.
    unprivileged: bool,
    /// The host's modification time is not the client's: to be set once the file is clean.
    pub(crate) unsettled: bool,
    /// Something was written since the last sync of the whole file.
    pub(crate) unflushed: bool,
    /// The last name is gone.
    pub(crate) removed: bool,
    /// What the host said of callers' rights.
    asked: Asked,
    /// Where it was last found, for trees that cannot open identities.
    pub(crate) location: Option<Location>,
}

/// What was known of an object right before the host was asked about it.
pub(crate) struct Look {
    changes: u64,
    usage: Mark,
    /// The engine's count of changes, of a file that was open.
    pub(crate) written: Option<u64>,
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
            usage: Usage::default(),
            unprivileged: false,
            unsettled: false,
            unflushed: false,
            removed: false,
            asked: Asked::default(),
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
            remembered: Remembered::default(),
            confined: AtomicU64::new(now.0),
            listed: Mutex::default(),
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

    pub(crate) fn require_directory(&self) -> Result<(), VolumeError> {
        match self.kind {
            Kind::Directory => Ok(()),
            _ => Err(VolumeError::NotDirectory),
        }
    }

    pub(crate) fn require_regular(&self) -> Result<(), VolumeError> {
        match self.kind {
            Kind::Regular => Ok(()),
            Kind::Directory => Err(VolumeError::IsDirectory),
            Kind::Symlink => Err(VolumeError::Symlink),
            _ => Err(VolumeError::Invalid { what: "not a regular file" }),
        }
    }

    /// Its number in its file system. Never changes, never 0.
    pub fn fileid(&self) -> u64 {
        self.fileid
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn listed(&self) -> MutexGuard<'_, Listing> {
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

    /// Whether a write of this range need not ask the host first. The first write of a clean file asks if the host was
    /// not asked for `idle_ns`. It always asks if it covers a part of a page: others may have changed the other part,
    /// which is written back with it.
    pub(crate) fn may_become_dirty(&self, range: &Range<u64>, now: Nanos, idle_ns: u64) -> bool {
        let is_whole = range.start.is_multiple_of(PAGE_BYTES) && range.end.is_multiple_of(PAGE_BYTES);
        !self.is_clean() || (is_whole && self.is_fresh(&self.state(), now, idle_ns))
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.state().removed
    }

    /// The attributes now.
    pub(crate) fn attributes(&self) -> Attributes {
        self.told(&mut self.state())
    }

    /// The attributes now, unless the host was last asked `idle_ns` ago or longer, or has what was written and was
    /// not asked since.
    pub(crate) fn fresh_attributes(&self, now: Nanos, idle_ns: u64) -> Option<Attributes> {
        let mut state = self.state();
        self.is_fresh(&state, now, idle_ns).then(|| self.told(&mut state))
    }

    /// Others may change owner and mode of a file that is not written yet, so the host is asked after it, too.
    fn is_fresh(&self, state: &State, now: Nanos, idle_ns: u64) -> bool {
        let is_told = !state.unsettled || !self.is_clean();
        is_told && now.since(state.checked) < idle_ns && !state.removed
    }

    /// Whether a caller may, if that was found out in this epoch.
    #[inline]
    pub(crate) fn remembers_allowing(&self, caller: &Caller, epoch: u64, wanted: Use) -> Option<bool> {
        self.remembered.allows(caller.number(), epoch, wanted)
    }

    /// What a caller may do, as a sum of uses, where that is known without asking the host: attributes that are
    /// not too old, and mode bits that decide, or the host's word from before. Remembered.
    pub(crate) fn known_uses(&self, caller: &Caller, epoch: u64, now: Nanos, idle_ns: u64) -> Option<u8> {
        let user = caller.credentials()?;
        let state = self.state();
        if !self.is_fresh(&state, now, idle_ns) {
            return None;
        }
        let rights = rights::by_mode(&state.stat, user).or_else(|| state.asked.get(caller.number()))?;
        let uses = rights::uses(&state.stat, user, rights);
        self.remembered.keep(caller.number(), epoch, uses);
        Some(uses)
    }

    /// The rights of a caller as the host told them.
    pub(crate) fn asked_rights(&self, caller: &Caller) -> Option<u8> {
        self.state().asked.get(caller.number())
    }

    /// To be taken before the host is asked after rights.
    pub(crate) fn rights_forgotten(&self) -> u64 {
        self.state().asked.forgotten()
    }

    /// Keeps what the host told, asked when `forgotten` stood; the sum of uses that follows from it.
    pub(crate) fn keep_asked(&self, caller: &Caller, rights: u8, forgotten: u64) -> u8 {
        let mut state = self.state();
        state.asked.keep(caller.number(), rights, forgotten);
        caller.credentials().map_or(u8::MAX, |user| rights::uses(&state.stat, user, rights))
    }

    /// Forgets what callers may do.
    pub(crate) fn forget_rights(&self, state: &mut State) {
        state.asked.forget();
        self.remembered.forget();
    }

    /// Whether all that was written is on the host, which was not asked since.
    pub(crate) fn awaits_settling(&self) -> bool {
        let state = self.state();
        state.unsettled && !state.removed && self.is_clean()
    }

    /// To be taken right before the host is asked.
    pub(crate) fn look(&self) -> Look {
        // In this order: what is counted twice is told too much for a while, what were missed would be
        // told too little.
        let changes = self.changes.load(Ordering::Acquire);
        let usage = self.state().usage.mark();
        let usage = usage.with_unwritten(self.file().map_or(0, File::dirty_bytes));
        Look { changes, usage, written: self.file().map(File::change_count) }
    }

    /// The modification and the change time as clients are told.
    pub(crate) fn times(&self) -> (Timestamp, Timestamp) {
        let state = self.state();
        (state.mtime, state.ctime)
    }

    /// The change time as clients are told.
    pub(crate) fn change_time(&self) -> Timestamp {
        self.state().ctime
    }

    /// The mode without the setuid and the setgid bit, if it has one of them. Root's writes take them, too: the thread
    /// that writes bytes back cannot tell whose they are.
    pub(crate) fn without_privileges(&self) -> Option<u32> {
        let state = self.state();
        let mode = without_privileges(state.stat.mode);
        Some(mode).filter(|mode| *mode != state.stat.mode && !state.unprivileged)
    }

    /// The bits that give rights cannot be taken away by us: the host does when it gets the bytes.
    pub(crate) fn loses_privileges(&self) {
        self.state().unprivileged = true;
    }

    /// What a client is told; remembered as what it was told.
    fn told(&self, state: &mut State) -> Attributes {
        self.told_of(state, u64::MAX)
    }

    /// As [`Self::told`], after an operation that cannot have made the file larger than `size_max`: a write
    /// under way makes it longer before its times tell, and what that client changed must not stand between the
    /// before and the after of this one.
    fn told_of(&self, state: &mut State, size_max: u64) -> Attributes {
        let stat = state.stat;
        let size = self.file().map_or(stat.size, |file| file.size().min(size_max));
        state.size = size;
        Attributes {
            kind: self.kind,
            mode: if state.unprivileged { without_privileges(stat.mode) } else { stat.mode },
            links: if state.removed { 0 } else { stat.links },
            uid: stat.uid,
            gid: stat.gid,
            size,
            used: state.usage.told(stat.used, size),
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
        Consistency { before: Some(before), after: Some(self.told_of(&mut state, before.size)) }
    }

    /// Marks a change of these bytes at `now`, by a client.
    #[inline]
    pub(crate) fn written(&self, now: Timestamp, range: &Range<u64>) -> Consistency {
        let mut state = self.state();
        state.usage.wrote(range);
        let size_max = state.size.max(range.end);
        self.bytes_changed(&mut state, now, size_max)
    }

    /// Marks a size that a client has set, at `now`; with how the host has the file since, if that is
    /// known.
    pub(crate) fn resized(&self, now: Timestamp, seen: Option<(Stat, Look)>) -> Consistency {
        let mut state = self.state();
        if let Some((stat, look)) = seen {
            state.stat.used = stat.used;
            state.usage.renewed(look.usage);
        }
        self.bytes_changed(&mut state, now, u64::MAX)
    }

    #[inline]
    fn bytes_changed(&self, state: &mut State, now: Timestamp, size_max: u64) -> Consistency {
        self.changes.fetch_add(1, Ordering::Relaxed);
        let before = state.before();
        state.mtime = now.moved_past(state.mtime);
        state.ctime = now.moved_past(state.ctime);
        state.unsettled = true;
        state.unflushed = true;
        Consistency { before: Some(before), after: Some(self.told_of(state, size_max)) }
    }

    /// Takes over what the host says after a change of ours to attributes, names or entries.
    /// `times`: which of the access and modification times clients are to be told as the host has them.
    /// Without a `look` from before, nothing is learnt of the storage that a file takes: the answer may
    /// be older than one that was. Names are changed under their directories' locks and attributes under the
    /// object's: each tells of its own, since the other's answer may be the newer one.
    pub(crate) fn changed(&self, stat: Stat, now: Nanos, times: Times, look: Option<&Look>) -> Consistency {
        let changes = self.changes.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        let (before, known) = (state.before(), state.stat);
        // Our own change of a directory's entries is none of its rights.
        if times != Times::Entries || !state.gives_rights_as(&stat) {
            self.forget_rights(&mut state);
        }
        match look {
            // One change since the look is the caller's own.
            Some(look) if changes > look.changes + 1 => state.renew(Stat { links: known.links, ..stat }, look),
            Some(look) => state.renew(stat, look),
            None if times == Times::Keep => state.stat = Stat { links: stat.links, ctime: stat.ctime, ..known },
            None => state.stat = Stat { used: known.used, ..stat },
        }
        if times != Times::Entries {
            state.stat.ctime = state.stat.ctime.max(known.ctime);
        }
        state.checked = now;
        state.ctime = stat.ctime.moved_past(state.ctime);
        match times {
            Times::Keep => {}
            Times::Entries => {
                state.mtime = stat.mtime.moved_past(state.mtime);
                // Nothing of a directory is unwritten.
                state.stat.used = stat.used;
            }
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
        Consistency { before: Some(before), after: Some(self.told_of(&mut state, before.size.max(stat.size))) }
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

    /// Takes over what our own writing does not move: mode, owner and group. The host was asked at about `now` with
    /// `changing` held, so nothing of ours moved them meanwhile.
    pub(crate) fn observe_rights(&self, stat: &Stat, now: Nanos) {
        let mut state = self.state();
        state.checked = now;
        if stat.ctime != state.stat.ctime {
            // An access control list may have changed; a write of ours looks the same.
            self.forget_rights(&mut state);
        }
        if !state.gives_rights_as(stat) {
            let Stat { mode, uid, gid, .. } = *stat;
            state.stat = Stat { mode, uid, gid, ..state.stat };
            state.ctime = stat.ctime.moved_past(state.ctime);
        }
    }

    /// Compares what the host says with the baseline; it was asked after `look`. For [`Seen::Foreign`] the
    /// new attributes are taken over.
    pub(crate) fn observe(&self, stat: Stat, look: &Look, now: Nanos) -> Seen {
        let mut state = self.state();
        if self.changes.load(Ordering::Relaxed) != look.changes || state.removed {
            return Seen::Busy;
        }
        if state.unsettled || !self.is_clean() {
            // Writeback moves the host's times and size: only what it does not touch can be compared.
            let stat = Stat { size: state.stat.size, mtime: state.stat.mtime, ..stat };
            if stat.ctime != state.stat.ctime || !state.gives_rights_as(&stat) {
                self.forget_rights(&mut state);
            }
            state.renew(stat, look);
            return Seen::Busy;
        }
        state.checked = now;
        state.unprivileged = false;
        let same = state.is_like(&stat);
        state.renew(stat, look);
        if same {
            return Seen::Same;
        }
        self.forget_rights(&mut state);
        state.foreign();
        // What its names named does not count any more.
        self.changes.fetch_add(1, Ordering::Release);
        Seen::Foreign
    }

    /// The host's modification time was set to the client's after `look`, and this is how the file looks
    /// now. Nothing if it was written to meanwhile.
    pub(crate) fn settled(&self, stat: Stat, look: &Look, now: Nanos) -> Option<Seen> {
        let mut state = self.state();
        if self.changes.load(Ordering::Relaxed) != look.changes || !self.is_clean() {
            return None;
        }
        // The host's clock has not passed what clients were told: it will have when it is tried again. Not
        // if it was set back.
        let behind = stat.ctime < state.ctime && state.ctime.seconds - stat.ctime.seconds <= CLOCK_BEHIND_S_MAX;
        state.unsettled = behind;
        state.unprivileged = false;
        state.checked = now;
        self.forget_rights(&mut state);
        let size = self.file().map_or(stat.size, File::size);
        state.renew(stat, look);
        if stat.size == size {
            return Some(Seen::Same);
        }
        state.foreign();
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

    /// Whether mode bits give the same rights to the same users.
    fn gives_rights_as(&self, stat: &Stat) -> bool {
        (stat.mode, stat.uid, stat.gid) == (self.stat.mode, self.stat.uid, self.stat.gid)
    }

    /// Takes what the host said when it was asked after `look` for the baseline.
    fn renew(&mut self, stat: Stat, look: &Look) {
        self.stat = stat;
        self.usage.renewed(look.usage);
    }

    /// Others made it what the baseline is.
    fn foreign(&mut self) {
        let stat = self.stat;
        self.atime = stat.atime;
        self.mtime = stat.mtime;
        self.ctime = stat.ctime.moved_past(self.ctime);
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
