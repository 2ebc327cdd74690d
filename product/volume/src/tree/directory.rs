//! The seam between a volume and the tree of names behind it.
//!
//! Owns: the interface of a world's tree, and the plain values that pass: locations, modes of a rename, changes of
//! extended attributes and Linux's bounds on them, the meeting of a sync with a change of attributes.
//! Does not own: file bytes; a tree returns a [`Backing`] and the engine's device does the rest. The meaning of an
//! extended attribute's name: namespaces, and access control lists (the host).
//! Invariants: every call is about one open object and at most one name in it, so only objects that a tree has handed
//! out can be reached. A call that has begun ends, even without a waiter. An unknown flag of a rename is refused, never
//! ignored. A sync waits for no change whose [`Joint`] was dropped.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_engine::policy::Remembered;
use afflux_engine::{Backing, Device};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::locks::HostLocks;
use crate::tree::attributes::{AttributeChange, DeviceKey, Stat};
use crate::tree::caller::{Caller, ChangeNote, Credentials};
use crate::tree::identity::Identity;
use crate::tree::listing::Window;
use crate::tree::pending::TreeResult;

/// An open object of a tree: its descriptor, or its location in a simulated tree. With it comes the user of the host
/// for its calls, unless the server's own user makes them, and the note of a change that a client may ask a later
/// process for.
#[derive(Clone)]
pub struct Node {
    object: Arc<dyn Any + Send + Sync>,
    user: Option<Arc<Credentials>>,
    note: ChangeNote,
}

impl Node {
    /// Wraps the tree's own object.
    pub fn new(object: Arc<dyn Any + Send + Sync>) -> Self {
        Self { object, user: None, note: ChangeNote::default() }
    }

    /// The wrapped object, if it is a `T`.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.object.downcast_ref()
    }

    /// A shared reference to the wrapped object, if it is a `T`.
    pub fn shared<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.object).downcast().ok()
    }

    /// The same object for a caller: changes and questions about rights are made as the caller's user.
    #[must_use]
    pub fn used_by(&self, caller: &Caller) -> Self {
        Self { object: Arc::clone(&self.object), user: caller.credentials().cloned(), note: ChangeNote::default() }
    }

    /// The same object for a change that is noted when the host has carried it out.
    #[must_use]
    pub(crate) fn noting(self, note: ChangeNote) -> Self {
        Self { note, ..self }
    }

    /// The note of the change that it is used for.
    pub fn note(&self) -> &ChangeNote {
        &self.note
    }

    /// The user of the host for the calls; none for the server's own.
    pub fn user(&self) -> Option<&Arc<Credentials>> {
        self.user.as_ref()
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Node")
    }
}

/// An object that was looked up or made.
#[derive(Clone, Debug)]
pub struct Found {
    /// The open object.
    pub node: Node,
    /// The object's identity.
    pub identity: Identity,
    /// The attributes, taken after the object was opened.
    pub stat: Stat,
}

/// A directory right before and right after a change of its entries.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Attributes right before the change.
    pub before: Stat,
    /// Attributes right after the change.
    pub after: Stat,
}

/// A regular file, opened for its bytes.
pub struct OpenedData {
    /// The device's name for the file. It serves writes, too, once the tree has allowed them.
    pub backing: Backing,
    /// The file's attributes when it was opened; the engine starts with their size.
    pub stat: Stat,
    /// Whether the file is known to be writable.
    pub writable: bool,
}

/// The kind of object to make.
#[derive(Clone, Debug)]
pub enum New {
    /// An empty regular file.
    Regular,
    /// An empty directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// The exact target.
        target: Bytes,
    },
    /// An object without bytes.
    Special(SpecialKind),
}

/// An object without bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpecialKind {
    /// A named pipe.
    Fifo,
    /// A socket in the file system.
    Socket,
    /// A character device.
    CharDevice {
        /// Major number of the device.
        major: u32,
        /// Minor number of the device.
        minor: u32,
    },
    /// A block device.
    BlockDevice {
        /// Major number of the device.
        major: u32,
        /// Minor number of the device.
        minor: u32,
    },
}

