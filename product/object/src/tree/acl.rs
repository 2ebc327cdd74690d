//! POSIX access control lists of objects, as Linux has them.
//!
//! Owns: the form of a list for callers (acl(5)) and its validity, its effect on the mode, the lists of new objects.
//! Does not own: the rights that a list gives (`permission`), its record (`format::acl`).
//! Invariants: a list that says no more than a mode is the mode. A change of the mode changes the mask with it, since
//! both are one value. Lists of a directory and of a host's directory do the same (`lists_do_what_a_host_does`).

use std::sync::Arc;

use afflux_volume::acl_form::{ENTRY_BYTES, NO_ID, VERSION, tag};
use afflux_volume::{ACCESS_ACL, ChangedAttributes, DEFAULT_ACL, Kind, VolumeError, XattrChange};
use bytes::Bytes;

use super::edit::Edit;
use super::permission;
use super::read::{ReadView, Used};
use super::state::{DataCore, ObjectTree};
use crate::format::acl::{AccessAcl, Acl, Acls, NAMED_MAX, NamedEntry};
use crate::format::tree::InodeRecord;

/// The entries that a list has once at most: the owner, the group, the mask, the others.
const SINGLE_MAX: usize = 4;
const NO_LIST: VolumeError = VolumeError::Invalid { what: "no access control list" };

/// The lists of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AclKind {
    Access,
    Default,
}

impl AclKind {
    /// The list of an extended attribute's name.
    pub(super) fn of_name(name: &[u8]) -> Option<Self> {
        match name {
            ACCESS_ACL => Some(Self::Access),
            DEFAULT_ACL => Some(Self::Default),
            _ => None,
        }
    }
}

/// The entries of a list that were not read yet.
struct Entries<'a>(&'a [[u8; ENTRY_BYTES]]);

impl Entries<'_> {
    /// Takes the next entry, if it has this tag: its rights and its number.
    fn next_with(&mut self, tag: u16) -> Result<Option<(u8, u32)>, VolumeError> {
        let Some(([tag_low, tag_high, low, high, id @ ..], rest)) = self.0.split_first() else { return Ok(None) };
        if u16::from_le_bytes([*tag_low, *tag_high]) != tag {
            return Ok(None);
        }
        self.0 = rest;
        match u16::from_le_bytes([*low, *high]) {
            rights @ 0..=7 => Ok(Some((rights as u8, u32::from_le_bytes(*id)))),
            _ => Err(NO_LIST),
        }
    }

    fn single(&mut self, tag: u16) -> Result<u8, VolumeError> {
        self.next_with(tag)?.map(|(rights, _)| rights).ok_or(NO_LIST)
    }

    fn named(&mut self, tag: u16, named: &mut Vec<NamedEntry>) -> Result<(), VolumeError> {
        while let Some((rights, id)) = self.next_with(tag)? {
            if id == NO_ID {
                return Err(NO_LIST);
            }
            named.push(NamedEntry { is_group: tag == tag::GROUP, id, rights });
        }
        Ok(())
    }
}

/// Reads a list. Nothing for one without entries.
fn read(value: &[u8]) -> Result<Option<Acl>, VolumeError> {
    if value.is_empty() {
        return Ok(None);
    }
    let (version, entries) = value.split_first_chunk().ok_or(NO_LIST)?;
    if u32::from_le_bytes(*version) != VERSION {
        return Err(VolumeError::NotSupported);
    }
    let (entries, rest) = entries.as_chunks();
    if !rest.is_empty() {
        return Err(NO_LIST);
    }
    if entries.is_empty() {
        return Ok(None);
    }
    if entries.len() > NAMED_MAX + SINGLE_MAX {
        return Err(VolumeError::NoSpace);
    }
    let (mut entries, mut named) = (Entries(entries), Vec::new());
    let owner = entries.single(tag::USER_OBJ)?;
    entries.named(tag::USER, &mut named)?;
    let group = entries.single(tag::GROUP_OBJ)?;
    entries.named(tag::GROUP, &mut named)?;
    let mask = entries.next_with(tag::MASK)?.map(|(rights, _)| rights);
    let others = entries.single(tag::OTHER)?;
    if !entries.0.is_empty() || mask.is_none() && !named.is_empty() {
        return Err(NO_LIST);
    }
    if named.len() > NAMED_MAX {
        Err(VolumeError::NoSpace)
    } else {
        Ok(Some(Acl { owner, group, mask, others, named }))
    }
}

