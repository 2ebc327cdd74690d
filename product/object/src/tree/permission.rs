//! Rights on objects by the rules of Linux. No host checks them.
//!
//! Owns: rights by mode bits and access control lists, the sticky bit, devices, further names, owners and modes of new
//! objects, changes of owner, group, mode and times.
//! Does not own: other effects of lists (`acl`), when a rule is asked; the exceptions of NFS for owners, which the
//! volume makes.
//! Invariants: pure functions of plain values. No user means the server itself, which has root's rights.

use afflux_volume::{AttributeChange, Credentials, Kind, SetTime, VolumeError};

use crate::format::acl::AccessAcl;
use crate::format::tree::Content;

const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;
const STICKY: u32 = 0o1000;
const GROUP_EXECUTES: u32 = 0o010;
const GROUP_CLASS: u32 = 0o070;
const ALL_CLASSES: u32 = 0o777;

/// Reading, as in the answer of `Directory::access`.
pub(super) const READ: u8 = 1;
pub(super) const WRITE: u8 = 2;
/// Executing a file, searching a directory.
pub(super) const EXECUTE: u8 = 4;

/// The attributes that give rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owned<'a> {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) access: Option<&'a AccessAcl>,
}

/// The user of a call; none for the server itself.
pub(super) type User<'a> = Option<&'a Credentials>;

pub(super) fn is_root(user: User<'_>) -> bool {
    user.is_none_or(Credentials::is_root)
}

fn is_owner(user: User<'_>, object: Owned<'_>) -> bool {
    user.is_none_or(|user| user.is_root() || user.uid == object.uid)
}

/// Whether the user may give an object of this group the setgid bit.
fn may_set_group(user: User<'_>, gid: u32) -> bool {
    user.is_none_or(|user| user.is_root() || user.is_in(gid))
}

/// The rights of a user, each asked for alone, as a sum of [`READ`], [`WRITE`] and [`EXECUTE`].
pub(super) fn rights(object: Owned<'_>, user: User<'_>) -> u8 {
    [READ, WRITE, EXECUTE].into_iter().filter(|right| has_rights(object, user, *right)).sum()
}

/// Whether a user has all these rights. Two entries of a list for groups that give one right each do not give both
/// together.
pub(super) fn has_rights(object: Owned<'_>, user: User<'_>, wanted: u8) -> bool {
    if object.kind == Kind::Symlink {
        return true;
    }
    let Some(user) = user.filter(|user| !user.is_root()) else {
        return wanted & EXECUTE == 0 || object.kind == Kind::Directory || object.mode & 0o111 != 0;
    };
    let bits = bits_of(wanted);
    let gives = |class: u32| bits & !(object.mode >> class) == 0;
    match object.access {
        _ if user.uid == object.uid => gives(6),
        // As Linux has it: where the mask gives nothing, the list does not count. The users that it names are others.
        Some(access) if object.mode & GROUP_CLASS != 0 => match by_entries(access, object.gid, user, bits) {
            Some(is_given) => is_given && gives(3),
            None => gives(0),
        },
        _ if user.is_in(object.gid) => gives(3),
        _ => gives(0),
    }
}

/// Whether an entry for the user gives these rights, before the mask. `None` if no entry is about the user.
fn by_entries(access: &AccessAcl, own_gid: u32, user: &Credentials, bits: u32) -> Option<bool> {
    let gives = |rights: u8| bits & !u32::from(rights) == 0;
    if let Some(entry) = access.named.iter().find(|entry| !entry.is_group && entry.id == user.uid) {
        return Some(gives(entry.rights));
    }
    let groups = access.named.iter().filter(|entry| entry.is_group).map(|entry| (entry.id, entry.rights));
    let own = [(own_gid, access.group)].into_iter().chain(groups).filter(|(gid, _)| user.is_in(*gid));
    own.map(|(_, rights)| gives(rights)).reduce(|one, other| one || other)
}

