//! The volume: it joins engine, tree, inodes and handles.
//!
//! Owns: the parts, their construction, exports, and the common needs of all operations: clocks, devices, tasks.
//! Does not own: the state of objects (`objects`, which imports nothing from here); the operations (`handles`, `names`,
//! `data`, `coherence`). These operations are methods of the volume in the modules above, and nothing here imports
//! them. They call each other through the volume: a lookup may find that others changed a file, which is then checked,
//! may have to be settled, and may be gone. This circle of calls reflects the possible events, and cutting it would put
//! a trait with one implementation between each two modules.
//! Invariants: lock order: an inode's `changing` (of two directories: the smaller identity first), then `moving`,
//! `opening` or `durable`, then short locks (`docs/develop/concurrency.md`). Only task locks are held over an await.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use afflux_engine::settings::{KnobId, WhichKnob};
use afflux_engine::{DeviceId, Engine, Nanos, Platform};
use futures_util::lock::Mutex as TaskMutex;

use crate::delegations::Delegations;
use crate::error::VolumeError;
use crate::knobs::VolumeKnob;
use crate::locks::Locks;
use crate::objects::devices::{Settling, TreeDevices};
use crate::objects::directory_cache::{ListingPieces, NameCache};
use crate::objects::found_files::FoundFiles;
use crate::objects::handle::{FileHandle, FileIds, HandleKey};
use crate::objects::inode::Inode;
use crate::objects::listener::ListenerSlot;
use crate::objects::rights::CallerTable;
use crate::objects::table::InodeTable;
use crate::search::Search;
use crate::task;
use crate::tree::attributes::{DeviceKey, Timestamp};
use crate::tree::directory::{DeviceFactory, Directory, Node};

/// Files with names, over an engine and a tree.
///
/// Names are any bytes but '/' and NUL, 1 to 255 of them; "." and ".." work in lookups only (".." of an export's root
/// is the root). Any other name is [`VolumeError::Invalid`] or [`VolumeError::NameTooLong`]. Every method may be
/// dropped before its end: a change that has begun is completed.
pub struct Volume<P: Platform> {
    pub(crate) me: Weak<Self>,
    pub(crate) engine: Arc<Engine<P>>,
    pub(crate) tree: Arc<dyn Directory>,
    /// The tree refuses files that were moved out.
    pub(crate) confines_files: bool,
    pub(crate) key: HandleKey,
    pub(crate) table: InodeTable<P>,
    pub(crate) exports: Vec<ExportRoot<P>>,
    pub(crate) devices: TreeDevices,
    pub(crate) search: Search<P>,
    /// Files that the engine's memory has from an earlier process.
    pub(crate) found_files: FoundFiles,
    pub(crate) names: NameCache<P>,
    pub(crate) file_ids: FileIds,
    pub(crate) settling: Settling<P>,
    pub(crate) pieces: ListingPieces<P>,
    pub(crate) callers: CallerTable,
    pub(crate) locks: Locks,
    pub(crate) delegations: Arc<Delegations>,
    /// Grows every few seconds: callers' rights are then looked up anew.
    pub(crate) rights_epoch: AtomicU64,
    /// Held by the caller that frees entries in the table.
    pub(crate) sweeping: TaskMutex<()>,
    names_durable: AtomicBool,
    pub(crate) listener: ListenerSlot,
    attributes_idle: KnobId,
}

/// An export in use.
pub(crate) struct ExportRoot<P: Platform> {
    pub(crate) path: String,
    pub(crate) root: Arc<Inode<P>>,
    pub(crate) tag: u16,
}

