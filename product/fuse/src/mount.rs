//! One mount: the state that all calls share.
//!
//! Owns: nodes, open files, figures; the caller and the payer of a request; the notice of a change by others; the
//! takeover of an earlier server's mount.
//! Does not own: messages (`answering`), the operations (`operations`), files (the volume), the form of the memory for
//! a later server (`persisted`).
//! Invariants: no lock is held while a call waits, and a lock of this file is the last that a thread takes. The mount
//! notifies the kernel of others' changes to objects that the kernel knows. It notifies of no change that the kernel
//! asked for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_frontend::{CallJournal, CountedRow, MessageQuota, Recording};
use afflux_volume::{
    Attributes, Before, Caller, Client, DeviceKey, FileHandle, ForeignChange, ForeignListener, Held, HolderId, Inode,
    Kind, KnobId, LockHolder, Nanos, Platform, Volume, VolumeKnob, WhichKnob,
};

use crate::abi::{UNIQUE_RESENT, init, notify, o};
use crate::calls::CallCounts;
use crate::interrupts::Interrupts;
use crate::limits::{INTERRUPT_GRACE_NS, INTERRUPT_PATIENCE_NS, NODES_MAX, PAGE_BYTES, WAITING_BYTES_MIN};
use crate::mount_state::{
    Agreed, BegunChange, Grant, Grants, MountState, MountStateError, PersistedOpenFile, ShortVerifier,
};
use crate::nodes::KernelNodes;
use crate::notices::{NO_DISK, NodeNotice, Notices};
use crate::open_files::{OpenFile, OpenFiles, Opened};
use crate::reply::{Errno, Granted, ReplyDraft, Validity};
use crate::request::{self, RequestHeader};

/// The changes that the flags of a mount make synchronous: they are durable before their call returns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum SyncedChanges {
    /// None but those of files that are opened so.
    #[default]
    None,
    /// Those of names (`dirsync`).
    Names,
    /// All (`sync`).
    All,
}

/// Facts about the kernel's side: the mount's flags there, and the threads whose requests come.
pub trait Requesters: Send + Sync + 'static {
    /// The changes that the mount's flags make synchronous now. Asked about each change of names or attributes.
    fn synced_changes(&self) -> SyncedChanges;

    /// The process of a thread; none if it is gone or in no namespace of ours. Asked once for each open.
    fn process(&self, thread: u32) -> Option<u32>;

    /// Whether the thread is being killed, so that no code of its program sees an answer any more. True for a thread
    /// that is gone or in no namespace of ours. Asked about interrupted calls alone.
    fn is_killed(&self, thread: u32) -> bool;

    /// What a thread of this user may do in addition to what its user and first group may. None for a thread that is
    /// gone, that acts as another user, or that is in no namespace of ours. Asked about refused calls alone.
    fn rights(&self, thread: u32, user: u32) -> Option<ThreadRights>;

    /// Whether the thread's capabilities count for objects of this user and this group.
    fn is_over(&self, thread: u32, uid: u32, gid: u32) -> bool;
}

/// Rights of a thread that the kernel does not send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadRights {
    /// Its further groups.
    pub groups: Vec<u32>,
    /// Its capabilities, as the kernel's bits. They may count for the objects of some users alone.
    pub capabilities: u64,
}

/// The choices of a mount.
#[derive(Clone, Copy, Debug, Default)]
pub struct MountOptions {
    /// New objects are made as the requesting user. Without it, all calls are the server's own.
    pub acts_as_callers: bool,
    /// The kernel caches bytes that programs read.
    pub kernel_cache: bool,
    /// Nobody else changes the directory, except through this server.
    pub sole: bool,
    /// Programs on the mount and other clients of the volume exclude each other by locks. A mount that outlives its
    /// server uses the kernel's own locks: these outlive the server, too.
    pub shares_locks: bool,
    /// Programs change nothing, until [`Mount::set_read_only`].
    pub is_read_only: bool,
}

/// The programs of a mount as one holder of locks. The kernel ends their locks with their files.
struct Programs;

