//! One object of the volume, with identity, open file and attributes.
//!
//! Owns: the attributes as reported to clients, computed from the host's and from unwritten data; the engine's file of
//! a regular file; when remembered rights of callers are forgotten.
//! Does not own: the values under its lock (`inode_state`), the table of inodes (`table`), calls to the host (the other
//! modules).
//! Invariants: the `size`, `mtime` and `ctime` that one call returned as *after* are the next change's *before*; both
//! are taken at the change, under one lock. The state's lock is never held across an await or a host call. A file
//! without a name is discarded with its last holder.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use afflux_engine::{Engine, File, Nanos, Platform};
use futures_util::lock::Mutex as TaskMutex;
use tokio::sync::Mutex as FairMutex;

use crate::error::VolumeError;
use crate::objects::handle::FileHandle;
use crate::objects::inode_state::{FileTimeUnit, HostView, InodeLook, InodeState, ReportedUsage, Times};
use crate::objects::rights::{self, CachedRights, Remembered, Use};
use crate::tree::attributes::{
    Attributes, Consistency, DeviceKey, Kind, Stat, Timestamp, WccAttributes, without_privileges,
};
use crate::tree::caller::Caller;
use crate::tree::directory::Node;
use crate::tree::identity::Identity;
use crate::tree::listing::KnownListing;

/// Descriptors of a file's bytes in addition to the object's own: the one it was opened with. Others can be closed and
/// opened anew, and the world bounds them.
const DESCRIPTORS_PER_FILE: usize = 1;
/// The same with the object's own.
pub(crate) const DESCRIPTORS_OF_FILE: usize = 1 + DESCRIPTORS_PER_FILE;

const PAGE_BYTES: u64 = 4096;

/// Most seconds by which a host's coarse times may lag behind those reported to clients; with a larger lag, its clock
/// was set.
const CLOCK_BEHIND_S_MAX: i64 = 2;

/// With a unit of times from here on, two changes after each other may have one time.
const COARSE_NS: u32 = 1_000_000;

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
    /// Held while the file is being opened, or the directory read for a listing. Tasks get it in the order in which
    /// they came: a read of a large directory takes long.
    pub(crate) opening: FairMutex<()>,
    /// The last change of a directory or of attributes that the host has made durable.
    pub(crate) durable: TaskMutex<u64>,
    /// Counts our own changes, before and after each: answers of the host in between are void.
    pub(crate) changes: AtomicU64,
    /// When a front end last changed it while delegations were granted, nanoseconds of the platform's clock; 0: never.
    changed_at: AtomicU64,
    /// Used since the last sweep of the table.
    pub(crate) recent: AtomicBool,
    /// Whether it is in the queue of files whose times must be set.
    pub(crate) settling: AtomicBool,
    state: Mutex<InodeState>,
    /// The rights of the caller that was checked last.
    remembered: Remembered,
    /// When it was last known to be inside the exports: nanoseconds of the platform's clock.
    pub(crate) confined: AtomicU64,
    /// The cached listing of a directory.
    pub(crate) listed: Mutex<KnownListing>,
    /// The engine's file, from the first use of its bytes.
    file: OnceLock<File>,
    /// The tree has said that it can be written.
    writable: AtomicBool,
    engine: Arc<Engine<P>>,
    /// The unit of times on its file system.
    time_unit: Arc<FileTimeUnit>,
    /// The sums of all inodes; the drop gives this inode's part back.
    sums: Arc<InodeSums>,
}

/// What all inodes together take, in the table or not.
#[derive(Default)]
pub(crate) struct InodeSums {
    pub(crate) descriptors: AtomicUsize,
    /// Inodes with holders: files and directories that somebody has open.
    pub(crate) held: AtomicUsize,
}

