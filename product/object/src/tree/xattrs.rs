//! Extended attributes.
//!
//! Owns: their records, the namespaces, the bounds on an object's names and on all bytes of its attributes.
//! Does not own: access control lists (`acl`), which are in their inode and have a bound of their own.
//! Invariants: an inode says whether its object may have attributes, so that others cost no read. Attributes go before
//! their inode. No call holds more than a part of an object's values.

use afflux_volume::{ChangedAttributes, Kind, VolumeError, XattrChange};
use bytes::Bytes;

use super::acl::{self, AclKind};
use super::cache::XattrBytes;
use super::edit::Edit;
use super::permission::{self, READ, User, WRITE};
use super::read::{ReadView, Used};
use super::state::ObjectTree;
use crate::error::ObjectVolumeError;
use crate::format::tree::InodeRecord;
use crate::open::get;
use crate::seams::{Durability, PagedScan, RecordChange, RecordDatabase};
use crate::tree::state::DataCore;

/// Most bytes of an object's names, each with a zero behind it: Linux lists no more.
const NAMES_BYTES_MAX: usize = 65_536;
/// Most bytes of an object's names and values. A value has 64 KiB at most.
const ALL_BYTES_MAX: usize = 1 << 20;

/// The names of a volume's namespaces begin with these. Nothing is called by one of them alone.
const NAMESPACES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
const NO_NAME: VolumeError = VolumeError::Invalid { what: "a namespace without a name behind it" };

/// Refuses a name that no attribute of a volume has, and an object or a user that may not have it. Linux checks the
/// rights before it looks up a name behind the namespace.
fn check(view: &ReadView, user: User<'_>, name: &[u8], wanted: u8) -> Result<(), VolumeError> {
    check_rights(view, user, name, wanted)?;
    if NAMESPACES.contains(&name) { Err(NO_NAME) } else { Ok(()) }
}

fn check_rights(view: &ReadView, user: User<'_>, name: &[u8], wanted: u8) -> Result<(), VolumeError> {
    let inode = view.current();
    let (owned, is_root) = (inode.owned(), permission::is_root(user));
    if name.starts_with(b"user.") {
        if !matches!(owned.kind, Kind::Regular | Kind::Directory) {
            return Err(if wanted == READ { VolumeError::NoAttribute } else { VolumeError::NotPermitted });
        }
        if wanted == WRITE {
            permission::check_change_xattr(owned, user)?;
        }
        let has_right = permission::rights(owned, user) & wanted != 0;
        return if has_right { Ok(()) } else { Err(VolumeError::Denied) };
    }
    match (name.starts_with(b"trusted."), name.starts_with(b"security."), wanted) {
        (true, _, READ) if !is_root => Err(VolumeError::NoAttribute),
        (true, ..) | (_, true, WRITE) if !is_root => Err(VolumeError::NotPermitted),
        (true, ..) | (_, true, _) => Ok(()),
        _ => Err(VolumeError::NotSupported),
    }
}

impl<D: DataCore> ObjectTree<D> {
    pub(super) async fn xattr(&self, used: &Used, name: &[u8]) -> Result<Bytes, VolumeError> {
        let view = self.held(used).await?;
        if let Some(kind) = AclKind::of_name(name) {
            return acl::list_of(&view.current(), kind);
        }
        check(&view, used.user(), name, READ)?;
        self.xattr_of(&view, name).await?.ok_or(VolumeError::NoAttribute)
    }

    async fn xattr_of(&self, view: &ReadView, name: &[u8]) -> Result<Option<Bytes>, VolumeError> {
        if !view.current().has_xattrs {
            return Ok(None);
        }
        let key = InodeRecord::xattr_key(view.slot.ino, name);
        Ok(get(self.core.records(), &key).await?.map(Bytes::from))
    }

