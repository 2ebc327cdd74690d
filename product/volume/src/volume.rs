//! The volume: what ties engine, tree, inodes and handles together.
//!
//! Owns: the parts, their construction, exports, what all operations need: clocks, devices, tasks of their own.
//! Does not own: what is kept of objects (`objects`, which imports nothing of this), the operations (`handles`,
//! `names`, `data`, `coherence`): those are methods of the volume that stand in the rooms above, and
//! nothing here imports them. They call each other through the volume: a lookup may find that others changed a
//! file, which is then checked, may have to be settled, and may be gone. That circle of calls stays: it is what
//! can happen, and cutting it would put a trait with one implementation between each two of them.
//! Invariants: lock order: an inode's `changing` (of two directories: the smaller identity first),
//! then `moving`, `opening` or `durable`, then short locks (`docs/concurrency.md`). Only task locks are
//! held over an await.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use afflux_engine::settings::{KnobId, WhichKnob};
use afflux_engine::{DeviceId, Engine, Nanos, Platform};
use futures_util::lock::Mutex as TaskMutex;

use crate::error::VolumeError;
use crate::knobs::VolumeKnob;
use crate::objects::callers::Callers;
use crate::objects::devices::Devices;
use crate::objects::handle::{FileHandle, HandleKey};
use crate::objects::inode::Inode;
use crate::objects::location_log::LocationStore;
use crate::objects::name_cache::NameCache;
use crate::objects::pieces::Pieces;
use crate::objects::settling::Settling;
use crate::objects::sightings::Sightings;
use crate::objects::table::Table;
use crate::objects::walk::Walk;
use crate::task;
use crate::tree::attributes::Timestamp;
use crate::tree::directory::{DeviceFactory, DeviceKey, Directory, Node};

/// Files with names, over an engine and a tree.
///
/// Names are any bytes but '/' and NUL, 1 to 255 of them; "." and ".." work in lookups only (".." of
/// an export's root is the root). Anything else is [`VolumeError::Invalid`] or
/// [`VolumeError::NameTooLong`]. Every method may be dropped half-way: a change that was begun is
/// carried through.
pub struct Volume<P: Platform> {
    pub(crate) me: Weak<Self>,
    pub(crate) engine: Arc<Engine<P>>,
    pub(crate) tree: Arc<dyn Directory>,
    /// The tree refuses files that were moved out.
    pub(crate) confines_files: bool,
    pub(crate) key: HandleKey,
    pub(crate) table: Table<P>,
    pub(crate) exports: Vec<ExportRoot<P>>,
    devices: Devices,
    pub(crate) sightings: Sightings,
    pub(crate) walk: TaskMutex<Walk<P>>,
    /// Where the record of places is kept, if it is. Held while it is written.
    pub(crate) location_store: TaskMutex<Option<Arc<dyn LocationStore>>>,
    /// Held while a name becomes another, where the tree cannot open identities: for a walk.
    pub(crate) moving: TaskMutex<()>,
    pub(crate) names: NameCache<P>,
    pub(crate) settling: Settling<P>,
    pub(crate) pieces: Pieces<P>,
    pub(crate) callers: Callers,
    /// Counts up every few seconds: what callers may do is then found out anew.
    pub(crate) rights_epoch: AtomicU64,
    /// Held by whoever makes room in the table.
    pub(crate) sweeping: TaskMutex<()>,
    /// Drawn at start, since a new server may have lost what the old one had not written; or that one's, which had
    /// written all.
    verifier: AtomicU64,
    names_durable: AtomicBool,
    attributes_idle: KnobId,
}

/// An export in use.
pub(crate) struct ExportRoot<P: Platform> {
    pub(crate) path: String,
    pub(crate) root: Arc<Inode<P>>,
    pub(crate) tag: u16,
}

