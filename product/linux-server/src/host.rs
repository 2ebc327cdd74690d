//! Host directories as a volume's tree: every call relative to an open descriptor and one name.
//!
//! Owns: the exported directories' descriptors, the file systems found below them, the dispatch of each call to the
//! worker pool of its device.
//! Does not own: cached state of objects (the volume), file bytes (`HostFile` and its device).
//! Invariants: a name is one entry of one open directory, resolved by openat2 beneath it without following any link. A
//! directory is used only while it is found below an export. So no path, symbolic link, ".." or rename reaches anything
//! outside. Every call that can block runs on the pool of its device, or on a thread that may block
//! (`afflux_linux_device::in_place`): a file system that hangs stops calls about itself alone.

mod acting;
mod calls;
mod climb;
mod clones;
mod containment;
mod entries;
mod error;
mod exported_directories;
mod file_system_facts;
mod filesystems;
mod identity;
mod limits;
mod listing;
mod locks;
mod marks;
mod mounts;
mod node;
mod rescue;
mod stable;
mod start;
mod state_files;
mod stored_unnamed;
mod undo;
mod unnamed_slots;
mod xattrs;

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use afflux_volume::{
    AttributeChange, ChangedAttributes, Created, DeviceFactory, Directory, Export, Found, HostLocks, Identified,
    Identity, Linked, MakeDevice, Named, New, NewDevice, Node, OpenedData, PathLimits, Removed, RenameHow, Renamed,
    Seek, Space, Stable, Stat, TreeResult, Unnamed, VolumeError, Window, XattrChange,
};
use bytes::Bytes;
use rustix::fs::{fsync, syncfs};

use self::acting::Acting;
use self::calls::error_of;
use self::containment::Roots;
pub use self::error::HostError;
pub use self::exported_directories::{ExportedDirectory, OnFileSystem};
use self::filesystems::FileSystems;
pub use self::limits::connections_max;
use self::marks::HostMarks;
pub use self::node::host_path;
use self::node::{HostNode, host_node};
pub use self::rescue::RescueFile;
pub use self::start::HostOptions;
pub use self::state_files::{KeyOrigin, handle_key};
pub use self::stored_unnamed::UNNAMED_FILES_MAX;
use self::unnamed_slots::UnnamedFiles;
pub use self::unnamed_slots::UnstoredFile;
use crate::device_pools::{DevicePools, HostCall, PooledCalls};
use crate::host::stable::SyncScope;
pub use crate::host::state_files::open_location_file;
use afflux_linux_device::pool::{Lane, PoolTask, PoolWork};
use afflux_linux_device::{Caching, HostDevice, LinuxPlatform, SpareDescriptors, WorkerPool};

/// The exported directories of the host.
pub struct HostTree {
    core: Arc<Core>,
    directories: Vec<PathBuf>,
    exports: Vec<Export>,
    descriptors_max: usize,
    notes: Vec<String>,
    sets: PooledCalls<SetAttributesCall, Result<ChangedAttributes, VolumeError>>,
    /// Marks by which other servers see that the directories are served.
    _marks: HostMarks,
}

/// State shared by the calls on the pool's threads.
struct Core {
    /// The pools that run calls, by the calls' device.
    pools: DevicePools,
    /// /proc/self/fd: through it, an object known only by a descriptor is reopened.
    descriptors: Arc<OwnedFd>,
    /// The host has openat2.
    beneath: bool,
    /// This process may call open_by_handle_at.
    by_handle: bool,
    /// The root of each export, where climbing ends.
    roots: Roots,
    /// Files that were moved out of the exports are refused, too.
    subtree_check: bool,
    /// The process's mode mask for new objects, read at the first creation.
    umask: OnceLock<u32>,
    /// Open files without a name that the service manager stores, if it does.
    unnamed: OnceLock<Arc<UnnamedFiles>>,
    file_systems: FileSystems,
    /// Descriptors of files' bytes that can be closed and opened anew.
    spare: Arc<SpareDescriptors>,
    /// Number of system calls made to climb up.
    #[cfg(test)]
    climbed: std::sync::atomic::AtomicU64,
}

