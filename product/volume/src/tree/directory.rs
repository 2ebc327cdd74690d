//! The seam between a volume and the tree of names behind it.
//!
//! Owns: what a world's tree must offer, and the plain values that pass.
//! Does not own: file bytes; a tree hands out a [`Backing`] and the engine's device does the rest.
//! Invariants: every call is about one open object and at most one name in it, so an object that a
//! tree has not handed out cannot be reached. A call that was begun ends, whoever still waits for it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use afflux_engine::policy::Remembered;
use afflux_engine::{Backing, Device};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::tree::attributes::{AttributeChange, Kind, Timestamp};
use crate::tree::caller::{Caller, Credentials};
use crate::tree::identity::Identity;
use crate::tree::pending::Pending;
use crate::tree::window::Window;

/// An open object of a tree, its descriptor or its place in a simulated one; and the user of the host that it is used
/// for, where that is not the server's own.
#[derive(Clone)]
pub struct Node {
    object: Arc<dyn Any + Send + Sync>,
    user: Option<Arc<Credentials>>,
}

impl Node {
    /// Wraps what the tree will get back.
    pub fn new(object: Arc<dyn Any + Send + Sync>) -> Self {
        Self { object, user: None }
    }

    /// What was wrapped, if it was a `T`.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.object.downcast_ref()
    }

    /// What was wrapped, to keep, if it was a `T`.
    pub fn share<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.object).downcast().ok()
    }

    /// The same object, used for a caller: calls that change something, or ask after rights, are made as its user.
    #[must_use]
    pub fn used_by(&self, caller: &Caller) -> Self {
        Self { object: Arc::clone(&self.object), user: caller.credentials().cloned() }
    }

    /// As which user of the host calls are to be made; none: as the server's own.
    pub fn user(&self) -> Option<&Arc<Credentials>> {
        self.user.as_ref()
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Node")
    }
}

/// Which device of the host an object is on (`st_dev`): a mount point has its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DeviceKey(pub u64);

/// An object as the host sees it: without what the engine has not written yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// The permission bits.
    pub mode: u32,
    /// How many names it has.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes of storage it takes.
    pub used: u64,
    /// Major number, of a device node.
    pub device_major: u32,
    /// Minor number, of a device node.
    pub device_minor: u32,
    /// The device it is on.
    pub device: DeviceKey,
    /// Its number in its file system.
    pub fileid: u64,
    /// Access time.
    pub atime: Timestamp,
    /// Modification time.
    pub mtime: Timestamp,
    /// Change time.
    pub ctime: Timestamp,
}

/// An object that was looked up or made.
#[derive(Clone, Debug)]
pub struct Found {
    /// To use it with.
    pub node: Node,
    /// What it is known by.
    pub identity: Identity,
    /// Its attributes, taken after it was opened.
    pub stat: Stat,
}

/// A directory right before and right after a change of its entries.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Right before.
    pub before: Stat,
    /// Right after.
    pub after: Stat,
}

/// A regular file, opened for its bytes.
pub struct Data {
    /// What the device knows the file by. It serves writes too, once the tree has allowed them.
    pub backing: Backing,
    /// The file's attributes when it was opened; the size in it is what the engine starts with.
    pub stat: Stat,
    /// Whether it is known that the file can be written.
    pub writable: bool,
}

/// What is to be made.
#[derive(Clone, Debug)]
pub enum New {
    /// An empty regular file.
    Regular,
    /// An empty directory.
    Directory,
    /// A symbolic link that says exactly this.
    Symlink {
        /// What it says.
        target: Bytes,
    },
    /// Something without bytes.
    Special(SpecialKind),
}

/// An object without bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpecialKind {
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// A block device.
    BlockDevice {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

/// The end of the sync that makes a change durable, where the tree began one with the change.
#[derive(Default)]
pub struct Stable(Option<Pending<'static, ()>>);

impl Stable {
    /// No sync was begun: [`Directory::sync`] is to be called.
    pub fn not_begun() -> Self {
        Self(None)
    }

    /// A sync that was begun after the change, and goes on whether it is waited for or not.
    pub fn begun(sync: Pending<'static, ()>) -> Self {
        Self(Some(sync))
    }

    pub(crate) fn into_begun(self) -> Option<Pending<'static, ()>> {
        self.0
    }
}

impl fmt::Debug for Stable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Stable(begun)" } else { "Stable(not begun)" })
    }
}

