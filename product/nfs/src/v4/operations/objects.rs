//! The checks of objects and names that operations share, and the change of a directory.
//!
//! Owns: the kinds and names that operations take, the form of a directory's change.
//! Does not own: the objects (the volume), the compound that names them (`compound`).
//! Invariants: a change is said to be atomic only with its own before and after.

use std::sync::Arc;

use afflux_volume::{Consistency, Inode, Kind, NAME_BYTES_MAX, Platform, Timestamp};

use super::super::attributes::change_of;
use super::super::compound::{Compound, Object};
use crate::status::NfsStatus;
use crate::wire::xdr::Writer;

impl<P: Platform> Compound<P> {
    /// The current object, if it is below an export.
    pub(super) fn inode(&self) -> Result<Arc<Inode<P>>, NfsStatus> {
        match self.object()? {
            Object::Inode(inode) => Ok(Arc::clone(inode)),
            Object::Above => Err(NfsStatus::Isdir),
        }
    }

    /// The current directory below an export, for a change of its names.
    pub(super) fn directory(&self) -> Result<Arc<Inode<P>>, NfsStatus> {
        match self.object()? {
            Object::Above => Err(NfsStatus::Rofs),
            Object::Inode(inode) => {
                check_directory(inode.kind())?;
                Ok(Arc::clone(inode))
            }
        }
    }
}

pub(super) fn check_directory(kind: Kind) -> Result<(), NfsStatus> {
    match kind {
        Kind::Directory => Ok(()),
        Kind::Symlink => Err(NfsStatus::Symlink),
        _ => Err(NfsStatus::Notdir),
    }
}

pub(super) fn check_regular(kind: Kind) -> Result<(), NfsStatus> {
    match kind {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(NfsStatus::Isdir),
        Kind::Symlink => Err(NfsStatus::Symlink),
        _ => Err(NfsStatus::WrongType),
    }
}

/// Refuses what no directory has as a name.
pub(super) fn check_name(name: &[u8]) -> Result<(), NfsStatus> {
    match name {
        b"" => Err(NfsStatus::Inval),
        b"." | b".." => Err(NfsStatus::Badname),
        _ if name.len() > NAME_BYTES_MAX => Err(NfsStatus::Nametoolong),
        _ if name.contains(&b'/') || name.contains(&0) => Err(NfsStatus::Badchar),
        _ => Ok(()),
    }
}

/// Writes the change of a directory.
pub(super) fn write_change(writer: &mut Writer, consistency: &Consistency) {
    let time = |time: Option<Timestamp>| time.map(change_of).unwrap_or_default();
    let before = consistency.before.map(|before| before.ctime);
    let after = consistency.after.map(|after| after.ctime);
    writer.bool(before.is_some() && after.is_some());
    writer.u64(time(before));
    writer.u64(time(after));
}
