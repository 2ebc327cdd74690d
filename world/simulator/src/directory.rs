//! A tree of names in memory, for volumes in virtual time.
//!
//! Owns: a volume's calls on the tree; other tasks may run before and after each call.
//! Does not own: the objects (`objects`); which calls fail (`refusals`); file bytes and sizes, which a simulated disk
//! stores.
//! Invariants: the result of a call depends only on the calls before it and on the disk. An object lives while it has a
//! name or a node. Names outlive each kill; the tree counts the objects that a crash of the host might undo.

mod objects;
mod refusals;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use afflux_engine::Platform;
use afflux_volume::{
    AttributeChange, ChangedAttributes, Created, Directory, Export, Found, HostLocks, Identified, Identity, Linked,
    Named, New, Node, OpenedData, PathLimits, Removed, RenameHow, Renamed, Seek, Space, Stable, Stat, TreeResult,
    Unnamed, VolumeError, Window, XattrChange,
};
use bytes::Bytes;

use self::objects::{Body, MemoryNode, Object, ROOT, Shared};
use self::refusals::Refusals;
use crate::disk::{Disk, DiskFileId};
use crate::host_programs::{HostPrograms, OfServer};
use crate::world::World;

/// Options of a tree.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// Whether objects can be opened by their identities.
    pub by_identity: bool,
    /// Most descriptors that a volume may hold.
    pub descriptors_max: usize,
    /// Resolution of the clock that stamps objects' times, in nanoseconds.
    pub clock_tick_ns: u64,
    /// Whether files without a name can outlive a kill.
    pub keeps_unnamed: bool,
    /// The unit of objects' times, in nanoseconds.
    pub time_unit_ns: u32,
    /// Whether the tree tells that unit.
    pub tells_time_unit: bool,
    /// Whether names are stored in small letters, whatever a caller writes.
    pub folds_names: bool,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            by_identity: true,
            descriptors_max: 100_000,
            clock_tick_ns: 1,
            keeps_unnamed: false,
            time_unit_ns: 1,
            tells_time_unit: true,
            folds_names: false,
        }
    }
}

/// A tree of names over one disk, exported as "/".
pub struct MemoryTree {
    shared: Arc<Shared>,
    exports: Vec<Export>,
    options: TreeOptions,
    refusals: Arc<Refusals>,
    programs: OnceLock<Arc<HostPrograms>>,
}

fn number_of(node: &Node) -> u64 {
    let Some(node) = node.get::<MemoryNode>() else { panic!("a node of another tree") };
    node.number
}

/// The attributes of a new object, which belongs to the node's user unless root names another one.
fn owned(directory: &Node, attributes: AttributeChange) -> AttributeChange {
    match directory.user() {
        Some(user) if !user.is_root() => AttributeChange { uid: Some(user.uid), gid: Some(user.gid), ..attributes },
        _ => attributes,
    }
}

impl MemoryTree {
    /// An empty tree in `world`; its files' bytes are on `disk`.
    pub fn new(world: &World, disk: &Arc<Disk>, options: TreeOptions) -> Arc<Self> {
        let shared = Arc::new(Shared {
            platform: Arc::clone(world.platform()),
            disk: Arc::clone(disk),
            objects: Mutex::default(),
            clock_tick_ns: options.clock_tick_ns,
            time_unit_ns: options.time_unit_ns,
        });
        let now = shared.now();
        let body = Body::Directory { parent: ROOT, entries: BTreeMap::new() };
        let number = shared.lock().add(Object::new(0, 0o755, now, body));
        assert_eq!(number, ROOT);
        let root = shared.found(&mut shared.lock(), ROOT);
        Self::of(shared, root, options)
    }