/// A class of a mode has read, write, execute from high to low; rights have them from low to high.
fn bits_of(rights: u8) -> u32 {
    let bit = |right, bit| if rights & right != 0 { bit } else { 0 };
    bit(READ, 4) | bit(WRITE, 2) | bit(EXECUTE, 1)
}

/// Refuses to look up a name in a directory without the right to search it.
pub(super) fn check_search(directory: Owned<'_>, user: User<'_>) -> Result<(), VolumeError> {
    if has_rights(directory, user, EXECUTE) { Ok(()) } else { Err(VolumeError::Denied) }
}

/// Refuses to make a device: whoever opens one has the rights of its driver, whatever the rights on the volume. Linux
/// makes an exception for the device 0:0, which is none.
pub(super) fn check_make(content: &Content, user: User<'_>) -> Result<(), VolumeError> {
    let is_device = match content {
        Content::BlockDevice { .. } => true,
        Content::CharDevice { major, minor } => (*major, *minor) != (0, 0),
        _ => false,
    };
    if is_device && !is_root(user) { Err(VolumeError::NotPermitted) } else { Ok(()) }
}

/// Refuses to give a further name to another user's object that the user cannot read and write, or that gives
/// privileges (`fs.protected_hardlinks`, which every distribution sets). Otherwise a user could retain it past its
/// removal.
pub(super) fn check_link(object: Owned<'_>, user: User<'_>) -> Result<(), VolumeError> {
    let gives_privileges =
        object.mode & SET_USER != 0 || object.mode & (SET_GROUP | GROUP_EXECUTES) == SET_GROUP | GROUP_EXECUTES;
    let is_safe = object.kind == Kind::Regular && !gives_privileges && has_rights(object, user, READ | WRITE);
    if is_owner(user, object) || is_safe { Ok(()) } else { Err(VolumeError::NotPermitted) }
}

/// Refuses a change of a directory's entries without the rights to write and search it.
pub(super) fn check_change_entries(directory: Owned<'_>, user: User<'_>) -> Result<(), VolumeError> {
    if has_rights(directory, user, WRITE | EXECUTE) { Ok(()) } else { Err(VolumeError::Denied) }
}

/// Refuses to take a name from an object. In a sticky directory only the owners of either may.
pub(super) fn check_unname(directory: Owned<'_>, object: Owned<'_>, user: User<'_>) -> Result<(), VolumeError> {
    check_change_entries(directory, user)?;
    let is_free = directory.mode & STICKY == 0 || is_owner(user, directory) || is_owner(user, object);
    if is_free { Ok(()) } else { Err(VolumeError::NotPermitted) }
}

/// Refuses a change of a user's extended attribute. In a sticky directory, as of a directory for temporary files, only
/// the directory's owner may.
pub(super) fn check_change_xattr(object: Owned<'_>, user: User<'_>) -> Result<(), VolumeError> {
    let is_free = object.kind != Kind::Directory || object.mode & STICKY == 0 || is_owner(user, object);
    if is_free { Ok(()) } else { Err(VolumeError::NotPermitted) }
}

/// Refuses a change of an access control list to all but the owner.
pub(super) fn check_change_acl(object: Owned<'_>, user: User<'_>) -> Result<(), VolumeError> {
    match object.kind {
        Kind::Symlink => Err(VolumeError::NotSupported),
        _ if is_owner(user, object) => Ok(()),
        _ => Err(VolumeError::NotPermitted),
    }
}

/// The mode of an object whose owner gives it a list with the mode bits `by_list`.
pub(super) fn mode_by_acl(object: Owned<'_>, user: User<'_>, by_list: u32) -> u32 {
    let mode = object.mode & !ALL_CLASSES | by_list;
    if may_set_group(user, object.gid) { mode } else { mode & !SET_GROUP }
}