impl HostTree {
    /// Limitations of the host that a user may want to know, found when the tree was opened, and their consequences.
    /// Empty if there are none.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The absolute paths of the exports, free of symbolic links.
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// The threads of the calls about an export's file system. None if there is no export with this number.
    pub fn pool(&self, export: usize) -> Option<WorkerPool> {
        self.exports.get(export).map(|export| self.core.pools.of(export.root.stat.device))
    }

    /// As [`HostTree::with`], for a call on behalf of the node's user.
    fn acting<T: Send + 'static>(
        &self,
        node: &Node,
        call: impl FnOnce(&Arc<Core>, &HostNode, &Acting) -> Result<T, VolumeError> + Send + 'static,
    ) -> TreeResult<'static, T> {
        let acting = Acting::on(node);
        self.with(node, move |core, node| call(core, node, &acting))
    }

    /// Runs `call` with the node on a thread of the node's device.
    fn with<T: Send + 'static>(
        &self,
        node: &Node,
        call: impl FnOnce(&Arc<Core>, &HostNode) -> Result<T, VolumeError> + Send + 'static,
    ) -> TreeResult<'static, T> {
        let (core, lane, node) = (Arc::clone(&self.core), lane_of(node), host_node(node));
        let pool = node.pool().clone();
        HostCall::run(&pool, lane, move || (call(&core, &node), None)).into()
    }

    /// As [`HostTree::acting`], for a change of the node and of `also`, if that is another node. If the change must be
    /// `durable` and one sync suffices, the thread makes this sync next.
    fn change<T: Send + 'static>(
        &self,
        node: &Node,
        also: Option<&Node>,
        durable: bool,
        change: impl FnOnce(&Arc<Core>, &HostNode, &Acting) -> Result<T, VolumeError> + Send + 'static,
        stable: impl FnOnce(&mut T) -> &mut Stable + Send + 'static,
    ) -> TreeResult<'static, T> {
        let (acting, lane) = (Acting::on(node), lane_of(node));
        let (core, node, also) = (Arc::clone(&self.core), host_node(node), also.map(host_node));
        let pool = node.pool().clone();
        let work = move || {
            let mut changed = change(&core, &node, &acting);
            let mut more = None;
            if let (Ok(changed), true) = (&mut changed, durable) {
                more = core.begin_sync(&node, also, stable(changed));
            }
            (changed, more)
        };
        HostCall::run(&pool, lane, work).into()
    }
}

impl Core {
    /// Begins the sync of a change to these nodes, if one call can make it durable; a group sync covers other changes,
    /// too. Returns the thread's work for the sync, to be done after the change was reported.
    fn begin_sync(
        self: &Arc<Self>,
        node: &Arc<HostNode>,
        also: Option<Arc<HostNode>>,
        stable: &mut Stable,
    ) -> Option<PoolTask> {
        let core = Arc::clone(self);
        let also = also.filter(|also| !Arc::ptr_eq(also, node));
        if let Some(shared) = self.file_systems.shared_sync(node.device()) {
            let (round, leads) = shared.group.ask(also.into_iter().chain([Arc::clone(node)]));
            *stable = Stable::begun(TreeResult::by(Arc::clone(&round).ended()));
            let lead = move || shared.group.lead(|changed| core.sync_all(shared.covers, &shared.directory, changed));
            return leads.then(|| PoolTask::posted(lead));
        }
        if also.is_some() {
            // Two syncs, in an order that the volume knows.
            return None;
        }
        let (round, leads) = node.syncs().ask([()]);
        *stable = Stable::begun(TreeResult::by(Arc::clone(&round).ended()));
        let node = Arc::clone(node);
        let lead = move || node.syncs().lead(|_| core.sync(&node));
        leads.then(|| PoolTask::posted(lead))
    }
}

