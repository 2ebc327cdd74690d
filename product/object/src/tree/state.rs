//! The open tree, and the part of the data core that it needs.
//!
//! Owns: its parts, its opening, the order of batches, numbers of new objects; the seam to the data core, and its
//! implementation by a volume in an object store.
//! Does not own: the calls; bytes, segments, the writers' fence.
//! Invariants: batches are built and given to the records under the order lock, which no call holds over an await.

use std::future::{Future, ready};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_engine::{Backing, WallNanos};
use afflux_volume::{DeviceKey, Export, Found, Identity, Joint, Node, Seek, Stat, Timestamp, VolumeError};

use crate::error::ObjectVolumeError;
use crate::file::BodyInMemory;
use crate::format::acl::Acls;
use crate::format::records::{Body, VolumeHeader, WITH_ACLS};
use crate::format::tree::{Content, InodeRecord, ROOT, ino};
use crate::open::ObjectVolume;
use crate::seams::{Clock, Durability, Key, Objects, Record, RecordChange, RecordDatabase, RecordsError, Sequence};
use crate::tree::cache::SlotCache;
use crate::tree::held_nodes::{HeldNode, HeldNodes};

/// The host's type of the bytes in identities.
const IDENTITY_FORM: u8 = 1;

/// Options of an open tree.
#[derive(Clone, Debug)]
pub struct ObjectTreeOptions {
    /// Calls are answered before their changes are durable. A crash undoes the last calls, in their order.
    pub async_metadata: bool,
    /// The owner and the group of a new volume's root.
    pub owner: (u32, u32),
    /// Unused inodes that stay in memory.
    pub inodes_max: usize,
    /// Most objects and files that the volume may hold open.
    pub descriptors_max: usize,
}

impl Default for ObjectTreeOptions {
    fn default() -> Self {
        Self { async_metadata: false, owner: (0, 0), inodes_max: 65_536, descriptors_max: 1 << 20 }
    }
}

/// The state that the order of batches guards.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Counts the objects that this opening made.
    objects: u64,
    /// The newest batch of the tree.
    pub(super) last: Sequence,
    /// The newest one with more than a change time. An answer may report all that it has.
    pub(super) told: Sequence,
    /// The newest one that a caller wanted.
    pub(super) wanted: Sequence,
}

/// The tree of names of a volume in an object store, exported as "/".
pub struct ObjectTree<D: DataCore> {
    pub(super) core: Arc<D>,
    pub(super) cache: Arc<SlotCache>,
    pub(super) held_nodes: Arc<HeldNodes>,
    pub(super) options: ObjectTreeOptions,
    pub(super) exports: Vec<Export>,
    fsid: u64,
    order: Mutex<Order>,
}

impl<D: DataCore> ObjectTree<D> {
    /// Opens the tree of a volume that was just opened; makes the root of a new volume. Spawn [`Self::reaper`] then.
    ///
    /// # Errors
    /// If a later writer took over, or the root is damaged.
    pub async fn open(core: Arc<D>, options: ObjectTreeOptions) -> Result<Arc<Self>, ObjectVolumeError> {
        let (fsid, _) =
            core.header().id.split_first_chunk().map_or((0, &[][..]), |(id, rest)| (u64::from_be_bytes(*id), rest));
        let mut tree = Self {
            cache: Arc::new(SlotCache::new(options.inodes_max)),
            held_nodes: HeldNodes::new(),
            options,
            exports: Vec::new(),
            fsid,
            order: Mutex::default(),
            core,
        };
        let (key, end) = (InodeRecord::key(ROOT), InodeRecord::end_key(ROOT));
        let found = tree.core.records().scan(key.clone(), end, Durability::Applied).await?;
        let root = match found.first() {
            Some((_, value)) => InodeRecord::decode(value)?,
            None if tree.core.records().is_read_only() => return Err(ObjectVolumeError::NoVolume),
            None => {
                let root = tree.new_root();
                let records = tree.core.records();
                records.durable(records.apply(vec![RecordChange::Put(key, root.encode())])?).await?;
                root
            }
        };
        let stat = tree.stat_of(ROOT, &root, Body::default());
        tree.cache.slot(ROOT).set(root);
        let node = Node::new(tree.held_nodes.hold(ROOT));
        let root = Found { node, identity: tree.identity(ROOT), stat };
        tree.exports.push(Export { path: "/".to_owned(), root });
        Ok(Arc::new(tree))
    }