/// What was made.
pub struct Created {
    /// The object.
    pub found: Found,
    /// A regular file's bytes: opened while it was made, so that they can be written whatever its mode.
    pub data: Option<Data>,
    /// The directory.
    pub parent: Change,
    /// The directory's sync.
    pub stable: Stable,
}

/// Attributes that were changed.
#[derive(Debug)]
pub struct Changed {
    /// The object, afterwards.
    pub stat: Stat,
    /// The object's sync.
    pub stable: Stable,
}

/// A name that was taken away.
#[derive(Debug)]
pub struct Removed {
    /// What it named.
    pub identity: Identity,
    /// What it named, afterwards; `links` is 0 when that was its last name.
    pub stat: Stat,
    /// The directory.
    pub parent: Change,
    /// The directory's sync.
    pub stable: Stable,
}

/// A name that became another.
#[derive(Debug)]
pub struct Renamed {
    /// What it names, afterwards.
    pub moved: (Identity, Stat),
    /// What the new name named before, as it is now, if anything.
    pub replaced: Option<(Identity, Stat)>,
    /// The directory of the old name.
    pub from: Change,
    /// The directory of the new name.
    pub to: Change,
    /// The sync of both directories.
    pub stable: Stable,
}

/// A name that was added to an object.
#[derive(Debug)]
pub struct Linked {
    /// The object, afterwards.
    pub stat: Stat,
    /// The directory.
    pub parent: Change,
    /// The directory's sync.
    pub stable: Stable,
}

/// What an entry names, without the means to use it.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// What it is known by.
    pub identity: Identity,
    /// Its attributes.
    pub stat: Stat,
}

/// An entry with what it names, for a search by identity.
#[derive(Clone, Debug)]
pub struct Identified {
    /// The entry's name.
    pub name: Bytes,
    /// What it names.
    pub identity: Identity,
    /// Whether that is a directory.
    pub directory: bool,
}

/// A directory that is exported.
#[derive(Clone, Debug)]
pub struct Export {
    /// Its path for clients: "/", or "/NAME".
    pub path: String,
    /// The directory.
    pub root: Found,
}

/// How much room a file system has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Its size in bytes.
    pub total_bytes: u64,
    /// Bytes not in use.
    pub free_bytes: u64,
    /// Bytes that the serving user may still use.
    pub available_bytes: u64,
    /// How many files it can have.
    pub total_files: u64,
    /// How many more it can have.
    pub free_files: u64,
    /// How many more the serving user may make.
    pub available_files: u64,
}

/// What names a file system takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathLimits {
    /// Most names an object can have.
    pub links_max: u32,
    /// Longest name in bytes.
    pub name_max: u32,
    /// Longer names are refused, not cut.
    pub no_trunc: bool,
    /// Names that differ in case only are one name.
    pub case_insensitive: bool,
    /// Names keep their case.
    pub case_preserving: bool,
}