/// Refuses to move an object out of its directory: a directory's own parent changes.
pub(super) fn check_change_parent(object: Owned<'_>, user: User<'_>) -> Result<(), VolumeError> {
    let is_free = object.kind != Kind::Directory || has_rights(object, user, WRITE);
    if is_free { Ok(()) } else { Err(VolumeError::Denied) }
}

/// The owner, group and mode of a new object.
pub(super) fn of_new(directory: Owned<'_>, user: User<'_>, kind: Kind, wanted: &AttributeChange) -> Owned<'static> {
    let (own_uid, own_gid) = user.map_or((0, 0), |user| (user.uid, user.gid));
    let inherits = directory.mode & SET_GROUP != 0;
    let default_gid = if inherits { directory.gid } else { own_gid };
    // A new object belongs to its user. Only root may request another owner.
    let (uid, gid) = match is_root(user) {
        true => (wanted.uid.unwrap_or(own_uid), wanted.gid.unwrap_or(default_gid)),
        false => (own_uid, default_gid),
    };
    let default_mode = if kind == Kind::Directory { 0o755 } else { 0o644 };
    let mut mode = wanted.mode.unwrap_or(default_mode);
    // Without the right to execute the bit gives no privilege.
    let is_privilege = kind == Kind::Directory || mode & GROUP_EXECUTES != 0;
    if is_privilege && !may_set_group(user, gid) {
        mode &= !SET_GROUP;
    }
    if kind == Kind::Directory && inherits {
        mode |= SET_GROUP;
    }
    Owned { kind, mode: if kind == Kind::Symlink { 0o777 } else { mode }, uid, gid, access: None }
}

/// The owner, group and mode after a change, or the reason that a user may not make it. The times are checked, too.
pub(super) fn changed<'a>(
    object: Owned<'a>,
    user: User<'_>,
    change: &AttributeChange,
) -> Result<Owned<'a>, VolumeError> {
    let (owns, mut after) = (is_owner(user, object), object);
    if let Some(uid) = change.uid {
        if !(is_root(user) || owns && uid == object.uid) {
            return Err(VolumeError::NotPermitted);
        }
        after.uid = uid;
    }
    if let Some(gid) = change.gid {
        let is_own = user.is_some_and(|user| user.is_in(gid)) || gid == object.gid;
        if !(is_root(user) || owns && is_own) {
            return Err(VolumeError::NotPermitted);
        }
        after.gid = gid;
    }
    if (change.uid.is_some() || change.gid.is_some()) && object.kind != Kind::Directory {
        after.mode = without_privileges(object, user);
    }
    if let Some(mode) = change.mode.filter(|_| object.kind != Kind::Symlink) {
        if !owns {
            return Err(VolumeError::NotPermitted);
        }
        after.mode = if may_set_group(user, after.gid) { mode } else { mode & !SET_GROUP };
    }
    check_set_times(object, user, owns, change)?;
    Ok(after)
}

/// The mode of a file after a change of its owner or group. A setgid bit without the right to execute gives no
/// privilege, and stays if the user could set it.
fn without_privileges(file: Owned<'_>, user: User<'_>) -> u32 {
    let is_privilege = file.mode & GROUP_EXECUTES != 0 || !may_set_group(user, file.gid);
    file.mode & !(SET_USER | if is_privilege { SET_GROUP } else { 0 })
}

/// An owner may set any times. A writer may set the current time.
fn check_set_times(object: Owned<'_>, user: User<'_>, owns: bool, change: &AttributeChange) -> Result<(), VolumeError> {
    let times = [change.atime, change.mtime];
    if owns || times == [SetTime::Keep; 2] {
        return Ok(());
    }
    if times.iter().any(|time| matches!(time, SetTime::To(_))) {
        return Err(VolumeError::NotPermitted);
    }
    if has_rights(object, user, WRITE) { Ok(()) } else { Err(VolumeError::Denied) }
}

#[cfg(test)]
mod tests;