impl<P: Platform> Inode<P> {
    /// An object in memory. `stat` has its number for clients.
    pub(crate) fn new(
        engine: &Arc<Engine<P>>,
        identity: Identity,
        handle: FileHandle,
        node: Node,
        stat: Stat,
        now: Nanos,
        sums: &Arc<InodeSums>,
    ) -> Self {
        sums.descriptors.fetch_add(1, Ordering::Relaxed);
        let sums = Arc::clone(sums);
        let state = InodeState {
            stat,
            checked: now,
            atime: stat.atime,
            mtime: stat.mtime,
            ctime: stat.ctime,
            size: stat.size,
            usage: ReportedUsage::default(),
            unprivileged: false,
            unsettled: false,
            unflushed: false,
            links_doubtful: false,
            removed: false,
            references: 0,
            cached_rights: CachedRights::default(),
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
            opening: FairMutex::new(()),
            durable: TaskMutex::new(0),
            changes: AtomicU64::new(0),
            changed_at: AtomicU64::new(0),
            recent: AtomicBool::new(true),
            settling: AtomicBool::new(false),
            state: Mutex::new(state),
            remembered: Remembered::default(),
            confined: AtomicU64::new(now.0),
            listed: Mutex::default(),
            file: OnceLock::new(),
            writable: AtomicBool::new(false),
            engine: Arc::clone(engine),
            time_unit: Arc::default(),
            sums,
        }
    }

    /// The object, on a file system that stores times in this unit.
    pub(crate) fn with_times_in(mut self, time_unit: Arc<FileTimeUnit>) -> Self {
        self.time_unit = time_unit;
        self
    }

    /// The kind of object. Never changes.
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

    /// Its number, which no other object of the volume has. Never changes, never 0.
    pub fn fileid(&self) -> u64 {
        self.fileid
    }

    /// The disk of its bytes. Never changes.
    pub fn device(&self) -> DeviceKey {
        self.device
    }

    /// The size now, or as the host reported it last if the bytes were not used. It waits for nothing.
    pub fn size(&self) -> u64 {
        self.file().map_or_else(|| self.state().stat.size, File::size)
    }

    /// The tree's object.
    pub fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, InodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn listed(&self) -> MutexGuard<'_, KnownListing> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine's file, if the bytes were used.
    #[inline]
    pub(crate) fn file(&self) -> Option<&File> {
        self.file.get()
    }

    /// The engine's file, if the file is known to be writable.
    #[inline]
    pub(crate) fn writable_file(&self) -> Option<&File> {
        self.file.get().filter(|_| self.writable.load(Ordering::Acquire))
    }

    /// Stores the opened file. Called with `opening` held.
    pub(crate) fn opened(&self, file: File) {
        assert!(self.file.set(file).is_ok(), "a file is opened once");
        self.sums.descriptors.fetch_add(DESCRIPTORS_PER_FILE, Ordering::Relaxed);
    }

    pub(crate) fn descriptors_held(&self) -> usize {
        if self.file().is_some() { 1 + DESCRIPTORS_PER_FILE } else { 1 }
    }

    /// The tree has said that the file can be written.
    pub(crate) fn allow_writing(&self) {
        self.writable.store(true, Ordering::Release);
    }

    /// The tree is asked again before the next write.
    pub(crate) fn forbid_writing(&self) {
        self.writable.store(false, Ordering::Release);
    }

    /// A front end changes it now.
    pub(crate) fn note_change(&self, now: Nanos) {
        self.changed_at.store(now.0.max(1), Ordering::Relaxed);
    }

    /// When a front end last changed it, as far as that is known.
    pub(crate) fn changed_at(&self) -> Option<Nanos> {
        Some(self.changed_at.load(Ordering::Relaxed)).filter(|at| *at > 0).map(Nanos)
    }

    pub(crate) fn used_now(&self) {
        // A plain test first: the cache line stays shared among readers.
        if !self.recent.load(Ordering::Relaxed) {
            self.recent.store(true, Ordering::Relaxed);
        }
    }

    /// The count of changes. The load is ordered after everything learnt from an ended change.
    pub(crate) fn changes_seen(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.file().is_none_or(File::is_clean)
    }