/// The end of the sync that makes a change durable, if the tree began one with the change.
#[derive(Default)]
pub struct Stable(Option<TreeResult<'static, ()>>);

impl Stable {
    /// No sync was begun: the caller must call [`Directory::sync`].
    pub fn not_begun() -> Self {
        Self(None)
    }

    /// A sync that was begun after the change, and goes on whether or not a caller waits for it.
    pub fn begun(sync: TreeResult<'static, ()>) -> Self {
        Self(Some(sync))
    }

    pub(crate) fn into_begun(self) -> Option<TreeResult<'static, ()>> {
        self.0
    }
}

impl fmt::Debug for Stable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Stable(begun)" } else { "Stable(not begun)" })
    }
}

/// A new object.
pub struct Created {
    /// Object that the name leads to.
    pub found: Found,
    /// A regular file's bytes, opened at its creation: writes succeed even if its mode forbids them.
    pub data: Option<OpenedData>,
    /// Attributes of the directory around the change.
    pub parent: Change,
    /// The directory's sync.
    pub stable: Stable,
}

/// A new regular file without a name.
pub struct Unnamed {
    /// File that was made or found.
    pub found: Found,
    /// The file's bytes. Writes succeed even if the mode forbids writing.
    pub data: OpenedData,
}

/// Attributes that were changed.
#[derive(Debug)]
pub struct ChangedAttributes {
    /// The object, afterwards.
    pub stat: Stat,
    /// The object's sync.
    pub stable: Stable,
}

/// A removed name.
#[derive(Debug)]
pub struct Removed {
    /// Identity of the removed object.
    pub identity: Identity,
    /// The object's attributes afterwards; `links` is 0 after the removal of the last name.
    pub stat: Stat,
    /// Attributes of the directory around the change.
    pub parent: Change,
    /// The directory's sync.
    pub stable: Stable,
}

/// A changed name.
#[derive(Debug)]
pub struct Renamed {
    /// The moved object, afterwards.
    pub moved: (Identity, Stat),
    /// The other object that had the new name before, as it is now, if any. After an exchange it has the old name.
    pub replaced: Option<(Identity, Stat)>,
    /// The directory of the old name.
    pub from: Change,
    /// The directory of the new name.
    pub to: Change,
    /// The sync of both directories.
    pub stable: Stable,
}

/// A new name of an object.
#[derive(Debug)]
pub struct Linked {
    /// The object, afterwards.
    pub stat: Stat,
    /// Attributes of the directory around the change.
    pub parent: Change,
    /// The directory's sync.
    pub stable: Stable,
}

/// An entry's object, without the means to use it.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The object's identity.
    pub identity: Identity,
    /// Attributes of the object.
    pub stat: Stat,
}

/// An entry with its object, for a search by identity.
#[derive(Clone, Debug)]
pub struct Identified {
    /// The entry's name.
    pub name: Bytes,
    /// The object's identity.
    pub identity: Identity,
    /// Whether the object is a directory.
    pub directory: bool,
}

/// A directory that is exported.
#[derive(Clone, Debug)]
pub struct Export {
    /// Its path for clients: "/", or "/NAME".
    pub path: String,
    /// Directory at the root of the export.
    pub root: Found,
}

/// The space of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Its size in bytes.
    pub total_bytes: u64,
    /// Bytes not in use.
    pub free_bytes: u64,
    /// Bytes that the serving user may still use.
    pub available_bytes: u64,
    /// Most files that it can have.
    pub total_files: u64,
    /// Files that it can still have.
    pub free_files: u64,
    /// Files that the serving user may still make.
    pub available_files: u64,
}

/// A file system's limits on names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathLimits {
    /// Most names of an object.
    pub links_max: u32,
    /// Longest name in bytes.
    pub name_max: u32,
    /// Whether longer names are refused instead of cut.
    pub no_trunc: bool,
    /// Whether names that differ only in case are one name.
    pub case_insensitive: bool,
    /// Whether names retain their case.
    pub case_preserving: bool,
}