    fn new_root(&self) -> InodeRecord {
        let (now, (uid, gid)) = (self.now(), self.options.owner);
        let content = Content::Directory { parent: ROOT, entries: 0 };
        InodeRecord {
            mode: 0o755,
            links: 1,
            uid,
            gid,
            accessed: now,
            modified: now,
            modified_set: now,
            changed: now,
            changes: 0,
            has_xattrs: false,
            acls: Acls::default(),
            content,
        }
    }

    /// Forgets all inodes, since a view moved on.
    pub fn forget_inodes(&self) {
        self.cache.forget();
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_wall(WallNanos(self.core.wall_ns().into()))
    }

    pub(super) fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The inode number of a new object. A view has none.
    pub(super) fn next_ino(&self, order: &mut Order) -> Result<u64, VolumeError> {
        if self.core.records().is_read_only() {
            return Err(VolumeError::ReadOnly);
        }
        let ino = ino(self.core.records().epoch(), order.objects)?;
        order.objects += 1;
        Ok(ino)
    }

    pub(super) async fn scan(&self, from: Key, to: Key) -> Result<Vec<Record>, RecordsError> {
        self.core.records().scan(from, to, Durability::Applied).await
    }

    pub(super) fn identity(&self, ino: u64) -> Identity {
        Identity::new(self.fsid, IDENTITY_FORM, 0, &ino.to_be_bytes())
    }

    /// The object of an identity that this tree gave out.
    pub(super) fn ino_of(&self, identity: &Identity) -> Result<u64, VolumeError> {
        let bytes = identity.bytes().first_chunk().ok_or(VolumeError::Stale)?;
        let ino = u64::from_be_bytes(*bytes);
        if self.identity(ino) == *identity { Ok(ino) } else { Err(VolumeError::Stale) }
    }

    /// The attributes of an object. A call that set the modification time later than the last write wins.
    pub(super) fn stat_of(&self, ino: u64, inode: &InodeRecord, body: Body) -> Stat {
        let written = written(&body);
        let (size, (device_major, device_minor)) = match &inode.content {
            Content::Regular => (body.size, (0, 0)),
            Content::Directory { entries, .. } => (*entries, (0, 0)),
            Content::Symlink(target) => (target.len() as u64, (0, 0)),
            Content::BlockDevice { major, minor } | Content::CharDevice { major, minor } => (0, (*major, *minor)),
            Content::Fifo | Content::Socket => (0, (0, 0)),
        };
        Stat {
            kind: inode.kind(),
            mode: inode.mode,
            links: inode.links,
            uid: inode.uid,
            gid: inode.gid,
            size,
            used: body.used,
            device_major,
            device_minor,
            device: DeviceKey(self.fsid),
            fileid: ino,
            atime: inode.accessed,
            mtime: if written > inode.modified_set { written } else { inode.modified },
            ctime: inode.changed.max(written),
        }
    }

    /// An object with a name, for the volume.
    pub(super) fn found(&self, held: Arc<HeldNode>, inode: &InodeRecord, body: Body) -> Found {
        let ino = held.ino();
        Found { node: Node::new(held), identity: self.identity(ino), stat: self.stat_of(ino, inode, body) }
    }
}

/// The time of the last write.
pub(super) fn written(body: &Body) -> Timestamp {
    Timestamp::from_wall(WallNanos(body.changed_ns.into()))
}

impl<D: DataCore> Drop for ObjectTree<D> {
    fn drop(&mut self) {
        self.held_nodes.close();
    }
}