/// Their bound is their own.
const PROGRAMS_GROUP: u64 = 0;

impl LockHolder for Programs {
    fn has_lapsed(&self, _: Nanos) -> bool {
        false
    }

    fn try_revoke(&self, _: Nanos) -> bool {
        false
    }

    fn name(&self) -> String {
        "programs on the mount".to_owned()
    }
}

/// How long the kernel may use names and attributes if nobody else changes them.
const SOLE_NS: u64 = 3_600_000_000_000;

/// The state of one mount.
pub struct Mount<P: Platform> {
    pub(crate) volume: Arc<Volume<P>>,
    nodes: Mutex<KernelNodes>,
    open: Mutex<OpenFiles<P>>,
    /// Memory for a later server.
    persisted: Option<MountState>,
    /// Changes and grants of requests that the kernel may send to a later server again.
    changes: Option<Arc<CallJournal>>,
    grants: Option<Grants>,
    /// An earlier server has agreed with the kernel already.
    pub(crate) resumes: bool,
    pub(crate) interrupts: Interrupts,
    /// The long messages of programs' calls that wait.
    pub(crate) waiting: Arc<MessageQuota>,
    pub(crate) calls: CallCounts,
    recording: Arc<Recording>,
    requesters: Box<dyn Requesters>,
    pub(crate) options: MountOptions,
    attributes_idle: KnobId,
    /// The server, for calls of the kernel.
    pub(crate) own: Caller,
    pub(crate) notices: Notices,
    pub(crate) refuses: AtomicBool,
    pub(crate) is_read_only: AtomicBool,
    /// The kernel's SETXATTR has the fields of SETXATTR_EXT.
    pub(crate) xattr_extended: AtomicBool,
    /// The kernel forgets unused nodes that are named to it.
    prunes: AtomicBool,
    /// The programs as a holder of locks, if they and others exclude each other by locks.
    pub(crate) locker: Option<HolderId>,
}