impl<P: Platform> Volume<P> {
    /// A volume of the tree's exports. Adds their devices; an error is the factory's.
    ///
    /// # Panics
    /// If the engine's settings do not have the volume's [`KNOBS`](crate::KNOBS).
    pub fn new(
        engine: Arc<Engine<P>>,
        tree: Arc<dyn Directory>,
        key: HandleKey,
        device_factory: DeviceFactory,
    ) -> Result<Arc<Self>, VolumeError> {
        let attributes_idle = VolumeKnob::AttributesIdleCentisecs.id(engine.settings());
        let now = engine.platform().now();
        let table = InodeTable::new(tree.descriptors_max());
        let devices = TreeDevices::new(device_factory);
        let file_ids = FileIds::around(tree.exports().first().map_or(0, |export| export.root.identity.fsid()));
        let roots = tree.exports().iter().map(|export| {
            let found = &export.root;
            let stat = file_ids.with_fileid(&found.identity, found.stat)?;
            let tag = key.export_tag(&found.identity);
            let handle = key.seal(&found.identity, tag);
            let unit = devices.time_unit(stat.device, tree.time_unit_ns(&found.node));
            let make = || {
                let node = found.node.clone();
                Inode::new(&engine, found.identity, handle, node, stat, now, &table.sums).with_times_in(unit)
            };
            let (root, _) = table.get_or_insert(&found.identity, make);
            Ok(ExportRoot { path: export.path.clone(), root, tag })
        });
        let exports = roots.collect::<Result<Vec<_>, VolumeError>>()?;
        if engine.write_verifier() == 0 {
            // The data of an earlier server may be lost.
            engine.set_write_verifier(engine.platform().random_u64());
        }
        let volume = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            found_files: FoundFiles::new(engine.found_files()),
            engine,
            confines_files: tree.is_confining_files(),
            search: Search::new(&tree, exports.iter().map(|export| (export.tag, Arc::clone(&export.root)))),
            tree,
            key,
            table,
            exports,
            devices,
            names: NameCache::new(),
            file_ids,
            settling: Settling::default(),
            pieces: ListingPieces::default(),
            callers: CallerTable::default(),
            locks: Locks::default(),
            delegations: Arc::default(),
            rights_epoch: AtomicU64::new(0),
            sweeping: TaskMutex::new(()),
            names_durable: AtomicBool::new(true),
            listener: ListenerSlot::default(),
            attributes_idle,
        });
        volume.end_offers_in_time();
        for export in &volume.exports {
            volume.devices.add_now(&volume.engine, export.root.device, &export.root.node)?;
        }
        Ok(volume)
    }

    /// The mountable paths: "/" for a single export, "/NAME" for each of several.
    pub fn exports(&self) -> Vec<String> {
        self.exports.iter().map(|export| export.path.clone()).collect()
    }

    /// The root of the export with a mountable path, if that is one.
    pub fn export_root(&self, path: &str) -> Option<&Arc<Inode<P>>> {
        self.exports.iter().find(|export| export.path == path).map(|export| &export.root)
    }

    /// The object's handle: the same over renames and restarts, until the object is gone.
    pub fn handle(&self, inode: &Inode<P>) -> FileHandle {
        inode.handle
    }

    /// A secret of this volume for hashes of numbers and bytes that clients choose: with the key, a client could choose
    /// many with one hash. It stays the same while the key of handles does.
    pub fn hash_key(&self) -> [u8; 16] {
        self.key.derived("hashes of what clients choose")
    }

    /// A name for this server that is no secret, and stays the same while the key of handles does.
    pub fn server_name(&self) -> [u8; 16] {
        self.key.derived("name of this server")
    }

    /// The write verifier, as [`Engine::write_verifier`] has it. It is drawn with the volume, unless the engine has one
    /// from an earlier process.
    pub fn write_verifier(&self) -> [u8; 8] {
        self.engine.write_verifier().to_be_bytes()
    }

    /// Continues the verifier of a server that had written everything before its end. Call it before anything is
    /// served. No other server may continue the same verifier.
    pub fn keep_write_verifier(&self, kept: [u8; 8]) {
        self.engine.set_write_verifier(u64::from_be_bytes(kept));
    }

    /// Files that may be open at a time. Each may take several of the host's descriptors.
    pub fn open_files_max(&self) -> usize {
        self.table.open_files_max()
    }

    /// The number of files that callers may open now, over any front end, in addition to the open ones.
    pub fn open_files_available(&self) -> usize {
        self.table.open_files_available()
    }

    /// The engine below.
    pub fn engine(&self) -> &Arc<Engine<P>> {
        &self.engine
    }

    /// Whether names and attributes are made durable before a call that changed them returns (the default). NFS demands
    /// it. Otherwise they are as durable as the host makes them by itself: a crash of the host may lose the last
    /// changes, but no synced bytes. [`Volume::sync_names`] makes them durable later.
    pub fn set_names_durable(&self, durable: bool) {
        self.names_durable.store(durable, Ordering::Relaxed);
    }

    /// Whether changes of names are answered once they are durable.
    pub fn are_names_durable(&self) -> bool {
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

    /// The engine's device for a device of the host; added on first use.
    pub(crate) async fn device(&self, key: DeviceKey, node: &Node) -> Result<DeviceId, VolumeError> {
        self.devices.get_or_add(&self.engine, &self.tree, key, node).await.unwrap_or(Err(STOPPED))
    }

    /// Runs `work` to its end in the world, for a front end whose connection ends before its calls.
    pub fn run_to_the_end(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.engine.platform().spawn(name, work);
    }

    /// Begins `work` and completes it, even if the caller is dropped.
    pub(crate) fn carried_through<T, F, W>(
        &self,
        name: &'static str,
        work: W,
    ) -> impl Future<Output = Option<T>> + Send + use<P, T, F, W>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
        W: FnOnce(Arc<Self>) -> F,
    {
        let begun = self.me.upgrade().map(|volume| task::to_the_end(&**self.engine.platform(), name, work(volume)));
        async move { begun?.await }
    }
}

/// The error of a call after the platform dropped its task: the world is ending.
pub(crate) const STOPPED: VolumeError = VolumeError::Io { errno: 125 };