/// The bytes below a tree of names.
pub trait DataCore: Send + Sync + 'static {
    /// The database that has the tree's records, too.
    type Records: RecordDatabase;

    /// The open database.
    fn records(&self) -> &Self::Records;

    /// The header of the volume, as it was at the opening.
    fn header(&self) -> VolumeHeader;

    /// The time of day, since 1970.
    fn wall_ns(&self) -> u64;

    /// The body of a file as far as memory has it.
    fn body_in_memory(&self, ino: u64) -> BodyInMemory;

    /// The newest body of a file, also with writes that wait for its record to be read.
    fn body(&self, ino: u64) -> impl Future<Output = Result<Body, ObjectVolumeError>> + Send;

    /// The tree made a file of this number. It has no bytes yet, so nothing has to be read for it.
    fn begin_file(&self, _ino: u64) {}

    /// The volume has access control lists from now on: a program that knows none refuses it. Durable before any
    /// later batch.
    fn begin_acls(&self) -> Result<(), ObjectVolumeError> {
        Ok(())
    }

    /// The device's name for a file. It must hold `held` if the file may be used through it.
    fn backing(&self, held: Arc<HeldNode>) -> Backing {
        Backing::new(held)
    }

    /// Lets the next sync of a file wait for a change of its attributes, which then shares its PUT. `None` if data and
    /// records share none.
    fn join(&self, _ino: u64) -> Option<Joint> {
        None
    }

    /// The first offset at or after `from` with data, or in a hole; the end of the file counts as a hole. `None` if
    /// there is none, or if the file ends at or before `from`. `NotSupported` by default: then files have no holes.
    fn seek(
        &self,
        _ino: u64,
        _from: u64,
        _wanted: Seek,
    ) -> impl Future<Output = Result<Option<u64>, VolumeError>> + Send {
        ready(Err(VolumeError::NotSupported))
    }

    /// Gives a range of one file the bytes of another without moving them. `NotSupported` by default.
    fn share(
        &self,
        _source: u64,
        _range: Range<u64>,
        _target: u64,
        _to: u64,
    ) -> impl Future<Output = Result<(), VolumeError>> + Send {
        ready(Err(VolumeError::NotSupported))
    }

    /// Removes an object without a name and without a holder: first its bytes, at last its inode, body and mark. The
    /// tree may call it twice for one object.
    fn reap(&self, ino: u64) -> impl Future<Output = Result<(), ObjectVolumeError>> + Send;

    /// Waits until this writer may answer a call.
    fn wait_to_answer(&self) -> impl Future<Output = Result<(), ObjectVolumeError>> + Send;
}

impl<O, R, C> DataCore for ObjectVolume<O, R, C>
where
    O: Objects + 'static,
    R: RecordDatabase + 'static,
    C: Clock + 'static,
{
    type Records = R;

    fn records(&self) -> &R {
        Self::records(self)
    }

    fn header(&self) -> VolumeHeader {
        Self::header(self).clone()
    }

    fn wall_ns(&self) -> u64 {
        self.clock.wall_ns()
    }

    fn body_in_memory(&self, ino: u64) -> BodyInMemory {
        Self::body_in_memory(self, ino)
    }

    async fn body(&self, ino: u64) -> Result<Body, ObjectVolumeError> {
        Self::body(self, ino).await
    }

    fn begin_file(&self, ino: u64) {
        self.state().begin_file(ino, &self.limits, self.records.durable_through());
    }

    fn begin_acls(&self) -> Result<(), ObjectVolumeError> {
        Ok(self.begin_feature(WITH_ACLS)?)
    }

    fn join(&self, ino: u64) -> Option<Joint> {
        Some(Joint::by(self.joints.begin(ino)))
    }

    async fn seek(&self, ino: u64, from: u64, wanted: Seek) -> Result<Option<u64>, VolumeError> {
        Ok(Self::seek(self, ino, from, wanted).await?)
    }

    async fn share(&self, source: u64, range: Range<u64>, target: u64, to: u64) -> Result<(), VolumeError> {
        Ok(Self::share(self, source, range, target, to).await?)
    }

    async fn reap(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        Self::reap(self, ino).await
    }

    async fn wait_to_answer(&self) -> Result<(), ObjectVolumeError> {
        Self::wait_to_answer(self).await
    }
}