/// A tree of names on a host. Names are single ones and have passed [`crate::tree::names`]; errors are the
/// host's. Calls that take names or change entries refuse a directory that is no longer below an
/// export (`Stale`). [`Directory::set`], [`Directory::access`], [`Directory::create`], [`Directory::remove`],
/// [`Directory::rename`] and [`Directory::link`] are made as the user that the directory's node, or the only one, is
/// used by ([`Node::user`]); of all others whoever calls has made sure that the user may. Calls that change something
/// are told whether it is to be `durable`: then the tree may begin the sync by itself, and share it with others.
pub trait Directory: Send + Sync + 'static {
    /// What is exported: at least one directory, none inside another.
    fn exports(&self) -> &[Export];

    /// How many objects and files the volume may keep open at a time.
    fn descriptors_max(&self) -> usize;

    /// Whether [`Directory::open_identity`] can open this one while it lives; else it is found by its
    /// names.
    fn opens(&self, identity: &Identity) -> bool;

    /// Whether files that were moved out of the exports are refused, as directories always are. Then
    /// [`Directory::stat`] says so, and is asked before anything of a file is served from memory that was
    /// not asked after for a while.
    fn confines_files(&self) -> bool {
        false
    }

    /// The object with this identity, wherever it is in an exported file system. `Stale` if it is
    /// gone, `NotSupported` if it cannot be found this way.
    fn open_identity(&self, identity: Identity) -> Pending<'_, Found>;

    /// What `name` names. A symbolic link is itself, never what it says.
    fn lookup(&self, directory: &Node, name: Bytes) -> Pending<'_, Found>;

    /// What each of `names` names, in their order, without keeping it open.
    fn name_all(&self, directory: &Node, names: Vec<Bytes>) -> Pending<'_, Vec<Option<Named>>>;

    /// The directory that `directory` is in; `Stale` when that is in no export. Not for a root.
    fn parent(&self, directory: &Node) -> Pending<'_, Found>;

    /// Offers every entry but "." and ".." to the window, and says what the directory is.
    fn list(&self, directory: &Node, window: Window) -> Pending<'_, (Window, Stat)>;

    /// Every entry but "." and ".." with what it names.
    fn identities(&self, directory: &Node) -> Pending<'_, Vec<Identified>>;

    /// The object now.
    fn stat(&self, node: &Node) -> Pending<'_, Stat>;

    /// Each object now, in their order; `None` where that cannot be told. All are on one device.
    fn stat_all(&self, nodes: Vec<Node>) -> Pending<'_, Vec<Option<Stat>>>;

    /// Changes attributes, all but the size (which must be `None`: bytes are the engine's), and
    /// gives them as they are then.
    fn set(&self, node: &Node, change: AttributeChange, durable: bool) -> Pending<'_, Changed>;

    /// Which of read 1, write 2, execute or search 4 the user may do.
    fn access(&self, node: &Node) -> Pending<'_, u8>;

    /// What a symbolic link says.
    fn read_link(&self, node: &Node) -> Pending<'_, Bytes>;

    /// Opens a regular file's bytes. If it `must_write`, an error where the file cannot be written; that
    /// is also asked of a file that is open already, whose backing is then used on. [`VolumeError::Leased`] at once
    /// where a program of the host would have to be waited for.
    fn open_data(&self, node: &Node, must_write: bool) -> Pending<'_, Data>;

    /// Makes an object with these attributes (the size must be `None`). `Exists` if the name is taken.
    fn create(
        &self,
        directory: &Node,
        name: Bytes,
        new: New,
        attributes: AttributeChange,
        durable: bool,
    ) -> Pending<'_, Created>;

    /// Takes a name away: a directory's if `directory_wanted`, else anything else's.
    fn remove(&self, directory: &Node, name: Bytes, directory_wanted: bool, durable: bool) -> Pending<'_, Removed>;

    /// Gives what `from.1` names in `from.0` the name `to.1` in `to.0`, and takes that name from what has it.
    fn rename(&self, from: (&Node, Bytes), to: (&Node, Bytes), durable: bool) -> Pending<'_, Renamed>;

    /// Gives an object one more name.
    fn link(&self, node: &Node, directory: &Node, name: Bytes, durable: bool) -> Pending<'_, Linked>;

    /// Makes the object's attributes, and a directory's entries, durable.
    fn sync(&self, node: &Node) -> Pending<'_, ()>;

    /// Makes every change of names and attributes durable that was made before, on all file systems.
    fn sync_everything(&self) -> Pending<'_, ()>;

    /// The room on the object's file system.
    fn space(&self, node: &Node) -> Pending<'_, Space>;

    /// What names the object's file system takes.
    fn path_limits(&self, node: &Node) -> Pending<'_, PathLimits>;
}

/// A device for the engine, and the name to show it by.
pub struct NewDevice {
    /// Its name, for people.
    pub name: String,
    /// It.
    pub device: Arc<dyn Device>,
    /// What was kept of it by [`Engine::remembered`](afflux_engine::Engine::remembered); nothing if that is not known.
    pub remembered: Remembered,
}

impl NewDevice {
    /// One that nothing is known of.
    pub fn unknown(name: String, device: Arc<dyn Device>) -> Self {
        Self { name, device, remembered: Remembered::new() }
    }
}

/// Makes the engine's device for a device of the host that the volume has met: told its key and an
/// object on it. Called once a key, on a thread of the world; may block shortly.
pub type DeviceFactory = Box<dyn Fn(DeviceKey, &Node) -> Result<NewDevice, VolumeError> + Send + Sync>;