/// A change of attributes, on its thread. COMMIT also makes one, so the memory of these calls is pooled.
struct SetAttributesCall {
    core: Arc<Core>,
    node: Arc<HostNode>,
    acting: Acting,
    change: AttributeChange,
    durable: bool,
}

impl SetAttributesCall {
    fn set(&self) -> Result<ChangedAttributes, VolumeError> {
        self.core.confined(&self.node)?;
        self.core.apply(&self.node, &self.acting, &self.change)?;
        Ok(ChangedAttributes { stat: self.core.stat(&self.node)?, stable: Stable::not_begun() })
    }
}

impl PoolWork<Result<ChangedAttributes, VolumeError>> for SetAttributesCall {
    fn carry_out(self) -> (Result<ChangedAttributes, VolumeError>, Option<PoolTask>) {
        let mut changed = self.set();
        let more = match &mut changed {
            Ok(changed) if self.durable => self.core.begin_sync(&self.node, None, &mut changed.stable),
            _ => None,
        };
        (changed, more)
    }
}

/// The lane of the device's pool that makes calls about a node.
fn lane_of(node: &Node) -> Lane {
    Lane { object: Some(host_node(node).fileid()), user: node.user().map(|user| user.uid) }
}

/// The device of the file system of a [`HostTree`]'s object. May block shortly.
///
/// # Panics
/// If the node belongs to another tree.
pub fn host_device(platform: &LinuxPlatform, node: &Node, caching: Caching) -> Result<Arc<HostDevice>, VolumeError> {
    let node = host_node(node);
    let directory = node.fd().try_clone_to_owned().map_err(|error| calls::io_error(&error))?;
    HostDevice::beside_names(platform, directory, caching, Some(node.pool())).map_err(|error| calls::io_error(&error))
}

/// Makes the engine's devices for the file systems of a [`HostTree`].
pub fn host_devices(platform: &LinuxPlatform, caching: Caching) -> DeviceFactory {
    let platform = platform.clone();
    Box::new(move |key, node| {
        let device = host_device(&platform, node, caching)?;
        Ok(NewDevice::unknown(calls::device_name(key), device))
    })
}

impl Directory for HostTree {
    fn exports(&self) -> &[Export] {
        &self.exports
    }

    fn descriptors_max(&self) -> usize {
        self.descriptors_max
    }

    fn may_open(&self, identity: &Identity) -> bool {
        self.core.may_open(identity)
    }

    fn is_confining_files(&self) -> bool {
        self.core.subtree_check
    }

    fn time_unit_ns(&self, node: &Node) -> u32 {
        self.core.file_systems.traits(host_node(node).device()).map_or(1, |traits| traits.time_unit_ns)
    }

    fn may_fold_names(&self, directory: &Node) -> bool {
        host_node(directory).may_fold_names()
    }