    /// The same tree for another server. The server exports the named directories of the root. The call makes missing
    /// ones.
    ///
    /// # Panics
    /// When a name is taken by something else.
    pub fn exporting(&self, names: &[&str]) -> Arc<Self> {
        let export = |name: &&str| {
            let bytes = Bytes::copy_from_slice(name.as_bytes());
            drop(self.shared.create(ROOT, bytes, &New::Directory, &AttributeChange::default()));
            let mut objects = self.shared.lock();
            let Ok(number) = objects.entry(ROOT, name.as_bytes()) else { panic!("no {name}") };
            Export { path: format!("/{name}"), root: self.shared.found(&mut objects, number) }
        };
        let (exports, shared) = (names.iter().map(export).collect(), Arc::clone(&self.shared));
        Arc::new(Self {
            shared,
            exports,
            options: self.options.clone(),
            refusals: Arc::default(),
            programs: OnceLock::new(),
        })
    }

    fn of(shared: Arc<Shared>, root: Found, options: TreeOptions) -> Arc<Self> {
        let exports = vec![Export { path: "/".to_owned(), root }];
        Arc::new(Self { shared, exports, options, refusals: Arc::default(), programs: OnceLock::new() })
    }

    /// The same tree for another server, as a restarted server finds it.
    pub fn reopened(&self, options: TreeOptions) -> Arc<Self> {
        let root = self.shared.found(&mut self.shared.lock(), ROOT);
        Self::of(Arc::clone(&self.shared), root, options)
    }

    /// The same names in another world, after the server is killed: its disk has the files of this tree's
    /// ([`Disk::restore`]).
    pub fn after_kill(&self, world: &World, disk: &Arc<Disk>, options: TreeOptions) -> Arc<Self> {
        let shared = Arc::new(Shared {
            platform: Arc::clone(world.platform()),
            disk: Arc::clone(disk),
            objects: Mutex::new(self.shared.lock().left()),
            clock_tick_ns: options.clock_tick_ns,
            time_unit_ns: options.time_unit_ns,
        });
        let root = shared.found(&mut shared.lock(), ROOT);
        Self::of(shared, root, options)
    }

    /// The disk with its files' bytes.
    pub fn disk(&self) -> &Arc<Disk> {
        &self.shared.disk
    }

    /// The disk's file at a path of names, as a program on the host would find it.
    pub fn file_at(&self, path: &[&str]) -> Option<DiskFileId> {
        let mut objects = self.shared.lock();
        let mut at = ROOT;
        for name in path {
            at = objects.entry(at, name.as_bytes()).ok()?;
        }
        match objects.get(at).body {
            Body::Regular { file, .. } => Some(file),
            _ => None,
        }
    }

    /// The number of a name in the root.
    pub fn number_of(&self, name: &str) -> Option<u64> {
        self.shared.lock().entry(ROOT, name.as_bytes()).ok()
    }

    /// The programs of the tree's host, which see the volume's locks.
    pub fn programs(&self) -> &Arc<HostPrograms> {
        self.programs.get_or_init(Arc::default)
    }

    /// The number of objects, including the root.
    pub fn objects(&self) -> usize {
        self.shared.lock().by_number.len()
    }

    /// The number of objects whose names or attributes have changed since their last sync: a crash of the host may undo
    /// that.
    pub fn unsynced(&self) -> usize {
        self.shared.lock().unsynced.len()
    }

    /// The number of objects that would outlive a kill without a name.
    pub fn unnamed_count(&self) -> usize {
        self.shared.lock().by_number.values().filter(|object| object.outlives).count()
    }

    /// Has the calls with these numbers fail, and do nothing else. The next call has the number 0. A later range
    /// replaces this one.
    pub fn refuse(&self, calls: Range<u64>, error: VolumeError) {
        self.refusals.refuse(calls, error);
    }

    /// No call fails any more. Returns how many have been made since [`MemoryTree::refuse`].
    pub fn refuse_nothing(&self) -> u64 {
        self.refusals.refuse_nothing()
    }

    /// A name as the tree stores it.
    fn stored_name(&self, name: Bytes) -> Bytes {
        if self.options.folds_names { name.to_ascii_lowercase().into() } else { name }
    }

    fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Arc<Shared>) -> Result<T, VolumeError> + Send + 'static,
    ) -> TreeResult<'static, T> {
        let (shared, refusals) = (Arc::clone(&self.shared), Arc::clone(&self.refusals));
        TreeResult::by(async move {
            shared.platform.preemption_point().await;
            let result = refusals.next().and_then(|()| call(&shared));
            shared.platform.preemption_point().await;
            result
        })
    }

    /// A call that changes names or attributes of these objects, unless it fails.
    fn change<T: Send + 'static>(
        &self,
        changed: Vec<Node>,
        call: impl FnOnce(&Arc<Shared>) -> Result<T, VolumeError> + Send + 'static,
    ) -> TreeResult<'static, T> {
        self.call(move |shared| {
            let result = call(shared)?;
            shared.lock().unsynced.extend(changed.iter().map(number_of));
            Ok(result)
        })
    }

    /// A call about one object, which its node holds.
    fn with<T: Send + 'static>(
        &self,
        node: &Node,
        call: impl FnOnce(&Arc<Shared>, u64) -> Result<T, VolumeError> + Send + 'static,
    ) -> TreeResult<'static, T> {
        let node = node.clone();
        self.call(move |shared| call(shared, number_of(&node)))
    }
}

impl Directory for MemoryTree {
    fn exports(&self) -> &[Export] {
        &self.exports
    }

    fn descriptors_max(&self) -> usize {
        self.options.descriptors_max
    }

    fn may_open(&self, _identity: &Identity) -> bool {
        self.options.by_identity
    }

    fn time_unit_ns(&self, _node: &Node) -> u32 {
        if self.options.tells_time_unit { self.options.time_unit_ns } else { 1 }
    }

    fn may_fold_names(&self, _directory: &Node) -> bool {
        self.options.folds_names
    }