/// The kind of range to search for in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seek {
    /// Bytes that were written, or that take up space.
    Data,
    /// A hole, which reads as zeros; the end of the file is one.
    Hole,
}

/// A tree of names on a host. Names are single ones and have passed [`crate::tree::names`]; errors are the host's.
/// Calls that take names or change entries refuse a directory that is no longer below an export (`Stale`).
///
/// Some calls are made as the user of the directory's node, or of the only node ([`Node::user`]): [`Directory::set`],
/// [`Directory::access`], [`Directory::create`], [`Directory::create_unnamed`], [`Directory::remove`],
/// [`Directory::rename`], [`Directory::link`] and those about extended attributes. Before any other call, the caller
/// has checked the user's rights. Calls that change something have a parameter `durable`: if it is set, the tree may
/// begin the sync itself, and use one sync for several changes. [`Directory::create`], [`Directory::remove`],
/// [`Directory::rename`] and [`Directory::link`] note the change before its sync ([`Node::note`] of the directory, of
/// the old name's for a rename).
pub trait Directory: Send + Sync + 'static {
    /// The exports: at least one directory, none inside another.
    fn exports(&self) -> &[Export];

    /// Most objects and files that the volume may keep open at a time.
    fn descriptors_max(&self) -> usize;

    /// Whether [`Directory::open_identity`] can open this object during its life; if not, the volume finds it by name.
    fn may_open(&self, identity: &Identity) -> bool;

    /// Whether files that were moved out of the exports are refused, as such directories always are. Then
    /// [`Directory::stat`] reports such a file. The volume calls it before it serves a file from memory, unless it has
    /// done so recently.
    fn is_confining_files(&self) -> bool {
        false
    }

    /// The unit of the times on the object's file system: each stored time is a multiple of it, up to two seconds. 1 if
    /// it is not known. Asks the host nothing.
    fn time_unit_ns(&self, _node: &Node) -> u32 {
        1
    }

    /// Whether other bytes may be the same name in a directory in which a name was looked up, listed or made before.
    /// Asks the host nothing.
    fn may_fold_names(&self, _directory: &Node) -> bool {
        false
    }

    /// The object with this identity, anywhere in an exported file system. `Stale` if it is gone, `NotSupported` if it
    /// cannot be found this way.
    fn open_identity(&self, identity: Identity) -> TreeResult<'_, Found>;

    /// The object called `name`. A symbolic link is returned itself, never its target.
    fn lookup(&self, directory: &Node, name: Bytes) -> TreeResult<'_, Found>;

    /// The object of each of `names`, in their order, without keeping it open. `None` only for a name that is not
    /// there: the listing of a doubtful piece leaves such a name out.
    fn name_all(&self, directory: &Node, names: Vec<Bytes>) -> TreeResult<'_, Vec<Option<Named>>>;

    /// The directory above `directory`; `Stale` if that is in no export. Not for a root.
    fn parent(&self, directory: &Node) -> TreeResult<'_, Found>;

    /// Offers every entry but "." and ".." to the window, and returns the directory's attributes.
    fn list(&self, directory: &Node, window: Window) -> TreeResult<'_, (Window, Stat)>;

    /// Every entry but "." and "..", with its object. Only an entry that is no longer there may be omitted. An entry
    /// that cannot be looked up is an error: to a search, an object that it does not find is gone.
    fn identities(&self, directory: &Node) -> TreeResult<'_, Vec<Identified>>;

    /// The object's current attributes.
    fn stat(&self, node: &Node) -> TreeResult<'_, Stat>;

    /// Each object's current attributes, in their order; `None` if they are not available. All are on one device.
    fn stat_all(&self, nodes: Vec<Node>) -> TreeResult<'_, Vec<Option<Stat>>>;

    /// Changes all given attributes but the size (which must be `None`: bytes are the engine's), and returns the new
    /// ones.
    fn set(&self, node: &Node, change: AttributeChange, durable: bool) -> TreeResult<'_, ChangedAttributes>;

    /// Lets a change of a file's attributes take few bytes of the file along, where a tree makes both durable with one
    /// request. `None` if it does not.
    fn join(&self, _node: &Node) -> Option<Joint> {
        None
    }

    /// The user's rights, as a sum of read 1, write 2, execute or search 4.
    fn access(&self, node: &Node) -> TreeResult<'_, u8>;

    /// The target of a symbolic link.
    fn read_link(&self, node: &Node) -> TreeResult<'_, Bytes>;

    /// Opens a regular file's bytes. With `must_write`, fails if the file cannot be written; a caller may ask this for
    /// an open file, too, and then goes on with its backing. Returns [`VolumeError::Leased`] at once if a program of
    /// the host has a lease on the file.
    fn open_data(&self, node: &Node, must_write: bool) -> TreeResult<'_, OpenedData>;

    /// Opens a regular file for locks that programs of the host see. `NotSupported` if the tree has no such programs.
    fn open_locks(&self, _node: &Node) -> TreeResult<'_, Arc<dyn HostLocks>> {
        TreeResult::now(Err(VolumeError::NotSupported))
    }

    /// Closes what a file is open with for writing. Nothing is being written, and [`Directory::open_data`] comes before
    /// the next write. A tree whose open files hinder nobody does nothing.
    fn stop_writing(&self, _node: &Node) -> TreeResult<'_, ()> {
        TreeResult::now(Ok(()))
    }

    /// Makes an object with these attributes (the size must be `None`). `Exists` if the name is taken. The tree reads
    /// the directory's default access control list, and then takes what [`AttributeChange::for_new`] says.
    fn create(
        &self,
        directory: &Node,
        name: Bytes,
        new: New,
        attributes: AttributeChange,
        durable: bool,
    ) -> TreeResult<'_, Created>;

    /// Makes an empty regular file without a name on the directory's file system, as [`Directory::create`] would make
    /// one in it; [`Directory::link`] can give it a name. It lives while its node does. `NotSupported` if the tree has
    /// no such files.
    fn create_unnamed(&self, _directory: &Node, _attributes: AttributeChange) -> TreeResult<'_, Unnamed> {
        TreeResult::now(Err(VolumeError::NotSupported))
    }

    /// Whether files and directories without a name can outlive this process.
    fn may_keep_unnamed(&self) -> bool {
        false
    }

    /// Has a regular file or a directory outlive this process even without a name: the next process opens it by its
    /// identity. A second call has no further effect. A tree may have a small limit of such objects; beyond it the call
    /// fails. The tree releases the object with its node.
    fn keep_unnamed(&self, _node: &Node) -> TreeResult<'_, ()> {
        TreeResult::now(Err(VolumeError::NotSupported))
    }

    /// An object no longer outlives this process without a name.
    fn let_go_unnamed(&self, _node: &Node) -> TreeResult<'_, ()> {
        TreeResult::now(Ok(()))
    }

    /// Removes a name: a directory's if `directory_wanted`, otherwise any other object's.
    fn remove(&self, directory: &Node, name: Bytes, directory_wanted: bool, durable: bool) -> TreeResult<'_, Removed>;

    /// Renames `from.1` in `from.0` to `to.1` in `to.0`; `how` decides about an object with the new name. If both names
    /// are of one object, both stay. `Invalid` if the file system does not know this mode.
    fn rename(
        &self,
        from: (&Node, Bytes),
        to: (&Node, Bytes),
        how: RenameHow,
        durable: bool,
    ) -> TreeResult<'_, Renamed>;

    /// Gives an object one more name, or a file from [`Directory::create_unnamed`] its first. `Stale` if the object has
    /// lost its last name.
    fn link(&self, node: &Node, directory: &Node, name: Bytes, durable: bool) -> TreeResult<'_, Linked>;

    /// The value of an extended attribute. `NoAttribute` if there is none, `NotSupported` if the file system has none
    /// of this name's kind.
    fn xattr(&self, _node: &Node, _name: Bytes) -> TreeResult<'_, Bytes> {
        TreeResult::now(Err(VolumeError::NotSupported))
    }

    /// The names of the extended attributes that the user may see, in any order.
    fn xattrs(&self, _node: &Node) -> TreeResult<'_, Vec<Bytes>> {
        TreeResult::now(Err(VolumeError::NotSupported))
    }

    /// Changes an extended attribute, and returns the object's attributes: an access control list changes the mode.
    fn change_xattr(
        &self,
        _node: &Node,
        _name: Bytes,
        _change: XattrChange,
        _durable: bool,
    ) -> TreeResult<'_, ChangedAttributes> {
        TreeResult::now(Err(VolumeError::NotSupported))
    }

    /// The first offset at or after `from` with data, or without, as far as the host has the file; its end counts as
    /// without. `None` if there is none, or if the file ends at or before `from`. A tree that answers `NotSupported`
    /// has files without holes.
    fn seek(&self, _node: &Node, _from: u64, _wanted: Seek) -> TreeResult<'_, Option<u64>> {
        TreeResult::now(Err(VolumeError::NotSupported))
    }

    /// Gives a regular file the space of a range; its size and bytes stay. `NoSpace` if there is too little,
    /// `NotSupported` if the file system cannot.
    fn reserve(&self, _node: &Node, _range: Range<u64>) -> TreeResult<'_, ()> {
        TreeResult::now(Err(VolumeError::NotSupported))
    }

    /// Makes a range of one file have the blocks of a range of another, or of itself, and no others; a target that ends
    /// before grows. Offsets and length are multiples of [`CLONE_BLOCK_BYTES`](crate::CLONE_BLOCK_BYTES), and the
    /// ranges do not overlap. An empty range only asks whether this is possible. All or nothing. `NotSupported` if the
    /// file system shares no blocks, `CrossDevice` between two.
    fn share_blocks(&self, _source: &Node, _from: u64, _target: &Node, _to: Range<u64>) -> TreeResult<'_, ()> {
        TreeResult::now(Err(VolumeError::NotSupported))
    }

    /// Makes the object's attributes, and a directory's entries, durable.
    fn sync(&self, node: &Node) -> TreeResult<'_, ()>;

    /// Makes every earlier change of names and attributes durable, on all file systems.
    fn sync_everything(&self) -> TreeResult<'_, ()>;

    /// Makes a device for the node's file system, where calls that may wait for this file system are made.
    fn make_device(&self, _node: &Node, make: MakeDevice) -> TreeResult<'static, NewDevice> {
        TreeResult::by(async { make() })
    }

    /// The space of the object's file system.
    fn space(&self, node: &Node) -> TreeResult<'_, Space>;

    /// The limits on names in the object's file system.
    fn path_limits(&self, node: &Node) -> TreeResult<'_, PathLimits>;
}

