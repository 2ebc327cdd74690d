//! One mount: the state that all calls share.
//!
//! Owns: nodes, open files, figures; the caller and the payer of a request; the notice of a change by others.
//! Does not own: messages (`answering`), the operations (`operations`), files (the volume).
//! Invariants: no lock is held while a call waits, and a lock of this file is the last that a thread takes. The mount
//! tells the kernel of others' changes to objects that the kernel knows. It tells no change that the kernel asked for.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_frontend::Recording;
use afflux_volume::{
    Caller, Client, ForeignChange, ForeignListener, Held, Inode, KnobId, Platform, Volume, VolumeKnob, WhichKnob,
};

use crate::calls::Calls;
use crate::interrupts::Interrupts;
use crate::limits::{INTERRUPT_GRACE_NS, INTERRUPT_PATIENCE_NS, NODES_MAX, OPEN_FILES_MAX};
use crate::nodes::Nodes;
use crate::notices::{Notice, Notices};
use crate::open_files::OpenFile;
use crate::reply::{Answer, Errno, Granted, Validity};
use crate::request::{self, Header};
use crate::slots::Slots;

/// Facts about the threads whose requests come.
pub trait Requesters: Send + Sync + 'static {
    /// The process of a thread; none if it is gone or in no namespace of ours. Asked once for each open.
    fn process(&self, thread: u32) -> Option<u32>;

    /// Whether the thread is being killed, so that no code of its program sees an answer any more. True for a thread that
    /// is gone or in no namespace of ours. Asked about interrupted calls alone.
    fn is_killed(&self, thread: u32) -> bool;
}

/// The choices of a mount.
#[derive(Clone, Copy, Debug, Default)]
pub struct MountOptions {
    /// New objects are made as the requesting user. Without it, all calls are the server's own.
    pub acts_as_callers: bool,
    /// The kernel keeps bytes that programs read.
    pub kernel_cache: bool,
    /// Nobody else changes the directory, except through this server.
    pub sole: bool,
}

/// How long the kernel may use names and attributes if nobody else changes them.
const SOLE_NS: u64 = 3_600_000_000_000;

/// The state of one mount.
pub struct Mount<P: Platform> {
    pub(crate) volume: Arc<Volume<P>>,
    nodes: Mutex<Nodes>,
    open: Mutex<Slots<Arc<OpenFile<P>>>>,
    pub(crate) interrupts: Interrupts,
    pub(crate) calls: Calls,
    recording: Arc<Recording>,
    requesters: Box<dyn Requesters>,
    pub(crate) options: MountOptions,
    attributes_idle: KnobId,
    /// The server, for calls of the kernel.
    pub(crate) own: Caller,
    pub(crate) notices: Notices,
    pub(crate) refuses: AtomicBool,
    /// The kernel's SETXATTR has the fields of SETXATTR_EXT.
    pub(crate) xattr_extended: AtomicBool,
}

/// The outcome of an operation.
pub(crate) type Outcome = Result<Answer, Errno>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Platform> Mount<P> {
    /// A mount of a directory of the volume, with the recording of its calls.
    ///
    /// # Panics
    /// When the settings of the volume's engine do not have the volume's knobs.
    pub fn new(
        volume: Arc<Volume<P>>,
        root: &Inode<P>,
        options: MountOptions,
        requesters: impl Requesters,
        recording: Arc<Recording>,
    ) -> Arc<Self> {
        let attributes_idle = VolumeKnob::AttributesIdleCentisecs.id(volume.engine().settings());
        Arc::new(Self {
            nodes: Mutex::new(Nodes::new(volume.handle(root), NODES_MAX)),
            open: Mutex::new(Slots::new(OPEN_FILES_MAX)),
            interrupts: Interrupts::default(),
            calls: Calls::new(),
            recording,
            requesters: Box::new(requesters),
            options,
            attributes_idle,
            own: Caller::SERVER.listening(),
            notices: Notices::default(),
            refuses: AtomicBool::new(false),
            xattr_extended: AtomicBool::new(false),
            volume,
        })
    }

    /// The recording of READ, WRITE and FSYNC calls, active while somebody reads it.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// Counts of calls of each operation, then of error answers, in a fixed order.
    pub fn calls(&self) -> Vec<(&'static str, u64)> {
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
    pub(crate) fn known(&self) -> MutexGuard<'_, Nodes> {
        lock(&self.nodes)
    }

    /// How long the kernel may use names and attributes: no longer than the volume does.
    pub(crate) fn validity(&self) -> Validity {
        let idle_ns = self.volume.engine().settings().ns(self.attributes_idle);
        let valid_ns = if self.options.sole { SOLE_NS } else { idle_ns };
        Validity { names_ns: valid_ns, attributes_ns: valid_ns }
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
        lock(&self.open).get(fh).cloned().ok_or(Errno::BAD_FILE)
    }

    /// Opens an object for the requester. Returns its number.
    pub(crate) fn open(&self, header: &Header, node: u64, inode: Held<P>) -> Result<u64, Errno> {
        let process = self.requesters.process(header.thread);
        let name = process.map_or_else(|| "unknown process".to_owned(), |process| format!("process {process}"));
        let client = Client::named(&name).of_user(header.uid);
        lock(&self.open).insert(Arc::new(OpenFile { inode, node, client })).ok_or(Errno::TOO_MANY_FILES)
    }

    pub(crate) fn close(&self, fh: u64) {
        // The drop may end an object and give back descriptors; that is not done under the lock.
        let closed = lock(&self.open).remove(fh);
        drop(closed);
    }

    /// Waits until an interrupted call may be ended. False if it has ended by itself.
    pub(crate) async fn has_waited(&self, unique: u64) -> bool {
        let platform = self.volume.engine().platform();
        let began = platform.now();
        loop {
            platform.sleep_until(platform.now().after(INTERRUPT_GRACE_NS)).await;
            // The kernel tells of the first signal only: a later one may kill.
            match self.interrupts.requester(unique) {
                None => return false,
                Some(_) if platform.now().since(began) >= INTERRUPT_PATIENCE_NS => return true,
                Some(thread) if self.requesters.is_killed(thread) => return true,
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
    pub(crate) fn caller(&self, header: &Header, message: &[u8]) -> Caller {
        if !self.options.acts_as_callers {
            return self.own.clone();
        }
        self.volume.caller(header.uid, header.gid, &request::groups(header, message)).listening()
    }
}

impl<P: Platform> ForeignListener for Mount<P> {
    fn changed(&self, change: ForeignChange) {
        let node = |handle| self.known().known(handle);
        let notice = match change {
            ForeignChange::Bytes(file) => {
                node(&file).inspect(|node| self.known().note_changed(*node)).map(Notice::Bytes)
            }
            // The kernel uses names for a short time only, and no listings.
            ForeignChange::Attributes(object) | ForeignChange::Names(object) => {
                node(&object).inspect(|node| self.known().note_changed(*node)).map(Notice::Attributes)
            }
            ForeignChange::Name { directory, name } => node(&directory).map(|directory| Notice::Name(directory, name)),
        };
        if let Some(notice) = notice {
            self.notices.note(notice);
        }
    }
}