    fn open_identity(&self, identity: Identity) -> TreeResult<'_, Found> {
        self.call(move |shared| {
            let mut objects = shared.lock();
            let number = identity.bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let lives = objects.by_number.get(&number).is_some_and(|object| object.links > 0 || object.outlives);
            if !lives || shared.identity(&mut objects, number) != identity {
                return Err(VolumeError::Stale);
            }
            Ok(shared.found(&mut objects, number))
        })
    }

    fn lookup(&self, directory: &Node, name: Bytes) -> TreeResult<'_, Found> {
        let name = self.stored_name(name);
        self.with(directory, move |shared, directory| {
            let mut objects = shared.lock();
            let number = objects.entry(directory, &name)?;
            Ok(shared.found(&mut objects, number))
        })
    }

    fn name_all(&self, directory: &Node, names: Vec<Bytes>) -> TreeResult<'_, Vec<Option<Named>>> {
        self.with(directory, move |shared, directory| {
            let mut objects = shared.lock();
            let named = names.iter().map(|name| {
                let number = objects.entry(directory, name).ok()?;
                let identity = shared.identity(&mut objects, number);
                Some(Named { identity, stat: shared.stat(&mut objects, number) })
            });
            Ok(named.collect())
        })
    }

    fn parent(&self, directory: &Node) -> TreeResult<'_, Found> {
        self.with(directory, |shared, directory| {
            let mut objects = shared.lock();
            objects.entries(directory)?;
            match objects.get(directory).body {
                Body::Directory { parent, .. } => Ok(shared.found(&mut objects, parent)),
                _ => Err(VolumeError::NotDirectory),
            }
        })
    }

    fn list(&self, directory: &Node, mut window: Window) -> TreeResult<'_, (Window, Stat)> {
        self.with(directory, move |shared, directory| {
            let mut objects = shared.lock();
            objects.entries(directory)?.iter().for_each(|(name, number)| window.offer(name, *number));
            Ok((window, shared.stat(&mut objects, directory)))
        })
    }

    fn identities(&self, directory: &Node) -> TreeResult<'_, Vec<Identified>> {
        self.with(directory, |shared, directory| {
            let mut objects = shared.lock();
            let entries = objects.entries(directory)?.clone();
            let identified = entries.into_iter().map(|(name, number)| Identified {
                name,
                identity: shared.identity(&mut objects, number),
                directory: matches!(objects.get(number).body, Body::Directory { .. }),
            });
            Ok(identified.collect())
        })
    }

    fn stat(&self, node: &Node) -> TreeResult<'_, Stat> {
        self.with(node, |shared, number| Ok(shared.stat(&mut shared.lock(), number)))
    }

    fn stat_all(&self, nodes: Vec<Node>) -> TreeResult<'_, Vec<Option<Stat>>> {
        self.call(move |shared| {
            let mut objects = shared.lock();
            Ok(nodes.iter().map(|node| Some(shared.stat(&mut objects, number_of(node)))).collect())
        })
    }

    fn set(&self, node: &Node, change: AttributeChange, _durable: bool) -> TreeResult<'_, ChangedAttributes> {
        let number = number_of(node);
        self.change(vec![node.clone()], move |shared| {
            let mut objects = shared.lock();
            shared.set(&mut objects, number, &change);
            Ok(ChangedAttributes { stat: shared.stat(&mut objects, number), stable: Stable::not_begun() })
        })
    }

    fn access(&self, node: &Node) -> TreeResult<'_, u8> {
        self.with(node, |_, _| Ok(7))
    }

    fn read_link(&self, node: &Node) -> TreeResult<'_, Bytes> {
        self.with(node, |shared, number| match &shared.lock().get(number).body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(VolumeError::Invalid { what: "not a symbolic link" }),
        })
    }

    fn open_locks(&self, node: &Node) -> TreeResult<'_, Arc<dyn HostLocks>> {
        let programs = self.programs.get().cloned();
        self.with(node, move |_, file| {
            let programs = programs.ok_or(VolumeError::NotSupported)?;
            Ok(Arc::new(OfServer { programs, file }) as Arc<dyn HostLocks>)
        })
    }

    fn open_data(&self, node: &Node, _must_write: bool) -> TreeResult<'_, OpenedData> {
        self.with(node, |shared, number| {
            let mut objects = shared.lock();
            let stat = shared.stat(&mut objects, number);
            shared.data(&mut objects, number, stat).ok_or(VolumeError::IsDirectory)
        })
    }

    fn create(
        &self,
        directory: &Node,
        name: Bytes,
        new: New,
        attributes: AttributeChange,
        _durable: bool,
    ) -> TreeResult<'_, Created> {
        let name = self.stored_name(name);
        let (parent, directory) = (number_of(directory), directory.clone());
        self.change(vec![directory.clone()], move |shared| {
            let created = shared.create(parent, name, &new, &owned(&directory, attributes))?;
            directory.note().made(&created.found.identity);
            Ok(created)
        })
    }

    fn create_unnamed(&self, directory: &Node, attributes: AttributeChange) -> TreeResult<'_, Unnamed> {
        self.with(directory, move |shared, directory| shared.create_unnamed(directory, &attributes))
    }

    fn may_keep_unnamed(&self) -> bool {
        self.options.keeps_unnamed
    }

    fn keep_unnamed(&self, node: &Node) -> TreeResult<'_, ()> {
        self.with(node, |shared, number| {
            shared.lock().get(number).outlives = true;
            Ok(())
        })
    }

    fn let_go_unnamed(&self, node: &Node) -> TreeResult<'_, ()> {
        self.with(node, |shared, number| {
            shared.lock().get(number).outlives = false;
            Ok(())
        })
    }

    fn remove(&self, directory: &Node, name: Bytes, directory_wanted: bool, _durable: bool) -> TreeResult<'_, Removed> {
        let name = self.stored_name(name);
        let parent = number_of(directory);
        let note = directory.note().clone();
        self.change(vec![directory.clone()], move |shared| {
            shared.remove(parent, &name, directory_wanted).inspect(|_| note.done())
        })
    }

    fn rename(
        &self,
        from: (&Node, Bytes),
        to: (&Node, Bytes),
        how: RenameHow,
        _durable: bool,
    ) -> TreeResult<'_, Renamed> {
        let ((from, from_name), (to, to_name)) = (from, to);
        let (changed, note) = (vec![from.clone(), to.clone()], from.note().clone());
        let (from, from_name) = (number_of(from), self.stored_name(from_name));
        let (to, to_name) = (number_of(to), self.stored_name(to_name));
        self.change(changed, move |shared| shared.rename(from, from_name, to, to_name, how).inspect(|_| note.done()))
    }

    fn link(&self, node: &Node, directory: &Node, name: Bytes, _durable: bool) -> TreeResult<'_, Linked> {
        let (number, parent, name) = (number_of(node), number_of(directory), self.stored_name(name));
        let note = directory.note().clone();
        self.change(vec![node.clone(), directory.clone()], move |shared| {
            shared.link(number, parent, name).inspect(|_| note.done())
        })
    }

    fn xattr(&self, node: &Node, name: Bytes) -> TreeResult<'_, Bytes> {
        self.with(node, move |shared, number| {
            shared.lock().get(number).xattrs.get(&name).cloned().ok_or(VolumeError::NoAttribute)
        })
    }

    fn xattrs(&self, node: &Node) -> TreeResult<'_, Vec<Bytes>> {
        self.with(node, |shared, number| Ok(shared.lock().get(number).xattrs.keys().cloned().collect()))
    }

    fn change_xattr(
        &self,
        node: &Node,
        name: Bytes,
        change: XattrChange,
        _durable: bool,
    ) -> TreeResult<'_, ChangedAttributes> {
        let privileged = node.user().is_none_or(|user| user.is_root());
        let number = number_of(node);
        self.change(vec![node.clone()], move |shared| shared.change_xattr(number, name, change, privileged))
    }

    fn seek(&self, node: &Node, from: u64, wanted: Seek) -> TreeResult<'_, Option<u64>> {
        self.with(node, move |shared, number| match shared.lock().get(number).body {
            Body::Regular { file, .. } => Ok(shared.disk.seek(file, from, wanted == Seek::Hole)),
            _ => Err(VolumeError::IsDirectory),
        })
    }

    fn reserve(&self, node: &Node, range: Range<u64>) -> TreeResult<'_, ()> {
        self.with(node, move |shared, number| match shared.lock().get(number).body {
            Body::Regular { file, .. } if shared.disk.reserve(file, range) => Ok(()),
            Body::Regular { .. } => Err(VolumeError::NoSpace),
            _ => Err(VolumeError::IsDirectory),
        })
    }

    fn share_blocks(&self, source: &Node, from: u64, target: &Node, to: Range<u64>) -> TreeResult<'_, ()> {
        let source = number_of(source);
        self.with(target, move |shared, target| {
            let disk_file = |number| match shared.lock().get(number).body {
                Body::Regular { file, .. } => Ok(file),
                _ => Err(VolumeError::IsDirectory),
            };
            let (source, target) = (disk_file(source)?, disk_file(target)?);
            if shared.disk.copy(source, from, target, to) { Ok(()) } else { Err(VolumeError::NoSpace) }
        })
    }

    fn sync(&self, node: &Node) -> TreeResult<'_, ()> {
        self.with(node, |shared, number| {
            shared.lock().unsynced.remove(&number);
            Ok(())
        })
    }

    fn sync_everything(&self) -> TreeResult<'_, ()> {
        self.call(|shared| {
            shared.lock().unsynced.clear();
            Ok(())
        })
    }

    fn space(&self, node: &Node) -> TreeResult<'_, Space> {
        self.with(node, |shared, _| {
            let free = afflux_engine::Device::free_bytes_hint(&*shared.disk);
            Ok(Space {
                total_bytes: u64::MAX,
                free_bytes: free,
                available_bytes: free,
                total_files: u64::MAX,
                free_files: u64::MAX,
                available_files: u64::MAX,
            })
        })
    }

    fn path_limits(&self, node: &Node) -> TreeResult<'_, PathLimits> {
        self.with(node, |_, _| {
            Ok(PathLimits {
                links_max: u32::MAX,
                name_max: afflux_volume::NAME_BYTES_MAX as u32,
                no_trunc: true,
                case_insensitive: false,
                case_preserving: true,
            })
        })
    }
}
