//! The volume: what ties engine, tree, inodes and handles together.
//!
//! Owns: the parts, their construction, the operations that are about one object's attributes.
//! Does not own: finding objects (`resolve`), names (`entries`), bytes (`data`), durability (`sync`),
//! times of written files (`settle`), listings (`list`).
//! Invariants: lock order: an inode's `changing` (of two directories: the smaller identity first),
//! then `moving`, `opening` or `durable`, then short locks (`docs/concurrency.md`). Only task locks are
//! held over an await.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use engine::settings::Knob;
use engine::{DeviceId, Engine, FILE_BYTES_MAX, Nanos, Platform};
use futures_util::lock::Mutex as TaskMutex;

use crate::attributes::{
    AttributeChange, Attributes, Consistency, Kind, Outcome, SetTime, Timestamp, without_privileges,
};
use crate::directory::{DeviceFactory, DeviceKey, Directory, Node, PathLimits, Space, Stat};
use crate::error::VolumeError;
use crate::handle::{FileHandle, HandleKey};
use crate::inode::{Inode, Times};
use crate::list::Kept;
use crate::location::Locations;
use crate::name_cache::NameCache;
use crate::search::{Moves, Searches, Walk};
use crate::settle::Settling;
use crate::table::Table;
use crate::task;

/// Most objects whose place is remembered after they were dropped, where a tree cannot open
/// identities.
const LOCATIONS_MAX: usize = 262_144;

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
    device_factory: DeviceFactory,
    devices: Mutex<Vec<(DeviceKey, DeviceId)>>,
    pub(crate) locations: Mutex<Locations>,
    pub(crate) walk: TaskMutex<Walk<P>>,
    pub(crate) searches: Mutex<Searches>,
    /// Held while a name becomes another, where the tree cannot open identities: for a walk.
    pub(crate) moving: TaskMutex<()>,
    /// Counts what makes a walk that has ended, or is being made, incomplete.
    pub(crate) moves: Moves,
    pub(crate) names: NameCache<P>,
    pub(crate) settling: Settling<P>,
    pub(crate) kept: Mutex<Kept<P>>,
    /// Held by whoever makes room in the table.
    pub(crate) sweeping: TaskMutex<()>,
    /// Drawn at start: a new server may have lost what the old one had not written.
    verifier: u64,
    names_durable: AtomicBool,
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
    pub fn new(
        engine: Arc<Engine<P>>,
        tree: Arc<dyn Directory>,
        key: HandleKey,
        device_factory: DeviceFactory,
    ) -> Result<Arc<Self>, VolumeError> {
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
            verifier: engine.platform().random_u64(),
            engine,
            confines_files: tree.confines_files(),
            tree,
            key,
            table,
            exports,
            device_factory,
            devices: Mutex::new(Vec::new()),
            locations: Mutex::new(Locations::new(LOCATIONS_MAX)),
            walk: TaskMutex::new(Walk::default()),
            searches: Mutex::default(),
            moving: TaskMutex::new(()),
            moves: Moves::default(),
            names: NameCache::new(),
            settling: Settling::default(),
            kept: Mutex::new(Kept::default()),
            sweeping: TaskMutex::new(()),
            names_durable: AtomicBool::new(true),
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

    /// Sixty-four bits that change exactly when acknowledged data that no sync has covered may have
    /// been lost: drawn when the server starts, and mixed anew when the engine had to give data up.
    pub fn write_verifier(&self) -> [u8; 8] {
        (self.verifier ^ self.engine.lost_epoch().wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes()
    }

    /// Most request and reply bytes in progress on one connection: the knob `nfs_inflight_bytes_max`.
    pub fn inflight_bytes_max(&self) -> u64 {
        self.engine.settings().get(Knob::NfsInflightBytes)
    }

    /// The engine below.
    pub fn engine(&self) -> &Arc<Engine<P>> {
        &self.engine
    }

    /// Whether names and attributes are made durable before a call that changed them returns (they
    /// are, unless this is turned off). NFS demands it. Without it they are as durable as the host
    /// makes them by itself: after a crash of the host the last changes may be missing, bytes that
    /// were synced are not.
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
        self.engine.settings().get(Knob::AttributesIdleCentisecs).saturating_mul(10_000_000)
    }

    /// The engine's device for a device of the host; made when it is met first.
    pub(crate) fn device(&self, key: DeviceKey, node: &Node) -> Result<DeviceId, VolumeError> {
        let mut devices = lock(&self.devices);
        if let Some((_, id)) = devices.iter().find(|(known, _)| *known == key) {
            return Ok(*id);
        }
        let new = (self.device_factory)(key, node)?;
        let id = self.engine.add_device(&new.name, new.device);
        devices.push((key, id));
        Ok(id)
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

    /// The attributes, if they are known without asking the host.
    pub fn try_attributes(&self, inode: &Arc<Inode<P>>) -> Option<Attributes> {
        inode.used_now();
        inode.fresh_attributes(self.now(), self.idle_ns())
    }

    /// The attributes. The host is asked where it was not for the time of the knob
    /// `attributes_idle_centisecs`, or not since the last write came to be on it, and nothing of the object
    /// is unwritten.
    pub async fn attributes(&self, inode: &Arc<Inode<P>>) -> Result<Attributes, VolumeError> {
        match self.try_attributes(inode) {
            Some(attributes) => Ok(attributes),
            None => {
                if !(inode.awaits_settling() && self.settle(inode).await) || inode.is_removed() {
                    self.check(inode).await?;
                }
                Ok(inode.attributes())
            }
        }
    }

    /// Changes attributes. What was changed is durable on return, but for bytes that were written
    /// and not synced. With a `guard`, nothing is changed unless it is the change time
    /// ([`VolumeError::NotSynchronised`]). A new size acts first, then owner, mode and times; an error
    /// may leave the earlier ones changed.
    pub async fn set_attributes(
        &self,
        inode: &Arc<Inode<P>>,
        change: AttributeChange,
        guard: Option<Timestamp>,
    ) -> Outcome<()> {
        let target = Arc::clone(inode);
        let work = |volume: Arc<Self>| async move { volume.set_attributes_now(&target, change, guard).await };
        self.carried_through("set attributes", work).await.unwrap_or_else(|| Outcome::failed(STOPPED))
    }

    /// As [`Volume::set_attributes`]; must not be dropped half-way.
    pub(crate) async fn set_attributes_now(
        &self,
        inode: &Arc<Inode<P>>,
        change: AttributeChange,
        guard: Option<Timestamp>,
    ) -> Outcome<()> {
        if let Err(error) = self.attributes(inode).await {
            return Outcome::failed(error);
        }
        let changing = inode.changing.lock().await;
        let mut changed = None;
        let result = match guard {
            Some(expected) if inode.change_time() != expected => Err(VolumeError::NotSynchronised),
            _ => self.apply(inode, change, &mut changed).await,
        };
        // Others may have written since: what is told is the moment of the change.
        let consistency = changed.unwrap_or_else(|| inode.unchanged());
        drop(changing);
        let result = match result {
            Ok(()) if changed.is_some() => self.make_durable(inode).await,
            result => result,
        };
        Outcome { result, consistency }
    }

    /// Applies a change with `changing` held. `changed`: the object before and after what was changed of
    /// it, also where not all could be.
    async fn apply(
        &self,
        inode: &Arc<Inode<P>>,
        change: AttributeChange,
        changed: &mut Option<Consistency>,
    ) -> Result<(), VolumeError> {
        change.check()?;
        if let Some(size) = change.size {
            *changed = Some(self.set_size(inode, size).await?);
        }
        let rest = AttributeChange { size: None, ..change };
        if rest == AttributeChange::default() {
            return Ok(());
        }
        self.write_before_privileges(inode, &rest).await;
        let look = inode.look();
        inode.changes.fetch_add(1, Ordering::Relaxed);
        let told = inode.change_time();
        let stat = self.set_past(inode, rest, |stat| stat.ctime > told).await?;
        let times = Times::Set { atime: rest.atime != SetTime::Keep, mtime: rest.mtime != SetTime::Keep };
        let set = inode.changed(stat, self.now(), times, Some(&look));
        self.settle_later(inode);
        *changed = Some(changed.map_or(set, |before| before.then(set)));
        Ok(())
    }

    /// A host may take bits that give rights from a file whose bytes we write; so what was written before
    /// they are set goes there first. Where that fails, the host has the last word.
    async fn write_before_privileges(&self, inode: &Arc<Inode<P>>, change: &AttributeChange) {
        let gives = change.mode.is_some_and(|mode| without_privileges(mode) != mode);
        if let Some(file) = inode.writable_file().filter(|file| gives && !file.is_clean()) {
            let _ = self.engine.sync(file, 0..u64::MAX).await;
        }
    }

    /// Sets attributes on the host, once more if the times that it gave are not `past` those that clients
    /// were told. Hosts give times by a clock that ticks some hundred times a second, but many a
    /// finer one to what was looked at since its last change.
    pub(crate) async fn set_past(
        &self,
        inode: &Arc<Inode<P>>,
        change: AttributeChange,
        past: impl Fn(&Stat) -> bool,
    ) -> Result<Stat, VolumeError> {
        let stat = self.tree.set(&inode.node, change).await?;
        if past(&stat) {
            return Ok(stat);
        }
        Ok(self.tree.set(&inode.node, change).await.unwrap_or(stat))
    }

    /// As [`Volume::access`], if that is known without asking the host.
    pub fn try_access(&self, inode: &Arc<Inode<P>>) -> Option<(u8, Attributes)> {
        let attributes = self.try_attributes(inode)?;
        let rights = inode.state().access?;
        Some((rights, attributes))
    }

    /// Which of read 1, write 2, execute or search 4 the serving user may do.
    pub async fn access(&self, inode: &Arc<Inode<P>>) -> Result<(u8, Attributes), VolumeError> {
        let attributes = self.attributes(inode).await?;
        let known = inode.state().access;
        let rights = match known {
            Some(rights) => rights,
            None => {
                let changes = inode.changes.load(Ordering::Relaxed);
                let rights = self.tree.access(&inode.node).await?;
                let mut state = inode.state();
                if inode.changes.load(Ordering::Relaxed) == changes {
                    state.access = Some(rights);
                }
                rights
            }
        };
        Ok((rights, attributes))
    }

    /// What a symbolic link says, as it was given; [`VolumeError::Invalid`] for anything else.
    pub async fn read_link(&self, inode: &Arc<Inode<P>>) -> Result<(Bytes, Attributes), VolumeError> {
        if inode.kind() != Kind::Symlink {
            return Err(VolumeError::Invalid { what: "not a symbolic link" });
        }
        let target = self.tree.read_link(&inode.node).await?;
        Ok((target, self.attributes(inode).await?))
    }

    /// The room on the object's file system. Unwritten data is not taken off.
    pub async fn space(&self, inode: &Arc<Inode<P>>) -> Result<(Space, Attributes), VolumeError> {
        let space = self.tree.space(&inode.node).await?;
        Ok((space, self.attributes(inode).await?))
    }

    /// The largest size that a file beside this object can have: its device is met for it.
    pub fn file_bytes_max(&self, inode: &Arc<Inode<P>>) -> u64 {
        let device = self.device(inode.device, &inode.node).ok();
        device.and_then(|id| self.engine.file_bytes_max(id)).unwrap_or(FILE_BYTES_MAX)
    }

    /// What names the object's file system takes.
    pub async fn path_limits(&self, inode: &Arc<Inode<P>>) -> Result<(PathLimits, Attributes), VolumeError> {
        let limits = self.tree.path_limits(&inode.node).await?;
        Ok((limits, self.attributes(inode).await?))
    }
}

/// What a call gets whose task the platform dropped: the world is ending.
pub(crate) const STOPPED: VolumeError = VolumeError::Io { errno: 125 };

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
