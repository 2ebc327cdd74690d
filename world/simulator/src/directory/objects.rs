//! The objects of a tree in memory, and the effect of each call on them.
//!
//! Owns: objects, their names, times and numbers.
//! Does not own: when calls run (`directory`), file bytes (the disk).
//! Invariants: every entry and every node names an existing object. One lock guards all objects; a call holds it for
//! its own work and never across an await.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_engine::{Platform, WallNanos};
use afflux_volume::{
    AttributeChange, Change, ChangedAttributes, Created, DeviceKey, Found, Identity, Kind, Linked, New, Node,
    OpenedData, Removed, RenameHow, Renamed, SetTime, SpecialKind, Stable, Stat, Timestamp, Unnamed, VolumeError,
    XattrChange,
};
use bytes::Bytes;

use crate::disk::{Disk, DiskFileId};
use crate::world::SimPlatform;

const DEVICE: DeviceKey = DeviceKey(1);
const FSID: u64 = 0x5eed;
/// The root's number.
pub(super) const ROOT: u64 = 1;

pub(super) struct Shared {
    pub(super) platform: Arc<SimPlatform>,
    pub(super) disk: Arc<Disk>,
    pub(super) objects: Mutex<Objects>,
    pub(super) clock_tick_ns: u64,
    pub(super) time_unit_ns: u32,
}

#[derive(Default)]
pub(super) struct Objects {
    pub(super) by_number: BTreeMap<u64, Object>,
    pub(super) free: BTreeSet<u64>,
    pub(super) generations: u32,
    /// Objects whose names or attributes have changed since their last sync.
    pub(super) unsynced: BTreeSet<u64>,
}

/// An object under one of its names.
struct NamedObject {
    directory: u64,
    name: Bytes,
    number: u64,
}

#[derive(Clone)]
pub(super) struct Object {
    pub(super) generation: u32,
    pub(super) mode: u32,
    pub(super) links: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) atime: Timestamp,
    pub(super) mtime: Timestamp,
    pub(super) ctime: Timestamp,
    pub(super) body: Body,
    pub(super) xattrs: BTreeMap<Bytes, Bytes>,
    /// It was made without a name and may get one.
    pub(super) linkable: bool,
    /// It outlives a kill without a name.
    pub(super) outlives: bool,
    /// Nodes that hold it.
    pub(super) nodes: u32,
}

impl Object {
    /// An object of root's with one name.
    pub(super) fn new(generation: u32, mode: u32, now: Timestamp, body: Body) -> Self {
        let xattrs = BTreeMap::new();
        let [atime, mtime, ctime] = [now; 3];
        Self {
            generation,
            mode,
            links: 1,
            uid: 0,
            gid: 0,
            atime,
            mtime,
            ctime,
            body,
            xattrs,
            linkable: false,
            outlives: false,
            nodes: 0,
        }
    }
}

#[derive(Clone)]
pub(super) enum Body {
    /// Stores how often the file's bytes had been changed at the last look: writes change its times.
    Regular {
        file: DiskFileId,
        seen: u64,
    },
    Directory {
        parent: u64,
        entries: BTreeMap<Bytes, u64>,
    },
    Symlink(Bytes),
    Special(SpecialKind),
}

pub(super) struct MemoryNode {
    pub(super) number: u64,
    shared: Arc<Shared>,
}

impl Drop for MemoryNode {
    fn drop(&mut self) {
        let mut objects = self.shared.lock();
        objects.get(self.number).nodes -= 1;
        self.shared.reap(&mut objects, self.number);
    }
}

impl Objects {
    /// The objects that have names or outlive a kill without one, as the host retains them when the only process with
    /// nodes is killed.
    pub(super) fn left(&self) -> Self {
        let stays = |object: &Object| object.links > 0 || object.outlives;
        let left = self.by_number.iter().filter(|(_, object)| stays(object));
        let by_number = left.map(|(number, object)| (*number, Object { nodes: 0, ..object.clone() }));
        let gone = self.by_number.iter().filter(|(_, object)| !stays(object)).map(|(number, _)| *number);
        let free = self.free.iter().copied().chain(gone).collect();
        let unsynced = self.unsynced.clone();
        Self { by_number: by_number.collect(), free, generations: self.generations, unsynced }
    }

