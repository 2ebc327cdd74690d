//! The open tree.
//!
//! Owns: its parts, its opening, the order of batches, numbers of new objects.
//! Does not own: the calls.
//! Invariants: batches are built and given to the records under the order lock, which no call holds over an await.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_engine::WallNanos;
use afflux_volume::{DeviceKey, Export, Found, Identity, Node, Stat, Timestamp, VolumeError};

use super::cache::SlotCache;
use super::data_core::DataCore;
use super::holders::{HeldNode, Holders};
use crate::error::ObjectVolumeError;
use crate::format::inode::{Content, InodeRecord, ROOT, number};
use crate::format::records::Body;
use crate::seams::{Durability, Key, Record, RecordChange, RecordDatabase, RecordsError, Sequence};

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
    /// Most objects and files that the volume may keep open.
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
    /// The newest one with more than a change time. An answer may tell all that it has.
    pub(super) told: Sequence,
    /// The newest one that a caller wanted.
    pub(super) wanted: Sequence,
}

/// The tree of names of a volume in an object store, exported as "/".
pub struct ObjectTree<D: DataCore> {
    pub(super) core: Arc<D>,
    pub(super) cache: Arc<SlotCache>,
    pub(super) holders: Arc<Holders>,
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
            holders: Holders::new(),
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
        let node = Node::new(tree.holders.hold(ROOT));
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

    /// The number of a new object. A view has none.
    pub(super) fn next_number(&self, order: &mut Order) -> Result<u64, VolumeError> {
        if self.core.records().is_read_only() {
            return Err(VolumeError::ReadOnly);
        }
        let number = number(self.core.records().epoch(), order.objects)?;
        order.objects += 1;
        Ok(number)
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
        self.holders.close();
    }
}