/// The outcome of an operation.
pub(crate) type Outcome = Result<ReplyDraft, Errno>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Platform> Mount<P> {
    /// A mount of a directory of the volume, with the recording of its calls. With memory that is `persisted`, a later
    /// server can go on with it ([`Mount::resumed`]).
    ///
    /// # Panics
    /// When the settings of the volume's engine do not have the volume's knobs.
    pub fn new(
        volume: Arc<Volume<P>>,
        root: &Inode<P>,
        options: MountOptions,
        requesters: impl Requesters,
        recording: Arc<Recording>,
        persisted: Option<MountState>,
    ) -> Arc<Self> {
        let nodes_max = persisted.as_ref().map_or(NODES_MAX, MountState::nodes_max);
        let nodes = KernelNodes::new(volume.handle(root), nodes_max, persisted.clone());
        let open = OpenFiles::new(volume.open_files_max());
        Arc::new(Self::of(volume, nodes, open, options, Box::new(requesters), recording, persisted))
    }

    /// The mount of an earlier server, with its nodes and open files. Also returns how many of these are lost, because
    /// they have no name any more.
    ///
    /// # Errors
    /// The memory is of a mount of another directory, or it is damaged.
    ///
    /// # Panics
    /// As [`Mount::new`].
    pub async fn resumed(
        volume: Arc<Volume<P>>,
        root: &Inode<P>,
        mut options: MountOptions,
        requesters: impl Requesters,
        recording: Arc<Recording>,
        persisted: MountState,
    ) -> Result<(Arc<Self>, usize), MountStateError> {
        let agreed = persisted.agreed().ok_or(MountStateError::NotAgreed)?;
        // Otherwise the kernel would cache bytes of files that others change.
        options.kernel_cache &= agreed.flags & init::AUTO_INVAL_DATA != 0;
        let nodes = KernelNodes::inherited(volume.handle(root), persisted.clone())?;
        let (mut open, mut lost) = (Vec::new(), 0);
        for (generation, file) in persisted.files()? {
            let opened = match file {
                Some(file) => Some((file.user, reopened(&volume, &file).await)),
                None => None,
            };
            lost += usize::from(matches!(opened, Some((_, Opened::Lost))));
            open.push((generation, opened));
        }
        let open = OpenFiles::restored(open, volume.open_files_max());
        let mut mount = Self::of(volume, nodes, open, options, Box::new(requesters), recording, Some(persisted));
        mount.resumes = true;
        mount.take_over(agreed);
        Ok((Arc::new(mount), lost))
    }

    fn of(
        volume: Arc<Volume<P>>,
        nodes: KernelNodes,
        open: OpenFiles<P>,
        options: MountOptions,
        requesters: Box<dyn Requesters>,
        recording: Arc<Recording>,
        persisted: Option<MountState>,
    ) -> Self {
        let attributes_idle = VolumeKnob::AttributesIdleCentisecs.id(volume.engine().settings());
        let shares_locks = options.shares_locks && persisted.is_none();
        let locker = shares_locks.then(|| volume.locks().register(Arc::new(Programs), PROGRAMS_GROUP));
        Self {
            locker,
            nodes: Mutex::new(nodes),
            open: Mutex::new(open),
            changes: persisted.as_ref().map(MountState::changes),
            grants: persisted.clone().map(Grants::new),
            persisted,
            resumes: false,
            interrupts: Interrupts::default(),
            waiting: MessageQuota::new((volume.engine().frames().total() as usize * PAGE_BYTES).max(WAITING_BYTES_MIN)),
            calls: CallCounts::new(),
            recording,
            requesters,
            is_read_only: AtomicBool::new(options.is_read_only),
            options,
            attributes_idle,
            own: Caller::SERVER.listening(),
            notices: Notices::default(),
            refuses: AtomicBool::new(false),
            xattr_extended: AtomicBool::new(false),
            prunes: AtomicBool::new(false),
            volume,
        }
    }

    /// Refuses changes by programs with EROFS from here on, or no longer. A file that is open for writing may be
    /// written until it is closed.
    pub fn set_read_only(&self, is_read_only: bool) {
        self.is_read_only.store(is_read_only, Ordering::Relaxed);
    }

    /// Whether a later server can go on with the mount: its memory outlives this server, and the kernel sends
    /// unanswered requests again. Known after INIT.
    pub fn can_outlive(&self) -> bool {
        let agreed = self.persisted.as_ref().and_then(MountState::agreed);
        agreed.is_some_and(|agreed| agreed.flags & init::HAS_RESEND != 0)
    }

    /// The flags that the mount wants of the kernel.
    pub(crate) fn wanted(&self) -> u64 {
        let to_keep = if self.options.kernel_cache { init::WANTED_TO_KEEP } else { 0 };
        let to_lock = if self.locker.is_some() { init::WANTED_TO_LOCK } else { 0 };
        let to_outlive = if self.persisted.is_some() { init::WANTED_TO_OUTLIVE } else { 0 };
        init::WANTED | to_keep | to_lock | to_outlive
    }

    /// Notes the agreement of INIT.
    pub(crate) fn agree(&self, agreed: Agreed) {
        self.take_over(agreed);
        if let Some(persisted) = &self.persisted {
            persisted.note_agreed(agreed);
        }
    }

    /// The form of later messages.
    fn take_over(&self, agreed: Agreed) {
        self.xattr_extended.store(agreed.flags & init::SETXATTR_EXT != 0, Ordering::Relaxed);
        self.prunes.store(agreed.minor >= notify::MINOR_OF_PRUNE, Ordering::Relaxed);
    }

    /// Begins a change of names, or another change that must not happen twice. Comes before the host is asked. `value`
    /// and `object` are for a repetition by a later server. It fails if an earlier server has refused the same request.
    pub(crate) fn begin_change(&self, header: &RequestHeader, value: u64, object: u64) -> Result<BegunChange, Errno> {
        BegunChange::begin(self.changes.as_ref(), header.unique, header.uid, value, object)
    }

    /// The wall clock's time in nanoseconds.
    pub(crate) fn wall_ns(&self) -> u64 {
        u64::try_from(self.volume.engine().platform().wall_clock().0).unwrap_or_default()
    }

    /// Counts a lookup of an object for the answer to a request; none if there are too many nodes.
    pub(crate) fn look_up(&self, unique: u64, object: FileHandle) -> Option<u64> {
        let (node, surplus) = {
            let mut nodes = self.known();
            let node = nodes.look_up(object)?;
            (node, if self.prunes.load(Ordering::Relaxed) { nodes.surplus() } else { Vec::new() })
        };
        if !surplus.is_empty() {
            self.notices.note(NO_DISK, NodeNotice::Unused(surplus));
        }
        if let Some(grants) = &self.grants {
            grants.grant(unique, Grant::Node(node));
        }
        Some(node)
    }

    /// Takes back what an earlier server granted for a request that has come again.
    pub(crate) fn take_back_inherited(&self, unique: u64) {
        let inherited = self.grants.iter().flat_map(|grants| grants.take(unique));
        inherited.for_each(|grant| match grant {
            Grant::Node(node) => self.known().forget(node, 1),
            Grant::File(file) => self.close(file),
        });
    }

    /// The recording of READ, WRITE and FSYNC calls, active while somebody reads it.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// Counts of calls of each operation, then of error answers, in a fixed order.
    pub fn calls(&self) -> Vec<CountedRow> {
        self.calls.rows()
    }

    /// Nodes that the kernel holds, the root included.
    pub fn nodes(&self) -> usize {
        lock(&self.nodes).len()
    }

    /// Files and directories that are open.
    pub fn open_files(&self) -> usize {
        lock(&self.open).len()
    }

    /// Calls that wait.
    pub fn calls_waiting(&self) -> usize {
        self.interrupts.len()
    }

    /// The kernel's nodes.
    pub(crate) fn known(&self) -> MutexGuard<'_, KernelNodes> {
        lock(&self.nodes)
    }

    /// How long the kernel may use names and attributes: no longer than the volume does.
    pub(crate) fn validity(&self) -> Validity {
        let idle_ns = self.volume.engine().settings().ns(self.attributes_idle);
        let valid_ns = if self.options.sole { SOLE_NS } else { idle_ns };
        Validity { names_ns: valid_ns, attributes_ns: valid_ns }
    }

    /// As [`Mount::validity`], for names in a directory. Where other bytes may be the same name, the kernel must ask
    /// each time: it learns of a change under one spelling alone.
    pub(crate) fn validity_of_names(&self, directory: &Inode<P>) -> Validity {
        let valid = self.validity();
        if self.volume.may_fold_names(directory) { Validity { names_ns: 0, ..valid } } else { valid }
    }

    /// As [`Mount::validity_of_names`], for the directory of a node.
    pub(crate) fn validity_in(&self, node: u64) -> Validity {
        self.try_object(node).map_or_else(|| self.validity(), |directory| self.validity_of_names(&directory))
    }

    /// Notes that an object was made here just now.
    pub(crate) fn note_made(&self, node: u64) {
        let until_ns = self.volume.engine().platform().now().after(self.validity().attributes_ns).0;
        self.known().note_plain(node, until_ns);
    }

    /// How long the kernel may take a name for absent; `None` if not at all.
    pub(crate) fn absent_ns(&self) -> Option<u64> {
        (self.options.sole || self.options.kernel_cache).then(|| self.validity().names_ns)
    }

    /// The object of a node, if it is in memory.
    pub(crate) fn try_object(&self, node: u64) -> Option<Arc<Inode<P>>> {
        let handle = self.known().handle(node)?;
        self.volume.try_resolve(handle.as_bytes())
    }

    /// The object of a node.
    pub(crate) async fn object(&self, node: u64) -> Result<Arc<Inode<P>>, Errno> {
        let handle = self.known().handle(node).ok_or(Errno::STALE)?;
        Ok(self.volume.resolve(handle.as_bytes()).await?)
    }

    /// An open file.
    pub(crate) fn opened(&self, fh: u64) -> Result<Arc<OpenFile<P>>, Errno> {
        match lock(&self.open).get(fh) {
            Some(Opened::File(file)) => Ok(Arc::clone(file)),
            Some(Opened::Lost) => Err(Errno::STALE),
            None => Err(Errno::BAD_FILE),
        }
    }

    /// Whether the requester may open one more file. A mount for one user needs no bound for each.
    pub(crate) fn may_open_one_more(&self, header: &RequestHeader) -> bool {
        !self.options.acts_as_callers || lock(&self.open).may_open(header.uid, self.volume.open_files_available())
    }

    /// Memory of messages that wait, in bytes.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.bytes()
    }

    /// The changes that the mount's flags in the kernel make synchronous.
    pub(crate) fn synced_changes(&self) -> SyncedChanges {
        self.requesters.synced_changes()
    }

    /// Opens an object for the requester, by flags of open(2). Returns its number.
    pub(crate) fn open(&self, header: &RequestHeader, node: u64, flags: u32, inode: Held<P>) -> Result<u64, Errno> {
        let process = self.requesters.process(header.thread).unwrap_or_default();
        let handle = self.volume.handle(&inode);
        let client = client(process, header.uid);
        let is_synchronous = request::is_synchronous(flags);
        let may_be_stored = flags & o::ACCMODE == o::RDWR && inode.kind() == Kind::Regular;
        let owes_error = AtomicBool::new(false);
        let file = OpenFile { inode, node, client, is_synchronous, may_be_stored, owes_error };
        let fh = lock(&self.open).insert(header.uid, Opened::File(Arc::new(file))).ok_or(Errno::TOO_MANY_FILES)?;
        if let (Some(grants), Some(persisted)) = (&self.grants, &self.persisted) {
            // In this order: a file without a grant would stay open.
            grants.grant(header.unique, Grant::File(fh));
            let (user, verifier) = (header.uid, self.verifier());
            persisted.put_file(fh, &PersistedOpenFile { handle, node, process, user, is_synchronous, verifier });
        }
        Ok(fh)
    }

    fn verifier(&self) -> ShortVerifier {
        ShortVerifier::of(self.volume.write_verifier())
    }

    /// A sync of an open file has succeeded. It fails all the same, once, if an earlier server's memory was damaged:
    /// bytes that the server has reported to the file's program as accepted may be lost.
    pub(crate) fn tell_loss(&self, header: &RequestHeader, fh: u64, file: &OpenFile<P>) -> Result<(), Errno> {
        let owes_error = file.owes_error.swap(false, Ordering::AcqRel);
        if !owes_error && header.unique & UNIQUE_RESENT == 0 {
            return Ok(());
        }
        let change = self.begin_change(header, 0, 0)?;
        if !owes_error && change.before == Before::Nothing {
            change.forget();
            return Ok(());
        }
        // The kernel may not get this answer: a repetition finds the change as begun.
        self.persisted.iter().for_each(|persisted| persisted.set_verifier(fh, self.verifier()));
        change.stays_begun();
        Err(Errno::IO)
    }

    pub(crate) fn close(&self, fh: u64) {
        // The drop may end an object and give back descriptors; that is not done under the lock.
        let closed = {
            let mut open = lock(&self.open);
            let closed = open.remove(fh);
            if let (Some(Opened::File(file)), Some(locker)) = (&closed, self.locker) {
                self.volume.locks().end_share(file.inode.fileid(), (locker, fh));
            }
            // Under the lock: the slot may go to another file at once.
            self.persisted.iter().filter(|_| closed.is_some()).for_each(|persisted| persisted.free_file(fh));
            closed
        };
        drop(closed);
    }

    /// Waits until an interrupted call may be ended. False if it has ended by itself.
    pub(crate) async fn wait_for_grace(&self, unique: u64) -> bool {
        let platform = self.volume.engine().platform();
        let began = platform.now();
        if self.interrupts.requester(unique).is_some_and(|it| it.expects_interrupts) {
            return true;
        }
        loop {
            platform.sleep_until(platform.now().after(INTERRUPT_GRACE_NS)).await;
            // The kernel reports the first signal only: a later one may kill.
            match self.interrupts.requester(unique) {
                None => return false,
                Some(_) if platform.now().since(began) >= INTERRUPT_PATIENCE_NS => return true,
                Some(it) if it.expects_interrupts || self.requesters.is_killed(it.thread) => return true,
                Some(_) => {}
            }
        }
    }

    /// Takes back the nodes and the file of an answer that the kernel never gets.
    pub(crate) fn take_back(&self, granted: &Granted) {
        granted.file.into_iter().for_each(|fh| self.close(fh));
        let mut nodes = self.known();
        granted.node.iter().chain(&granted.listed).for_each(|node| nodes.forget(*node, 1));
    }

    /// The user that new objects are made as.
    pub(crate) fn caller(&self, header: &RequestHeader, message: &[u8]) -> Caller {
        if !self.options.acts_as_callers {
            return self.own.clone();
        }
        self.caller_with(header, &request::groups(header, message))
    }

    /// The requesting user, with these further groups.
    pub(crate) fn caller_with(&self, header: &RequestHeader, groups: &[u32]) -> Caller {
        self.volume.caller(header.uid, header.gid, groups).listening()
    }

    /// The requester's rights that the kernel does not send.
    pub(crate) fn rights(&self, header: &RequestHeader) -> Option<ThreadRights> {
        self.requesters.rights(header.thread, header.uid)
    }

    /// Whether the requester's capabilities count for an object with these attributes.
    pub(crate) fn is_over(&self, header: &RequestHeader, object: &Attributes) -> bool {
        self.requesters.is_over(header.thread, object.uid, object.gid)
    }

    /// Whether a mapping may have stored bytes of this node that the kernel has not written back.
    pub(crate) fn may_be_stored(&self, node: u64) -> bool {
        lock(&self.open).may_be_stored(node)
    }

    /// Whether the requester has this object open.
    pub(crate) fn has_opened(&self, header: &RequestHeader) -> bool {
        lock(&self.open).has(header.uid, header.node)
    }
}