/// A device for the engine, and its name.
pub struct NewDevice {
    /// Its name, for people.
    pub name: String,
    /// Device that has the file's bytes.
    pub device: Arc<dyn Device>,
    /// The device's record from [`Engine::remembered`](afflux_engine::Engine::remembered); empty if there is none.
    pub remembered: Remembered,
}

impl NewDevice {
    /// A device without a record.
    pub fn unknown(name: String, device: Arc<dyn Device>) -> Self {
        Self { name, device, remembered: Remembered::new() }
    }
}

/// Makes a device; may wait for the host.
pub type MakeDevice = Box<dyn FnOnce() -> Result<NewDevice, VolumeError> + Send>;

/// Makes the engine's device for a newly found device of the host, from its key and an object on it. Called until it
/// succeeds, one call at a time for each key; may wait for the host ([`Directory::make_device`]).
pub type DeviceFactory = Box<dyn Fn(DeviceKey, &Node) -> Result<NewDevice, VolumeError> + Send + Sync>;

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Location {
    pub(crate) parent: Identity,
    pub(crate) name: Bytes,
}

/// A change of attributes that takes the file's bytes along. While it lives, the next sync of the file gives its bytes
/// to the tree, and goes on to make them durable once the value is dropped. The future ends when the tree has the
/// bytes.
pub struct Joint(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Joint {
    /// A joint that a tree made. Its future is polled no more once it has ended, and is dropped with the joint.
    pub fn by(bytes_arrive: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Box::pin(bytes_arrive))
    }
}