    /// # Panics
    /// When the object does not exist, which an entry or a node rules out.
    pub(super) fn get(&mut self, number: u64) -> &mut Object {
        let Some(object) = self.by_number.get_mut(&number) else { panic!("object {number} is gone") };
        object
    }

    pub(super) fn entries(&mut self, number: u64) -> Result<&mut BTreeMap<Bytes, u64>, VolumeError> {
        let object = self.get(number);
        match &mut object.body {
            Body::Directory { .. } if object.links == 0 => Err(VolumeError::Stale),
            Body::Directory { entries, .. } => Ok(entries),
            _ => Err(VolumeError::NotDirectory),
        }
    }

    pub(super) fn entry(&mut self, directory: u64, name: &[u8]) -> Result<u64, VolumeError> {
        self.entries(directory)?.get(name).copied().ok_or(VolumeError::NotFound)
    }

    pub(super) fn add(&mut self, object: Object) -> u64 {
        let number = self.free.pop_first().unwrap_or(ROOT + self.by_number.len() as u64);
        self.by_number.insert(number, object);
        number
    }

    /// Whether `number` is `below` or a directory above it.
    pub(super) fn find_above(&mut self, number: u64, mut below: u64) -> bool {
        while below != number {
            match self.get(below).body {
                Body::Directory { parent, .. } if parent != below => below = parent,
                _ => return false,
            }
        }
        true
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        let WallNanos(now) = self.platform.wall_clock();
        self.stored_time(Timestamp::from_wall(WallNanos(now - now.rem_euclid(i128::from(self.clock_tick_ns)))))
    }

    /// A time as objects store it.
    fn stored_time(&self, time: Timestamp) -> Timestamp {
        Timestamp::from_wall(WallNanos(time.as_nanos() - time.as_nanos().rem_euclid(self.time_unit_ns.into())))
    }

    /// Frees an object that nothing refers to any more.
    pub(super) fn reap(&self, objects: &mut Objects, number: u64) {
        let object = objects.get(number);
        if object.links > 0 || object.nodes > 0 {
            return;
        }
        if let Body::Regular { file, .. } = object.body {
            self.disk.remove_file(file);
        }
        objects.by_number.remove(&number);
        objects.unsynced.remove(&number);
        objects.free.insert(number);
    }

    pub(super) fn stat(&self, objects: &mut Objects, number: u64) -> Stat {
        let now = self.now();
        let object = objects.get(number);
        let mut device = (0, 0);
        let (kind, size) = match &mut object.body {
            Body::Regular { file, seen } => {
                let changes = self.disk.change_count(*file);
                if *seen != changes {
                    *seen = changes;
                    object.mtime = now;
                    object.ctime = now;
                    // Hosts do the same for a server without privileges.
                    let group = if object.mode & 0o010 != 0 { 0o2000 } else { 0 };
                    object.mode &= !(0o4000 | group);
                }
                (Kind::Regular, self.disk.size(*file))
            }
            Body::Directory { entries, .. } => (Kind::Directory, 4096 + entries.len() as u64),
            Body::Symlink(target) => (Kind::Symlink, target.len() as u64),
            Body::Special(special) => {
                let kind = match *special {
                    SpecialKind::Fifo => Kind::Fifo,
                    SpecialKind::Socket => Kind::Socket,
                    SpecialKind::CharDevice { major, minor } => {
                        device = (major, minor);
                        Kind::CharDevice
                    }
                    SpecialKind::BlockDevice { major, minor } => {
                        device = (major, minor);
                        Kind::BlockDevice
                    }
                };
                (kind, 0)
            }
        };
        Stat {
            kind,
            mode: object.mode,
            links: object.links,
            uid: object.uid,
            gid: object.gid,
            size,
            used: size.next_multiple_of(4096),
            device_major: device.0,
            device_minor: device.1,
            device: DEVICE,
            fileid: number,
            atime: object.atime,
            mtime: object.mtime,
            ctime: object.ctime,
        }
    }