fn write(acl: &Acl) -> Bytes {
    let mut value = VERSION.to_le_bytes().to_vec();
    let mut put = |tag: u16, rights: u8, id: u32| {
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&u16::from(rights).to_le_bytes());
        value.extend_from_slice(&id.to_le_bytes());
    };
    let (users, groups): (Vec<&NamedEntry>, Vec<&NamedEntry>) = acl.named.iter().partition(|entry| !entry.is_group);
    put(tag::USER_OBJ, acl.owner, NO_ID);
    users.iter().for_each(|entry| put(tag::USER, entry.rights, entry.id));
    put(tag::GROUP_OBJ, acl.group, NO_ID);
    groups.iter().for_each(|entry| put(tag::GROUP, entry.rights, entry.id));
    acl.mask.iter().for_each(|mask| put(tag::MASK, *mask, NO_ID));
    put(tag::OTHER, acl.others, NO_ID);
    Bytes::from(value)
}

impl Acl {
    /// The access list of an object with this mode.
    fn of_access(access: &AccessAcl, mode: u32) -> Self {
        let rights = |shift: u32| (mode >> shift & 7) as u8;
        let (group, named) = (access.group, access.named.clone());
        Self { owner: rights(6), group, mask: Some(rights(3)), others: rights(0), named }
    }

    /// The mode of an object with this access list.
    fn mode(&self) -> u32 {
        let (owner, group) = (u32::from(self.owner), u32::from(self.mask.unwrap_or(self.group)));
        owner << 6 | group << 3 | u32::from(self.others)
    }

    /// The part of the list that the mode does not have.
    fn access(&self) -> Option<Arc<AccessAcl>> {
        self.mask.map(|_| Arc::new(AccessAcl { group: self.group, named: self.named.clone() }))
    }
}

/// The mode and the lists of a new object in a directory with this default list. The list bounds the mode.
pub(super) fn of_new(default: Option<&Arc<Acl>>, kind: Kind, mode: u32) -> (u32, Acls) {
    let Some(default) = default.filter(|_| kind != Kind::Symlink) else { return (mode, Acls::default()) };
    let handed_on = (kind == Kind::Directory).then(|| Arc::clone(default));
    (mode & (default.mode() | !0o777), Acls { access: default.access(), default: handed_on })
}

/// The list of an object. [`VolumeError::NoAttribute`] if it has none.
pub(super) fn list_of(inode: &InodeRecord, kind: AclKind) -> Result<Bytes, VolumeError> {
    if inode.kind() == Kind::Symlink {
        return Err(VolumeError::NotSupported);
    }
    let list = match kind {
        AclKind::Access => inode.acls.access.as_deref().map(|access| write(&Acl::of_access(access, inode.mode))),
        AclKind::Default => inode.acls.default.as_deref().map(write),
    };
    list.ok_or(VolumeError::NoAttribute)
}

/// The names of the lists that an object has, as extended attributes.
pub(super) fn names(acls: &Acls) -> impl Iterator<Item = Bytes> {
    let access = acls.access.as_ref().map(|_| Bytes::from_static(ACCESS_ACL));
    access.into_iter().chain(acls.default.as_ref().map(|_| Bytes::from_static(DEFAULT_ACL)))
}

impl<D: DataCore> ObjectTree<D> {
    /// Sets a list, or removes it. As on Linux it does not matter whether there was one.
    pub(super) async fn change_acl(
        &self,
        used: &Used,
        kind: AclKind,
        change: &XattrChange,
        durable: bool,
    ) -> Result<ChangedAttributes, VolumeError> {
        let view = self.held(used).await?;
        let acl = match change {
            XattrChange::Set(value) | XattrChange::Create(value) | XattrChange::Replace(value) => read(value),
            XattrChange::Remove => Ok(None),
        };
        if kind == AclKind::Default && !matches!(view.inode.kind(), Kind::Directory | Kind::Symlink) {
            return match acl {
                Ok(None) => Ok(self.unchanged(&view, durable)),
                _ => Err(VolumeError::Denied),
            };
        }
        permission::check_change_acl(view.current().owned(), used.user())?;
        let acl = acl?;
        if acl.as_ref().is_some_and(|acl| kind == AclKind::Default || acl.mask.is_some()) {
            self.core.begin_acls()?;
        }
        let mut order = self.order();
        let mut inode = view.current();
        permission::check_change_acl(inode.owned(), used.user())?;
        match (kind, acl) {
            (AclKind::Default, acl) => inode.acls.default = acl.map(Arc::new),
            (AclKind::Access, None) => inode.acls.access = None,
            (AclKind::Access, Some(acl)) => {
                inode.mode = permission::mode_by_acl(inode.owned(), used.user(), acl.mode());
                inode.acls.access = acl.access();
            }
        }
        inode.touch(self.now(), &view.body);
        let stat = self.stat_of(used.ino(), &inode, view.body);
        let mut edit = Edit::default();
        edit.inode(&view.slot, inode);
        let sequence = self.apply(&mut order, edit)?;
        Ok(ChangedAttributes { stat, stable: self.stable(sequence, durable) })
    }

    fn unchanged(&self, view: &ReadView, durable: bool) -> ChangedAttributes {
        let told = self.order().told;
        ChangedAttributes { stat: self.stat_of_view(view), stable: self.stable(told, durable) }
    }
}

#[cfg(test)]
mod tests;