impl Future for Joint {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

/// What a rename does with the object that has the new name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RenameHow {
    /// It loses the name.
    #[default]
    Replace,
    /// The rename fails ([`VolumeError::Exists`]), also if both names are of one object.
    NoReplace,
    /// It gets the old name; without such an object the rename fails ([`VolumeError::NotFound`]).
    Exchange,
    /// As [`RenameHow::Replace`] or [`RenameHow::NoReplace`]. The old name gets a whiteout: a character device 0/0, by
    /// which the upper layer of an overlayfs hides a name of the lower one.
    Whiteout {
        /// Whether the object with the new name may lose it.
        may_replace: bool,
    },
}

impl RenameHow {
    const NO_REPLACE: u32 = 1;
    const EXCHANGE: u32 = 2;
    const WHITEOUT: u32 = 4;
    const WHITEOUT_NO_REPLACE: u32 = Self::WHITEOUT | Self::NO_REPLACE;

    /// The mode that Linux's flags for renameat2 mean. [`VolumeError::Invalid`] for any other flag, and for flags that
    /// do not go together.
    pub fn of_flags(flags: u32) -> Result<Self, VolumeError> {
        match flags {
            0 => Ok(Self::Replace),
            Self::NO_REPLACE => Ok(Self::NoReplace),
            Self::EXCHANGE => Ok(Self::Exchange),
            Self::WHITEOUT => Ok(Self::Whiteout { may_replace: true }),
            Self::WHITEOUT_NO_REPLACE => Ok(Self::Whiteout { may_replace: false }),
            _ => Err(VolumeError::Invalid {
                what: "a rename's flags: 0, or RENAME_EXCHANGE, or RENAME_NOREPLACE and RENAME_WHITEOUT",
            }),
        }
    }