    pub(super) fn identity(&self, objects: &mut Objects, number: u64) -> Identity {
        let generation = objects.get(number).generation;
        let bytes = [&number.to_le_bytes()[..], &generation.to_le_bytes()].concat();
        Identity::new(FSID, 1, 1, &bytes)
    }

    pub(super) fn found(self: &Arc<Self>, objects: &mut Objects, number: u64) -> Found {
        objects.get(number).nodes += 1;
        let node = Node::new(Arc::new(MemoryNode { number, shared: Arc::clone(self) }));
        Found { node, identity: self.identity(objects, number), stat: self.stat(objects, number) }
    }

    pub(super) fn touch(&self, objects: &mut Objects, number: u64, entries: bool) {
        let now = self.now();
        let object = objects.get(number);
        object.ctime = now;
        if entries {
            object.mtime = now;
        }
    }

    /// Removes one name from an object, or adds one.
    pub(super) fn relink(&self, objects: &mut Objects, number: u64, more: bool) {
        let object = objects.get(number);
        let directory = matches!(object.body, Body::Directory { .. });
        match more {
            true => object.links += 1,
            false if directory => object.links = 0,
            false => object.links -= 1,
        }
        self.touch(objects, number, false);
    }

    pub(super) fn create(
        self: &Arc<Self>,
        directory: u64,
        name: Bytes,
        new: &New,
        change: &AttributeChange,
    ) -> Result<Created, VolumeError> {
        let mut guard = self.lock();
        let objects = &mut *guard;
        if objects.entries(directory)?.contains_key(&name) {
            return Err(VolumeError::Exists);
        }
        let before = self.stat(objects, directory);
        let number = self.make(objects, directory, new, change);
        objects.entries(directory)?.insert(name, number);
        self.touch(objects, directory, true);
        let found = self.found(objects, number);
        let data = matches!(new, New::Regular).then(|| self.data(objects, number, found.stat));
        let after = self.stat(objects, directory);
        Ok(Created { found, data: data.flatten(), parent: Change { before, after }, stable: Stable::not_begun() })
    }

    /// Makes an object with one link.
    fn make(&self, objects: &mut Objects, directory: u64, new: &New, change: &AttributeChange) -> u64 {
        objects.generations += 1;
        let (body, mode) = match new {
            New::Regular => (Body::Regular { file: self.disk.create_file(), seen: 0 }, 0o644),
            New::Directory => (Body::Directory { parent: directory, entries: BTreeMap::new() }, 0o755),
            New::Symlink { target } => (Body::Symlink(target.clone()), 0o777),
            New::Special(kind) => (Body::Special(*kind), 0o644),
        };
        let (now, generation) = (self.now(), objects.generations);
        let number = objects.add(Object::new(generation, mode, now, body));
        self.set(objects, number, &change.for_new(false));
        number
    }

    pub(super) fn create_unnamed(
        self: &Arc<Self>,
        directory: u64,
        change: &AttributeChange,
    ) -> Result<Unnamed, VolumeError> {
        let mut guard = self.lock();
        let objects = &mut *guard;
        objects.entries(directory)?;
        let number = self.make(objects, directory, &New::Regular, change);
        let object = objects.get(number);
        (object.links, object.linkable) = (0, true);
        let found = self.found(objects, number);
        let data = self.data(objects, number, found.stat).ok_or(VolumeError::IsDirectory)?;
        Ok(Unnamed { found, data })
    }

