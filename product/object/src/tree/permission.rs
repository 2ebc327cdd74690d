//! Rights on objects by the rules of Linux. No host checks them.
//!
//! Owns: rights by mode bits, the sticky bit, devices, further names, owners and modes of new objects, changes of
//! owner, group, mode and times.
//! Does not own: when a rule is asked; the exceptions of NFS for owners, which the volume makes.
//! Invariants: pure functions of plain values. No user means the server itself, which has root's rights.

use afflux_volume::{AttributeChange, Credentials, Kind, SetTime, VolumeError};

use crate::format::tree::Content;

const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;
const STICKY: u32 = 0o1000;
const GROUP_EXECUTES: u32 = 0o010;

/// Reading, as in the answer of `Directory::access`.
pub(super) const READ: u8 = 1;
pub(super) const WRITE: u8 = 2;
/// Executing a file, searching a directory.
pub(super) const EXECUTE: u8 = 4;

/// The attributes that give rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The user of a call; none for the server itself.
pub(super) type User<'a> = Option<&'a Credentials>;

pub(super) fn is_root(user: User<'_>) -> bool {
    user.is_none_or(Credentials::is_root)
}

fn is_owner(user: User<'_>, object: Owned) -> bool {
    user.is_none_or(|user| user.is_root() || user.uid == object.uid)
}

/// Whether the user may give an object of this group the setgid bit.
fn may_set_group(user: User<'_>, gid: u32) -> bool {
    user.is_none_or(|user| user.is_root() || user.is_in(gid))
}

/// The rights of a user, as a sum of [`READ`], [`WRITE`] and [`EXECUTE`].
pub(super) fn rights(object: Owned, user: User<'_>) -> u8 {
    if object.kind == Kind::Symlink {
        return READ | WRITE | EXECUTE;
    }
    let Some(user) = user.filter(|user| !user.is_root()) else {
        let executes = object.kind == Kind::Directory || object.mode & 0o111 != 0;
        return READ | WRITE | if executes { EXECUTE } else { 0 };
    };
    let class = match () {
        () if user.uid == object.uid => 6,
        () if user.is_in(object.gid) => 3,
        () => 0,
    };
    let bits = object.mode >> class;
    let right = |bit: u32, right| if bits & bit != 0 { right } else { 0 };
    right(4, READ) | right(2, WRITE) | right(1, EXECUTE)
}

/// Refuses to look up a name in a directory without the right to search it.
pub(super) fn check_search(directory: Owned, user: User<'_>) -> Result<(), VolumeError> {
    if rights(directory, user) & EXECUTE != 0 { Ok(()) } else { Err(VolumeError::Denied) }
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
pub(super) fn check_link(object: Owned, user: User<'_>) -> Result<(), VolumeError> {
    let gives_privileges =
        object.mode & SET_USER != 0 || object.mode & (SET_GROUP | GROUP_EXECUTES) == SET_GROUP | GROUP_EXECUTES;
    let has_rights = rights(object, user) & (READ | WRITE) == READ | WRITE;
    let is_safe = object.kind == Kind::Regular && !gives_privileges && has_rights;
    if is_owner(user, object) || is_safe { Ok(()) } else { Err(VolumeError::NotPermitted) }
}

/// Refuses a change of a directory's entries without the rights to write and search it.
pub(super) fn check_change_entries(directory: Owned, user: User<'_>) -> Result<(), VolumeError> {
    let wanted = WRITE | EXECUTE;
    if rights(directory, user) & wanted == wanted { Ok(()) } else { Err(VolumeError::Denied) }
}

/// Refuses to take a name from an object. In a sticky directory only the owners of either may.
pub(super) fn check_unname(directory: Owned, object: Owned, user: User<'_>) -> Result<(), VolumeError> {
    check_change_entries(directory, user)?;
    let is_free = directory.mode & STICKY == 0 || is_owner(user, directory) || is_owner(user, object);
    if is_free { Ok(()) } else { Err(VolumeError::NotPermitted) }
}

/// Refuses a change of a user's extended attribute. In a sticky directory, as of a directory for temporary files, only
/// the directory's owner may.
pub(super) fn check_change_xattr(object: Owned, user: User<'_>) -> Result<(), VolumeError> {
    let is_free = object.kind != Kind::Directory || object.mode & STICKY == 0 || is_owner(user, object);
    if is_free { Ok(()) } else { Err(VolumeError::NotPermitted) }
}

/// Refuses to move an object out of its directory: a directory's own parent changes.
pub(super) fn check_change_parent(object: Owned, user: User<'_>) -> Result<(), VolumeError> {
    let is_free = object.kind != Kind::Directory || rights(object, user) & WRITE != 0;
    if is_free { Ok(()) } else { Err(VolumeError::Denied) }
}

/// The owner, group and mode of a new object.
pub(super) fn of_new(directory: Owned, user: User<'_>, kind: Kind, wanted: &AttributeChange) -> Owned {
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
    Owned { kind, mode: if kind == Kind::Symlink { 0o777 } else { mode }, uid, gid }
}

/// The owner, group and mode after a change, or the reason that a user may not make it. The times are checked, too.
pub(super) fn changed(object: Owned, user: User<'_>, change: &AttributeChange) -> Result<Owned, VolumeError> {
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
fn without_privileges(file: Owned, user: User<'_>) -> u32 {
    let is_privilege = file.mode & GROUP_EXECUTES != 0 || !may_set_group(user, file.gid);
    file.mode & !(SET_USER | if is_privilege { SET_GROUP } else { 0 })
}

/// An owner may set any times. A writer may set the current time.
fn check_set_times(object: Owned, user: User<'_>, owns: bool, change: &AttributeChange) -> Result<(), VolumeError> {
    let times = [change.atime, change.mtime];
    if owns || times == [SetTime::Keep; 2] {
        return Ok(());
    }
    if times.iter().any(|time| matches!(time, SetTime::To(_))) {
        return Err(VolumeError::NotPermitted);
    }
    if rights(object, user) & WRITE != 0 { Ok(()) } else { Err(VolumeError::Denied) }
}

#[cfg(test)]
mod tests;