    async fn xattr_names(&self, view: &ReadView) -> Result<Vec<Bytes>, VolumeError> {
        if !view.current().has_xattrs {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        let mut scan = scan_of(view.slot.ino);
        while let Some(found) = scan.next(self.core.records()).await? {
            names.extend(found.iter().map(|(key, _)| Bytes::copy_from_slice(InodeRecord::xattr_name(key))));
        }
        Ok(names)
    }

    /// The bytes of an object's attributes. They are counted once, and then followed in memory.
    async fn xattr_bytes(&self, view: &ReadView) -> Result<XattrBytes, VolumeError> {
        if !view.current().has_xattrs {
            return Ok(XattrBytes::default());
        }
        if let Some(counted) = view.slot.xattr_bytes() {
            return Ok(counted);
        }
        let (mut bytes, mut scan) = (XattrBytes::default(), scan_of(view.slot.ino));
        while let Some(found) = scan.next(self.core.records()).await? {
            found.iter().for_each(|(key, value)| bytes.add(InodeRecord::xattr_name(key), value));
        }
        Ok(bytes)
    }

    pub(super) async fn xattrs(&self, used: &Used) -> Result<Vec<Bytes>, VolumeError> {
        let view = self.held(used).await?;
        let mut names = self.xattr_names(&view).await?;
        names.retain(|name| permission::is_root(used.user()) || !name.starts_with(b"trusted."));
        names.extend(acl::names(&view.current().acls));
        Ok(names)
    }

    pub(super) async fn change_xattr(
        &self,
        used: &Used,
        name: &[u8],
        change: XattrChange,
        durable: bool,
    ) -> Result<ChangedAttributes, VolumeError> {
        if let Some(kind) = AclKind::of_name(name) {
            return self.change_acl(used, kind, &change, durable).await;
        }
        loop {
            let view = self.held(used).await?;
            check(&view, used.user(), name, WRITE)?;
            let mut bytes = self.xattr_bytes(&view).await?;
            let before = self.xattr_of(&view, name).await?;
            match (&change, before.is_some()) {
                (XattrChange::Create(_), true) => return Err(VolumeError::Exists),
                (XattrChange::Replace(_) | XattrChange::Remove, false) => return Err(VolumeError::NoAttribute),
                _ => {}
            }
            before.iter().for_each(|value| bytes.subtract(name, value));
            value_of(&change).iter().for_each(|value| bytes.add(name, value));
            if bytes.is_too_large() {
                return Err(VolumeError::NoSpace);
            }
            if let Some(changed) = self.change_xattr_now(&view, name, &change, bytes, durable)? {
                return Ok(changed);
            }
        }
    }

    /// Changes an attribute, unless the object changed since its attributes were read.
    fn change_xattr_now(
        &self,
        view: &ReadView,
        name: &[u8],
        change: &XattrChange,
        bytes: XattrBytes,
        durable: bool,
    ) -> Result<Option<ChangedAttributes>, VolumeError> {
        let mut order = self.order();
        let Some(mut inode) = view.unchanged() else { return Ok(None) };
        let (ino, mut edit) = (view.slot.ino, Edit::default());
        let key = InodeRecord::xattr_key(ino, name);
        match change {
            XattrChange::Set(value) | XattrChange::Create(value) | XattrChange::Replace(value) => {
                inode.has_xattrs = true;
                edit.record(RecordChange::Put(key, value.to_vec()));
            }
            XattrChange::Remove => edit.record(RecordChange::Remove(key)),
        }
        inode.touch(self.now(), &view.body);
        let stat = self.stat_of(ino, &inode, view.body);
        edit.inode(&view.slot, inode);
        let sequence = self.apply(&mut order, edit)?;
        view.slot.set_xattr_bytes(bytes);
        Ok(Some(ChangedAttributes { stat, stable: self.stable(sequence, durable) }))
    }
}

fn value_of(change: &XattrChange) -> Option<&Bytes> {
    match change {
        XattrChange::Set(value) | XattrChange::Create(value) | XattrChange::Replace(value) => Some(value),
        XattrChange::Remove => None,
    }
}

/// Takes the privileges of a program, as Linux does with a change of its owner.
pub(super) fn remove_capability(ino: u64) -> RecordChange {
    RecordChange::Remove(InodeRecord::xattr_key(ino, b"security.capability"))
}

/// Removes the attributes of an object that nobody uses.
pub(super) async fn remove_xattrs<D: DataCore>(core: &D, ino: u64) -> Result<(), ObjectVolumeError> {
    let mut scan = scan_of(ino);
    while let Some(found) = scan.next(core.records()).await? {
        core.records().apply(found.into_iter().map(|(key, _)| RecordChange::Remove(key)).collect())?;
    }
    Ok(())
}

impl XattrBytes {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        self.names += name.len() + 1;
        self.all += name.len() + 1 + value.len();
    }

    fn subtract(&mut self, name: &[u8], value: &[u8]) {
        self.names = self.names.saturating_sub(name.len() + 1);
        self.all = self.all.saturating_sub(name.len() + 1 + value.len());
    }

    fn is_too_large(self) -> bool {
        self.names > NAMES_BYTES_MAX || self.all > ALL_BYTES_MAX
    }
}

/// A scan of all attributes of an object.
fn scan_of(ino: u64) -> PagedScan {
    let (from, end) = InodeRecord::xattr_keys(ino);
    PagedScan::new(from, end, Durability::Applied)
}