    pub(super) fn set(&self, objects: &mut Objects, number: u64, change: &AttributeChange) {
        assert!(change.size.is_none(), "sizes are the engine's");
        // Writeback before this call must not move the times afterwards.
        self.stat(objects, number);
        let now = self.now();
        let object = objects.get(number);
        let time = |old: Timestamp, set: SetTime| match set {
            SetTime::Keep => old,
            SetTime::ServerNow => now,
            SetTime::To(time) => self.stored_time(time),
        };
        object.mode = change.mode.unwrap_or(object.mode);
        object.uid = change.uid.unwrap_or(object.uid);
        object.gid = change.gid.unwrap_or(object.gid);
        object.atime = time(object.atime, change.atime);
        object.mtime = time(object.mtime, change.mtime);
        object.ctime = now;
    }

    /// Only `user.` and, for root, `trusted.` are known here: there are no access control lists.
    pub(super) fn change_xattr(
        &self,
        number: u64,
        name: Bytes,
        change: XattrChange,
        privileged: bool,
    ) -> Result<ChangedAttributes, VolumeError> {
        match () {
            () if name.starts_with(b"user.") => {}
            () if !name.starts_with(b"trusted.") => return Err(VolumeError::NotSupported),
            () if !privileged => return Err(VolumeError::NotPermitted),
            () => {}
        }
        let mut guard = self.lock();
        let objects = &mut *guard;
        // Writeback before this call must not move the times afterwards.
        self.stat(objects, number);
        let xattrs = &mut objects.get(number).xattrs;
        match (change, xattrs.contains_key(&name)) {
            (XattrChange::Create(_), true) => return Err(VolumeError::Exists),
            (XattrChange::Replace(_) | XattrChange::Remove, false) => return Err(VolumeError::NoAttribute),
            (XattrChange::Remove, true) => drop(xattrs.remove(&name)),
            (XattrChange::Set(value) | XattrChange::Create(value) | XattrChange::Replace(value), _) => {
                xattrs.insert(name, value);
            }
        }
        self.touch(objects, number, false);
        Ok(ChangedAttributes { stat: self.stat(objects, number), stable: Stable::not_begun() })
    }

    pub(super) fn data(&self, objects: &mut Objects, number: u64, stat: Stat) -> Option<OpenedData> {
        match objects.get(number).body {
            Body::Regular { file, .. } => Some(OpenedData { backing: self.disk.backing(file), stat, writable: true }),
            _ => None,
        }
    }

    pub(super) fn remove(&self, directory: u64, name: &[u8], directory_wanted: bool) -> Result<Removed, VolumeError> {
        let mut guard = self.lock();
        let objects = &mut *guard;
        let number = objects.entry(directory, name)?;
        match (&objects.get(number).body, directory_wanted) {
            (Body::Directory { .. }, false) => return Err(VolumeError::IsDirectory),
            (Body::Directory { entries, .. }, true) if !entries.is_empty() => {
                return Err(VolumeError::NotEmpty);
            }
            (Body::Directory { .. }, true) => {}
            (_, true) => return Err(VolumeError::NotDirectory),
            (_, false) => {}
        }
        let before = self.stat(objects, directory);
        objects.entries(directory)?.remove(name);
        self.relink(objects, number, false);
        self.touch(objects, directory, true);
        let (identity, stat) = (self.identity(objects, number), self.stat(objects, number));
        let after = self.stat(objects, directory);
        self.reap(objects, number);
        Ok(Removed { identity, stat, parent: Change { before, after }, stable: Stable::not_begun() })
    }