    /// Whether it may be dropped and found again later without loss.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        !state.unsettled && !state.unflushed && self.is_clean()
    }

    /// Whether a write of this range can go without a question to the host. The first write of a clean file asks if the
    /// last answer is older than `idle_ns`. It always asks if a page has other known bytes: others may have changed
    /// these, and they are written back, too. Of a page past the end, the host gets the written bytes alone.
    pub(crate) fn may_become_dirty(&self, range: &Range<u64>, now: Nanos, idle_ns: u64) -> bool {
        let size = self.file().map_or(0, File::size);
        let ends_whole = range.end.is_multiple_of(PAGE_BYTES) || range.end >= size;
        let is_whole = range.start.is_multiple_of(PAGE_BYTES) && ends_whole;
        !self.is_clean() || (is_whole && self.is_fresh(&self.state(), now, idle_ns))
    }

    /// Whether it has no name.
    pub(crate) fn is_removed(&self) -> bool {
        self.state().removed
    }

    /// Whether it has neither name nor holder: only calls that began before may still use it.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().has_ended()
    }

    /// Adds a holder; `Stale` if the object has ended.
    pub(crate) fn hold(&self) -> Result<(), VolumeError> {
        let mut state = self.state();
        if state.has_ended() {
            return Err(VolumeError::Stale);
        }
        self.add_reference(&mut state);
        Ok(())
    }

    fn add_reference(&self, state: &mut InodeState) {
        if state.references == 0 {
            self.sums.held.fetch_add(1, Ordering::Relaxed);
        }
        state.references += 1;
    }

    /// Whether it is held, and has no name.
    pub(crate) fn is_held_without_name(&self) -> bool {
        let state = self.state();
        state.references > 0 && (state.removed || state.stat.links == 0)
    }

    /// Whether it is held, and may lose its last name with the next one. A directory has one name, and its links count
    /// its subdirectories.
    pub(crate) fn is_held_by_a_last_name(&self) -> bool {
        let state = self.state();
        state.references > 0 && (state.removed || self.kind == Kind::Directory || state.stat.links <= 1)
    }

    /// Adds a holder to those that there are.
    pub(crate) fn hold_again(&self) {
        self.add_reference(&mut self.state());
    }

    /// Removes a holder; the result shows that the object has ended with it.
    pub(crate) fn release(&self) -> Option<LastUse> {
        let mut state = self.state();
        state.references -= 1;
        if state.references == 0 {
            self.sums.held.fetch_sub(1, Ordering::Relaxed);
        }
        state.has_ended().then_some(LastUse)
    }

    /// The object has no name any more, or has none yet; the result shows that it has ended with that.
    pub(crate) fn lose_name(&self) -> Option<LastUse> {
        let mut state = self.state();
        (state.removed, state.location) = (true, None);
        state.has_ended().then_some(LastUse)
    }

    /// The object has a name again.
    pub(crate) fn gain_name(&self) {
        self.state().removed = false;
    }

    /// The attributes now.
    pub(crate) fn attributes(&self) -> Attributes {
        self.client_attributes(&mut self.state())
    }

    /// The attributes now. `None` if the host's last answer is `idle_ns` old or older, or if all writes are on the host
    /// and it was not asked since.
    pub(crate) fn fresh_attributes(&self, now: Nanos, idle_ns: u64) -> Option<Attributes> {
        let mut state = self.state();
        self.is_fresh(&state, now, idle_ns).then(|| self.client_attributes(&mut state))
    }

    /// Others may change owner and mode of a file with unwritten data, so the age counts for such a file, too.
    fn is_fresh(&self, state: &InodeState, now: Nanos, idle_ns: u64) -> bool {
        let is_told = (!state.unsettled || !self.is_clean()) && !state.links_doubtful;
        is_told && now.since(state.checked) < idle_ns && !state.has_ended()
    }

    /// Whether a caller has this right, if that was found out in this epoch.
    #[inline]
    pub(crate) fn remembers_allowing(&self, caller: &Caller, epoch: u64, wanted: Use) -> Option<bool> {
        self.remembered.allows(caller.id(), epoch, wanted)
    }

    /// A caller's rights, as a sum of uses, if they are known without asking the host. The attributes must be recent,
    /// and the mode bits must decide, or the host must have answered before. Remembers the result.
    pub(crate) fn known_uses(&self, caller: &Caller, epoch: u64, now: Nanos, idle_ns: u64) -> Option<u8> {
        let user = caller.credentials()?;
        let state = self.state();
        if !self.is_fresh(&state, now, idle_ns) {
            return None;
        }
        let rights = rights::by_mode(&state.stat, user).or_else(|| state.cached_rights.get(caller.id()))?;
        let uses = rights::uses(&state.stat, user, rights);
        self.remembered.keep(caller.id(), epoch, uses);
        Some(uses)
    }

    /// The rights of a caller as the host reported them.
    pub(crate) fn cached_rights(&self, caller: &Caller) -> Option<u8> {
        self.state().cached_rights.get(caller.id())
    }

    /// Call it before the host is asked for rights.
    pub(crate) fn rights_forgotten(&self) -> u64 {
        self.state().cached_rights.forgotten()
    }

    /// Stores the host's answer to a question asked at `forgotten`; returns the resulting sum of uses.
    pub(crate) fn store_rights(&self, caller: &Caller, rights: u8, forgotten: u64) -> u8 {
        let mut state = self.state();
        state.cached_rights.keep(caller.id(), rights, forgotten);
        caller.credentials().map_or(u8::MAX, |user| rights::uses(&state.stat, user, rights))
    }

    /// Forgets all callers' rights.
    pub(crate) fn forget_rights(&self, state: &mut InodeState) {
        state.cached_rights.forget();
        self.remembered.forget();
    }

    /// Whether all writes are on the host, and the host was not asked since.
    pub(crate) fn needs_settling(&self) -> bool {
        let state = self.state();
        state.unsettled && !state.has_ended() && self.is_clean()
    }

    /// Call it right before the host is asked.
    pub(crate) fn look(&self) -> InodeLook {
        // In this order: data counted twice makes the figure too large for a while, and missed data would make it too
        // small.
        let changes = self.changes.load(Ordering::Acquire);
        let usage = self.state().usage.mark();
        let usage = usage.with_unwritten(self.file().map_or(0, File::dirty_bytes));
        InodeLook { changes, usage, written: self.file().map(File::change_count) }
    }

    /// The bytes of its handle.
    pub fn handle_bytes(&self) -> &[u8] {
        self.handle.as_bytes()
    }

    /// The unit of times on its file system, in nanoseconds: every time reported to clients is a multiple of it.
    pub fn time_unit_ns(&self) -> u32 {
        self.time_unit.ns()
    }

    /// The host was given a modification time, and stored another one.
    pub(crate) fn learn_time_unit(&self, given: Timestamp, cached: Timestamp) {
        self.time_unit.learn(given, cached);
    }

    /// Whether two changes after each other have one time.
    pub(crate) fn has_coarse_times(&self) -> bool {
        self.time_unit_ns() >= COARSE_NS
    }

    /// The modification and the change time as reported to clients.
    pub(crate) fn times(&self) -> (Timestamp, Timestamp) {
        let WccAttributes { mtime, ctime, .. } = self.before(&self.state());
        (mtime, ctime)
    }

    /// The change time as reported to clients.
    pub(crate) fn change_time(&self) -> Timestamp {
        self.times().1
    }

    /// The state before a change, as reported to clients.
    #[inline]
    fn before(&self, state: &InodeState) -> WccAttributes {
        let unit_ns = self.time_unit_ns();
        let (size, mtime, ctime) = (state.size, state.mtime, state.ctime);
        if unit_ns == 1 {
            return WccAttributes { size, mtime, ctime };
        }
        WccAttributes { size, mtime: mtime.cut_to(unit_ns), ctime: ctime.cut_to(unit_ns) }
    }

    /// Whether the file has a setuid or setgid bit that its next write must clear.
    pub(crate) fn has_privileges(&self) -> bool {
        self.without_privileges().is_some()
    }

    /// The mode without the setuid and the setgid bit, if it has one of them. Root's writes clear them, too: the
    /// flusher cannot distinguish the writers of bytes.
    pub(crate) fn without_privileges(&self) -> Option<u32> {
        let state = self.state();
        let mode = without_privileges(state.stat.mode);
        Some(mode).filter(|mode| *mode != state.stat.mode && !state.unprivileged)
    }

    /// We may not clear the setuid and setgid bits: the host does when it gets the bytes.
    pub(crate) fn loses_privileges(&self) {
        self.state().unprivileged = true;
    }

    /// The attributes for a client; remembers the size that they report.
    fn client_attributes(&self, state: &mut InodeState) -> Attributes {
        self.client_attributes_within(state, u64::MAX)
    }

    /// As [`Self::client_attributes`], after an operation that cannot have made the file larger than `size_max`. A
    /// write under way makes the file longer before it updates the times. That other client's change must not appear
    /// between this operation's before and after.
    fn client_attributes_within(&self, state: &mut InodeState, size_max: u64) -> Attributes {
        let stat = state.stat;
        let size = self.file().map_or(stat.size, |file| file.size().min(size_max));
        state.size = size;
        let WccAttributes { mtime, ctime, .. } = self.before(state);
        Attributes {
            kind: self.kind,
            mode: if state.unprivileged { without_privileges(stat.mode) } else { stat.mode },
            links: if state.removed { 0 } else { stat.links },
            uid: stat.uid,
            gid: stat.gid,
            size,
            used: state.usage.reported_bytes(stat.used, size),
            device_major: stat.device_major,
            device_minor: stat.device_minor,
            fsid: self.identity.fsid(),
            fileid: self.fileid,
            atime: state.atime,
            mtime,
            ctime,
        }
    }

    /// Both sides of an operation without effect.
    pub(crate) fn unchanged(&self) -> Consistency {
        let mut state = self.state();
        let before = self.before(&state);
        Consistency { before: Some(before), after: Some(self.client_attributes_within(&mut state, before.size)) }
    }

    /// Records a client's write of these bytes at `now`.
    #[inline]
    pub(crate) fn written(&self, now: Timestamp, range: &Range<u64>) -> Consistency {
        let mut state = self.state();
        state.usage.wrote(range);
        let size_max = state.size.max(range.end);
        self.bytes_changed(&mut state, now, size_max)
    }

    /// Records a size that a client has set, at `now`, and the host's attributes since, if they are known.
    pub(crate) fn resized(&self, now: Timestamp, seen: Option<(Stat, InodeLook)>) -> Consistency {
        let mut state = self.state();
        if let Some((stat, look)) = seen {
            state.stat.used = stat.used;
            state.usage.renewed(look.usage);
        }
        self.bytes_changed(&mut state, now, u64::MAX)
    }

    /// The file has come back from an earlier process, with unwritten bytes or without. If there are such bytes, later
    /// times than the host's were reported to clients.
    pub(crate) fn came_back(&self, now: Timestamp) {
        let mut state = self.state();
        state.unflushed = true;
        let dirty_bytes = self.file().map_or(0, File::dirty_bytes);
        if dirty_bytes > 0 {
            state.usage.wrote(&(0..dirty_bytes));
            self.bytes_changed(&mut state, now, u64::MAX);
        }
    }

    #[inline]
    fn bytes_changed(&self, state: &mut InodeState, now: Timestamp, size_max: u64) -> Consistency {
        self.changes.fetch_add(1, Ordering::Relaxed);
        let before = self.before(state);
        state.mtime = now.moved_past(state.mtime);
        state.ctime = now.moved_past(state.ctime);
        state.unsettled = true;
        state.unflushed = true;
        Consistency { before: Some(before), after: Some(self.client_attributes_within(state, size_max)) }
    }

    /// Takes over the host's answer after a change of ours to attributes, names or entries. `times` says which of the
    /// access and modification times clients should see as the host has them. Without a `look` from before, the answer
    /// does not count for the file's storage, since it may be older than an earlier one. Directories' locks protect
    /// changes of names, and the object's lock changes of attributes. So each kind of change takes over only its own
    /// part: the other part of the answer may be outdated. Changes are counted in the order in which their answers are
    /// taken over, so under the lock of the state.
    pub(crate) fn changed(&self, stat: Stat, now: Nanos, times: Times, look: Option<&InodeLook>) -> Consistency {
        let mut state = self.state();
        let changes = self.changes.fetch_add(1, Ordering::Relaxed);
        let (before, known) = (self.before(&state), state.stat);
        // Our own change of a directory's entries does not affect rights on it.
        if times != Times::Entries || !state.has_rights_of(&stat) {
            self.forget_rights(&mut state);
        }
        match look {
            // One change since the `look` is the caller's own.
            Some(look) if changes > look.changes + 1 => {
                let is_doubtful = state.links_doubtful;
                state.renew(Stat { links: known.links, ..stat }, look);
                state.links_doubtful = is_doubtful;
            }
            Some(look) => state.renew(stat, look),
            None if times == Times::Keep => state.take_links(&stat),
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
                // A directory has no unwritten data.
                state.stat.used = stat.used;
            }
            Times::Set { atime, mtime } => {
                if atime {
                    state.atime = stat.atime;
                }
                if mtime {
                    state.mtime = stat.mtime;
                    // Coming writeback will move the host's time again.
                    state.unsettled |= !self.is_clean();
                }
            }
        }
        state.removed |= stat.links == 0;
        Consistency {
            before: Some(before),
            after: Some(self.client_attributes_within(&mut state, before.size.max(stat.size))),
        }
    }

    /// Whether the host's answer at about `now` differs from the baseline, and our own writeback cannot be the cause.
    pub(crate) fn does_differ(&self, stat: &Stat, now: Nanos) -> bool {
        let mut state = self.state();
        if state.is_like(stat) {
            state.checked = now;
            return false;
        }
        !state.unsettled && self.is_clean()
    }

    /// The host was asked at about `now`: the next call need not ask again.
    pub(crate) fn asked(&self, now: Nanos) {
        self.state().checked = now;
    }

    /// Takes over the attributes that our writes do not change: mode, owner and group. The host was asked with
    /// `changing` held, so no change of ours affected them meanwhile.
    pub(crate) fn observe_rights(&self, stat: &Stat) {
        let mut state = self.state();
        if stat.ctime != state.stat.ctime {
            // An access control list may have changed; a write of ours looks the same.
            self.forget_rights(&mut state);
        }
        if !state.has_rights_of(stat) {
            let Stat { mode, uid, gid, .. } = *stat;
            state.stat = Stat { mode, uid, gid, ..state.stat };
            state.ctime = stat.ctime.moved_past(state.ctime);
        }
    }

    /// The mode, the owner and the group as reported to clients.
    pub(crate) fn mode_and_owner(&self) -> (u32, u32, u32) {
        let state = self.state();
        let Stat { mode, uid, gid, .. } = state.stat;
        (if state.unprivileged { without_privileges(mode) } else { mode }, uid, gid)
    }

    /// Compares the host's answer with the baseline; the host was asked after `look`. For [`HostView::Foreign`] it
    /// takes over the new attributes.
    pub(crate) fn observe(&self, stat: Stat, look: &InodeLook, now: Nanos) -> HostView {
        let mut state = self.state();
        if self.changes.load(Ordering::Relaxed) != look.changes || state.has_ended() {
            return HostView::Busy;
        }
        if state.unsettled || !self.is_clean() {
            // Writeback moves the host's times and size: only the other attributes can be compared.
            let stat = Stat { size: state.stat.size, mtime: state.stat.mtime, ..stat };
            if stat.ctime != state.stat.ctime || !state.has_rights_of(&stat) {
                self.forget_rights(&mut state);
            }
            state.renew(stat, look);
            return HostView::Busy;
        }
        state.checked = now;
        state.unprivileged = false;
        let same = state.is_like(&stat);
        state.renew(stat, look);
        if same {
            return HostView::Same;
        }
        self.forget_rights(&mut state);
        state.foreign();
        // Earlier lookups of its names do not count any more.
        self.changes.fetch_add(1, Ordering::Release);
        HostView::Foreign
    }

    /// The host's modification time was set to the client's after `look`, and `stat` is the file now. `None` if it was
    /// written to meanwhile.
    pub(crate) fn settled(&self, stat: Stat, look: &InodeLook, now: Nanos) -> Option<HostView> {
        let mut state = self.state();
        if self.changes.load(Ordering::Relaxed) != look.changes || !self.is_clean() {
            return None;
        }
        // The host's clock has not passed the time reported to clients, but will have at the next try. If the clock was
        // set back, the file does not wait for that.
        let told = self.before(&state).ctime;
        let behind = stat.ctime < told && told.seconds - stat.ctime.seconds <= CLOCK_BEHIND_S_MAX;
        state.unsettled = behind;
        state.unprivileged = false;
        state.checked = now;
        self.forget_rights(&mut state);
        let size = self.file().map_or(stat.size, File::size);
        state.renew(stat, look);
        if stat.size == size {
            return Some(HostView::Same);
        }
        state.foreign();
        Some(HostView::Foreign)
    }

    /// The whole file was synced at this count of changes.
    pub(crate) fn flushed(&self, changes: u64) {
        let mut state = self.state();
        if self.changes.load(Ordering::Relaxed) == changes {
            state.unflushed = false;
        }
    }
}

/// The caller has taken the last of an object's name and holders away, and must have the volume end the object.
#[must_use]
pub(crate) struct LastUse;

impl<P: Platform> Drop for Inode<P> {
    fn drop(&mut self) {
        let removed = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).removed;
        self.sums.descriptors.fetch_sub(self.descriptors_held(), Ordering::Relaxed);
        match self.file.take() {
            Some(file) if removed => self.engine.discard(&file),
            file => file.into_iter().for_each(|file| self.engine.release(file)),
        }
    }
}