impl<P: Platform> Volume<P> {
    /// A volume of the tree's exports. Makes the devices that they are on; an error names what the
    /// factory said.
    ///
    /// # Panics
    /// When the engine's settings do not have the volume's [`KNOBS`](crate::KNOBS).
    pub fn new(
        engine: Arc<Engine<P>>,
        tree: Arc<dyn Directory>,
        key: HandleKey,
        device_factory: DeviceFactory,
    ) -> Result<Arc<Self>, VolumeError> {
        let attributes_idle = VolumeKnob::AttributesIdleCentisecs.id(engine.settings());
        let now = engine.platform().now();
        let table = Table::new(tree.descriptors_max());
        let roots = tree.exports().iter().map(|export| {
            let found = &export.root;
            let tag = key.export_tag(&found.identity);
            let handle = key.seal(&found.identity, tag);
            let make =
                || Inode::new(&engine, found.identity, handle, found.node.clone(), found.stat, now, &table.descriptors);
            let (root, _) = table.get_or_insert(&found.identity, make);
            ExportRoot { path: export.path.clone(), root, tag }
        });
        let exports: Vec<_> = roots.collect();
        let volume = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            verifier: AtomicU64::new(engine.platform().random_u64()),
            engine,
            confines_files: tree.confines_files(),
            sightings: Sightings::new(Arc::clone(&tree)),
            tree,
            key,
            table,
            exports,
            devices: Devices::new(device_factory),
            walk: TaskMutex::new(Walk::default()),
            location_store: TaskMutex::new(None),
            moving: TaskMutex::new(()),
            names: NameCache::new(),
            settling: Settling::default(),
            pieces: Pieces::default(),
            callers: Callers::default(),
            rights_epoch: AtomicU64::new(0),
            sweeping: TaskMutex::new(()),
            names_durable: AtomicBool::new(true),
            attributes_idle,
        });
        for export in &volume.exports {
            volume.device(export.root.device, &export.root.node)?;
        }
        Ok(volume)
    }

    /// The paths that can be mounted: "/" where one directory is exported, "/NAME" for each of several.
    pub fn exports(&self) -> Vec<String> {
        self.exports.iter().map(|export| export.path.clone()).collect()
    }

    /// The object's handle: the same over renames and restarts, until the object is gone.
    pub fn handle(&self, inode: &Inode<P>) -> FileHandle {
        inode.handle
    }

    /// A secret of this volume for hashes of numbers and bytes that clients choose: a client that knew the key could
    /// choose many with one hash. It stays the same as long as the key of handles does.
    pub fn hash_key(&self) -> [u8; 16] {
        self.key.derived("hashes of what clients choose")
    }

    /// Sixty-four bits that change exactly when acknowledged data that no sync has covered may have
    /// been lost: drawn when the server starts, and mixed anew when the engine had to give data up.
    pub fn write_verifier(&self) -> [u8; 8] {
        (self.verifier.load(Ordering::Relaxed) ^ self.lost_mask()).to_be_bytes()
    }

    /// Goes on with the verifier of a server that ended with everything written, before anything is served. It must
    /// not be one that another server goes on with, too.
    pub fn keep_write_verifier(&self, kept: [u8; 8]) {
        self.verifier.store(u64::from_be_bytes(kept) ^ self.lost_mask(), Ordering::Relaxed);
    }

    fn lost_mask(&self) -> u64 {
        self.engine.lost_epoch().wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The engine below.
    pub fn engine(&self) -> &Arc<Engine<P>> {
        &self.engine
    }

    /// Whether names and attributes are made durable before a call that changed them returns (they
    /// are, unless this is turned off). NFS demands it. Without it they are as durable as the host
    /// makes them by itself: after a crash of the host the last changes may be missing, bytes that
    /// were synced are not. [`Volume::sync_names`] makes up for it.
    pub fn set_names_durable(&self, durable: bool) {
        self.names_durable.store(durable, Ordering::Relaxed);
    }

    pub(crate) fn names_durable(&self) -> bool {
        self.names_durable.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Nanos {
        self.engine.platform().now()
    }

    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp::from_wall(self.engine.platform().wall_clock())
    }

    pub(crate) fn idle_ns(&self) -> u64 {
        self.engine.settings().ns(self.attributes_idle)
    }

    /// The engine's device for a device of the host; made when it is met first.
    pub(crate) fn device(&self, key: DeviceKey, node: &Node) -> Result<DeviceId, VolumeError> {
        self.devices.get_or_add(&self.engine, key, node)
    }

    /// Has the world carry `work` to its end, for a front end whose connection ends before its calls.
    pub fn run_to_the_end(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.engine.platform().spawn(name, work);
    }

    /// Carries `work` through even if the caller is dropped.
    pub(crate) async fn carried_through<T, F>(&self, name: &'static str, work: impl FnOnce(Arc<Self>) -> F) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let volume = self.me.upgrade()?;
        task::to_the_end(&**self.engine.platform(), name, work(volume)).await
    }
}

/// What a call gets whose task the platform dropped: the world is ending.
pub(crate) const STOPPED: VolumeError = VolumeError::Io { errno: 125 };