    pub(super) fn rename(
        &self,
        from: u64,
        from_name: Bytes,
        to: u64,
        to_name: Bytes,
        how: RenameHow,
    ) -> Result<Renamed, VolumeError> {
        let mut guard = self.lock();
        let objects = &mut *guard;
        let number = objects.entry(from, &from_name)?;
        let there = objects.entries(to)?.get(&to_name).copied();
        match (how, there) {
            (RenameHow::Whiteout { .. }, _) => {
                return Err(VolumeError::Invalid { what: "a rename with a whiteout, which this tree does not make" });
            }
            (RenameHow::NoReplace, Some(_)) => return Err(VolumeError::Exists),
            (RenameHow::Exchange, None) => return Err(VolumeError::NotFound),
            (RenameHow::Exchange, Some(other)) if other != number => {
                return self.exchange(
                    objects,
                    NamedObject { directory: from, name: from_name, number },
                    NamedObject { directory: to, name: to_name, number: other },
                );
            }
            _ => {}
        }
        let replaced = there.filter(|other| *other != number);
        let same = there == Some(number);
        let directory = matches!(objects.get(number).body, Body::Directory { .. });
        if directory && objects.find_above(number, to) {
            return Err(VolumeError::Invalid { what: "a directory cannot be moved into itself" });
        }
        match replaced.map(|other| &objects.get(other).body) {
            Some(Body::Directory { .. }) if !directory => return Err(VolumeError::IsDirectory),
            Some(Body::Directory { entries, .. }) if !entries.is_empty() => {
                return Err(VolumeError::NotEmpty);
            }
            Some(Body::Directory { .. }) | None => {}
            Some(_) if directory => return Err(VolumeError::NotDirectory),
            Some(_) => {}
        }
        let (from_before, to_before) = (self.stat(objects, from), self.stat(objects, to));
        if !same {
            objects.entries(from)?.remove(&from_name);
            objects.entries(to)?.insert(to_name, number);
            if let Body::Directory { parent, .. } = &mut objects.get(number).body {
                *parent = to;
            }
            self.touch(objects, from, true);
            self.touch(objects, to, true);
            self.touch(objects, number, false);
        }
        let replaced = replaced.map(|other| {
            self.relink(objects, other, false);
            let is = (self.identity(objects, other), self.stat(objects, other));
            self.reap(objects, other);
            is
        });
        Ok(Renamed {
            moved: (self.identity(objects, number), self.stat(objects, number)),
            replaced,
            from: Change { before: from_before, after: self.stat(objects, from) },
            to: Change { before: to_before, after: self.stat(objects, to) },
            stable: Stable::not_begun(),
        })
    }

    /// Two names swap their objects.
    fn exchange(&self, objects: &mut Objects, one: NamedObject, other: NamedObject) -> Result<Renamed, VolumeError> {
        let (number, other_number, from, to) = (one.number, other.number, one.directory, other.directory);
        for (moved, into) in [(number, to), (other_number, from)] {
            if matches!(objects.get(moved).body, Body::Directory { .. }) && objects.find_above(moved, into) {
                return Err(VolumeError::Invalid { what: "a directory cannot be moved into itself" });
            }
        }
        let (from_before, to_before) = (self.stat(objects, from), self.stat(objects, to));
        for (moved, into, name) in [(number, to, other.name), (other_number, from, one.name)] {
            objects.entries(into)?.insert(name, moved);
            if let Body::Directory { parent, .. } = &mut objects.get(moved).body {
                *parent = into;
            }
            self.touch(objects, into, true);
            self.touch(objects, moved, false);
        }
        Ok(Renamed {
            moved: (self.identity(objects, number), self.stat(objects, number)),
            replaced: Some((self.identity(objects, other_number), self.stat(objects, other_number))),
            from: Change { before: from_before, after: self.stat(objects, from) },
            to: Change { before: to_before, after: self.stat(objects, to) },
            stable: Stable::not_begun(),
        })
    }

    pub(super) fn link(&self, number: u64, directory: u64, name: Bytes) -> Result<Linked, VolumeError> {
        let mut guard = self.lock();
        let objects = &mut *guard;
        let object = objects.get(number);
        if object.links == 0 && !object.linkable {
            return Err(VolumeError::Stale);
        }
        if objects.entries(directory)?.contains_key(&name) {
            return Err(VolumeError::Exists);
        }
        let before = self.stat(objects, directory);
        objects.entries(directory)?.insert(name, number);
        objects.get(number).linkable = false;
        self.relink(objects, number, true);
        self.touch(objects, directory, true);
        let stat = self.stat(objects, number);
        let after = self.stat(objects, directory);
        Ok(Linked { stat, parent: Change { before, after }, stable: Stable::not_begun() })
    }
}