    /// Whether the object with the new name may lose it.
    pub fn may_replace(self) -> bool {
        matches!(self, Self::Replace | Self::Whiteout { may_replace: true })
    }

    /// Whether the old name leads to an object afterwards. A repetition of such a rename would move that one.
    pub fn has_old_name(self) -> bool {
        matches!(self, Self::Exchange | Self::Whiteout { .. })
    }
}

/// Longest name of an extended attribute, in bytes.
pub const XATTR_NAME_BYTES_MAX: usize = 255;

/// Longest value of an extended attribute, in bytes. Most file systems take less.
pub const XATTR_BYTES_MAX: usize = 65_536;

/// The access control list of an object, in the form of acl(5).
pub const ACCESS_ACL: &[u8] = b"system.posix_acl_access";

/// The default access control list of a directory: it bounds the modes of new objects there, in place of a umask.
pub const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// A change of one extended attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum XattrChange {
    /// Gives it a value, whether or not it is there.
    Set(Bytes),
    /// Makes it; [`VolumeError::Exists`] if it is there.
    Create(Bytes),
    /// Gives it another value; [`VolumeError::NoAttribute`] if it is not there.
    Replace(Bytes),
    /// Removes it; [`VolumeError::NoAttribute`] if it is not there.
    Remove,
}

impl XattrChange {
    pub(crate) fn check(&self) -> Result<(), VolumeError> {
        let bytes = match self {
            Self::Set(value) | Self::Create(value) | Self::Replace(value) => value.len(),
            Self::Remove => 0,
        };
        if bytes > XATTR_BYTES_MAX { Err(VolumeError::ValueTooLong { bytes }) } else { Ok(()) }
    }
}

/// Whether `name` can be a name: 1 to 255 bytes, no NUL.
pub(crate) fn check_name(name: &[u8]) -> Result<(), VolumeError> {
    if name.is_empty() || name.contains(&0) {
        return Err(VolumeError::Invalid { what: "the name of an extended attribute, empty or with NUL" });
    }
    if name.len() > XATTR_NAME_BYTES_MAX { Err(VolumeError::NameTooLong { bytes: name.len() }) } else { Ok(()) }
}