/// The payer of a process's calls; zero means a process that is not known.
fn client(process: u32, user: u32) -> Client {
    let name = if process == 0 { "unknown process".to_owned() } else { format!("process {process}") };
    Client::named(&name).of_user(user)
}

/// A file that an earlier server had open.
async fn reopened<P: Platform>(volume: &Arc<Volume<P>>, file: &PersistedOpenFile) -> Opened<P> {
    let found = volume.hold_inherited(file.handle.as_bytes()).await;
    found.map_or(Opened::Lost, |inode| {
        let owes_error = AtomicBool::new(file.verifier != ShortVerifier::of(volume.write_verifier()));
        let PersistedOpenFile { node, is_synchronous, .. } = *file;
        let client = client(file.process, file.user);
        Opened::File(Arc::new(OpenFile { inode, node, client, is_synchronous, may_be_stored: true, owes_error }))
    })
}

impl<P: Platform> Drop for Mount<P> {
    fn drop(&mut self) {
        if let Some(locker) = self.locker {
            self.volume.locks().release_holder(locker, self.volume.engine().platform().now());
        }
    }
}

impl<P: Platform> ForeignListener for Mount<P> {
    fn changed(&self, device: DeviceKey, change: ForeignChange) {
        let node = |handle| self.known().known(handle);
        let notice = match change {
            ForeignChange::Bytes(file) => {
                node(&file).inspect(|node| self.known().note_changed(*node)).map(NodeNotice::Bytes)
            }
            // The kernel uses names for a short time only, and no listings.
            ForeignChange::Attributes(object) | ForeignChange::Names(object) => {
                node(&object).inspect(|node| self.known().note_changed(*node)).map(NodeNotice::Attributes)
            }
            ForeignChange::Name { directory, name } => {
                node(&directory).map(|directory| NodeNotice::Name(directory, name))
            }
        };
        if let Some(notice) = notice {
            self.notices.note(device.0, notice);
        }
    }
}