    fn open_identity(&self, identity: Identity) -> TreeResult<'_, Found> {
        TreeResult::by(Arc::clone(&self.core).open_identity(identity))
    }

    fn lookup(&self, directory: &Node, name: Bytes) -> TreeResult<'_, Found> {
        self.with(directory, move |core, directory| core.lookup(directory, &name))
    }

    fn name_all(&self, directory: &Node, names: Vec<Bytes>) -> TreeResult<'_, Vec<Option<Named>>> {
        self.with(directory, move |core, directory| core.name_all(directory, &names))
    }

    fn parent(&self, directory: &Node) -> TreeResult<'_, Found> {
        self.with(directory, |core, directory| core.parent(directory))
    }

    fn list(&self, directory: &Node, window: Window) -> TreeResult<'_, (Window, Stat)> {
        self.with(directory, move |core, directory| core.list(directory, window))
    }

    fn identities(&self, directory: &Node) -> TreeResult<'_, Vec<Identified>> {
        self.with(directory, |core, directory| {
            core.contained(directory)?;
            core.identities(directory)
        })
    }

    fn stat(&self, node: &Node) -> TreeResult<'_, Stat> {
        self.with(node, |core, node| core.stat(node))
    }

    fn stat_all(&self, nodes: Vec<Node>) -> TreeResult<'_, Vec<Option<Stat>>> {
        let Some(first) = nodes.first().cloned() else { return TreeResult::now(Ok(Vec::new())) };
        // All these nodes are on one device.
        self.with(&first, move |core, _| Ok(nodes.iter().map(|node| core.stat(&host_node(node)).ok()).collect()))
    }

    fn set(&self, node: &Node, change: AttributeChange, durable: bool) -> TreeResult<'_, ChangedAttributes> {
        let (core, acting, lane) = (Arc::clone(&self.core), Acting::on(node), lane_of(node));
        let node = host_node(node);
        let pool = node.pool().clone();
        HostCall::run_pooled(&self.sets, &pool, lane, SetAttributesCall { core, node, acting, change, durable }).into()
    }

    fn access(&self, node: &Node) -> TreeResult<'_, u8> {
        self.acting(node, |core, node, acting| core.checked_answer(node, core.access(node, acting)))
    }

    fn read_link(&self, node: &Node) -> TreeResult<'_, Bytes> {
        self.with(node, |core, node| core.checked_answer(node, calls::read_link(node.fd())))
    }

    fn open_data(&self, node: &Node, must_write: bool) -> TreeResult<'_, OpenedData> {
        self.acting(node, move |core, node, acting| core.checked_answer(node, core.open_data(node, acting, must_write)))
    }

    fn open_locks(&self, node: &Node) -> TreeResult<'_, Arc<dyn HostLocks>> {
        self.with(node, |core, node| core.open_locks(node))
    }

    fn stop_writing(&self, node: &Node) -> TreeResult<'_, ()> {
        self.with(node, |core, node| core.stop_writing(node))
    }

    fn create(
        &self,
        directory: &Node,
        name: Bytes,
        new: New,
        attributes: AttributeChange,
        durable: bool,
    ) -> TreeResult<'_, Created> {
        let create = move |core: &Arc<Core>, directory: &HostNode, acting: &Acting| {
            core.create(directory, acting, &name, &new, &attributes)
        };
        self.change(directory, None, durable, create, |created| &mut created.stable)
    }

    fn create_unnamed(&self, directory: &Node, attributes: AttributeChange) -> TreeResult<'_, Unnamed> {
        self.acting(directory, move |core, directory, acting| core.create_unnamed(directory, acting, &attributes))
    }

    fn may_keep_unnamed(&self) -> bool {
        self.core.unnamed.get().is_some()
    }

    fn keep_unnamed(&self, node: &Node) -> TreeResult<'_, ()> {
        if host_node(node).is_stored() {
            return TreeResult::now(Ok(()));
        }
        self.with(node, |core, node| core.keep_unnamed(node))
    }

    fn let_go_unnamed(&self, node: &Node) -> TreeResult<'_, ()> {
        self.with(node, |_, node| {
            // The lock is held until the manager is notified.
            let mut stored = node.stored();
            *stored = None;
            Ok(())
        })
    }

    fn remove(&self, directory: &Node, name: Bytes, directory_wanted: bool, durable: bool) -> TreeResult<'_, Removed> {
        let remove = move |core: &Arc<Core>, directory: &HostNode, acting: &Acting| {
            core.remove(directory, acting, &name, directory_wanted)
        };
        self.change(directory, None, durable, remove, |removed| &mut removed.stable)
    }

    fn rename(
        &self,
        from: (&Node, Bytes),
        to: (&Node, Bytes),
        how: RenameHow,
        durable: bool,
    ) -> TreeResult<'_, Renamed> {
        let (target, from_name, to_name) = (host_node(to.0), from.1, to.1);
        let rename = move |core: &Arc<Core>, from: &HostNode, acting: &Acting| {
            core.rename(acting, from, &from_name, &target, &to_name, how)
        };
        self.change(from.0, Some(to.0), durable, rename, |renamed| &mut renamed.stable)
    }

    fn link(&self, node: &Node, directory: &Node, name: Bytes, durable: bool) -> TreeResult<'_, Linked> {
        let node = host_node(node);
        let link =
            move |core: &Arc<Core>, directory: &HostNode, acting: &Acting| core.link(acting, &node, directory, &name);
        self.change(directory, None, durable, link, |linked| &mut linked.stable)
    }

    fn xattr(&self, node: &Node, name: Bytes) -> TreeResult<'_, Bytes> {
        self.acting(node, move |core, node, acting| core.checked_answer(node, core.xattr(node, acting, &name)))
    }

    fn xattrs(&self, node: &Node) -> TreeResult<'_, Vec<Bytes>> {
        self.acting(node, |core, node, acting| core.checked_answer(node, core.xattrs(node, acting)))
    }

    fn change_xattr(
        &self,
        node: &Node,
        name: Bytes,
        change: XattrChange,
        durable: bool,
    ) -> TreeResult<'_, ChangedAttributes> {
        let set = move |core: &Arc<Core>, node: &HostNode, acting: &Acting| {
            core.confined(node)?;
            core.change_xattr(node, acting, &name, &change)?;
            Ok(ChangedAttributes { stat: core.stat(node)?, stable: Stable::not_begun() })
        };
        self.change(node, None, durable, set, |changed| &mut changed.stable)
    }

    fn seek(&self, node: &Node, from: u64, wanted: Seek) -> TreeResult<'_, Option<u64>> {
        self.with(node, move |core, node| core.checked_answer(node, core.seek(node, from, wanted)))
    }

    fn reserve(&self, node: &Node, range: Range<u64>) -> TreeResult<'_, ()> {
        self.with(node, move |core, node| core.checked_answer(node, core.reserve(node, range)))
    }

    fn share_blocks(&self, source: &Node, from: u64, target: &Node, to: Range<u64>) -> TreeResult<'_, ()> {
        let source = host_node(source);
        self.with(target, move |core, target| {
            core.confined(&source)?;
            core.checked_answer(target, core.share_blocks(&source, from, target, to))
        })
    }

    fn sync(&self, node: &Node) -> TreeResult<'_, ()> {
        self.with(node, |core, node| core.checked_answer(node, core.sync(node)))
    }

    fn sync_everything(&self) -> TreeResult<'_, ()> {
        TreeResult::by(async {
            for (device, mount) in self.core.file_systems.all_mounts() {
                let shared = self.core.file_systems.shared_sync(device);
                let everything = shared.is_some_and(|shared| shared.covers == SyncScope::Everything);
                let sync = move || if everything { fsync(&mount) } else { syncfs(&mount) };
                self.core.pools.of(device).run(sync).await.map_err(error_of)?;
            }
            Ok(())
        })
    }

    fn make_device(&self, node: &Node, make: MakeDevice) -> TreeResult<'static, NewDevice> {
        self.with(node, |_, _| make())
    }

    fn space(&self, node: &Node) -> TreeResult<'_, Space> {
        self.with(node, |core, node| core.checked_answer(node, calls::space(node.fd())))
    }

    fn path_limits(&self, node: &Node) -> TreeResult<'_, PathLimits> {
        self.with(node, |core, node| {
            let traits = core.file_systems.traits(node.device());
            let is_folding = || traits.is_some_and(|traits| traits.is_folding_case(node.fd()));
            core.checked_answer(node, calls::path_limits(node.fd(), is_folding))
        })
    }
}

#[cfg(test)]
mod tests;
