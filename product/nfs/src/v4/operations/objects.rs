//! The checks of objects and names that operations share, and the change of a directory.
//!
//! Owns: the kinds and names that operations take, the form of a directory's change.
//! Does not own: the objects (the volume), the compound that names them (`compound`).
//! Invariants: a change is said to be atomic only with its own before and after.

use std::sync::Arc;

use afflux_volume::{Consistency, Inode, Kind, NAME_BYTES_MAX, Platform, Timestamp};

use super::super::attributes::change_of;
use super::super::compound::{Compound, Object};
use crate::status::Status;
use crate::wire::xdr::Writer;

impl<P: Platform> Compound<P> {
    /// The current object, if it is below an export.
    pub(super) fn inode(&self) -> Result<Arc<Inode<P>>, Status> {
        match self.object()? {
            Object::Inode(inode) => Ok(Arc::clone(inode)),
            Object::Above => Err(Status::IsDirectory),
        }
    }

    /// The current directory below an export, for a change of its names.
    pub(super) fn directory(&self) -> Result<Arc<Inode<P>>, Status> {
        match self.object()? {
            Object::Above => Err(Status::ReadOnly),
            Object::Inode(inode) => {
                check_directory(inode.kind())?;
                Ok(Arc::clone(inode))
            }
        }
    }
}

pub(super) fn check_directory(kind: Kind) -> Result<(), Status> {
    match kind {
        Kind::Directory => Ok(()),
        Kind::Symlink => Err(Status::SymbolicLink),
        _ => Err(Status::NotDirectory),
    }
}

pub(super) fn check_regular(kind: Kind) -> Result<(), Status> {
    match kind {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(Status::IsDirectory),
        Kind::Symlink => Err(Status::SymbolicLink),
        _ => Err(Status::WrongType),
    }
}

/// Refuses what no directory has as a name.
pub(super) fn check_name(name: &[u8]) -> Result<(), Status> {
    match name {
        b"" => Err(Status::Invalid),
        b"." | b".." => Err(Status::BadName),
        _ if name.len() > NAME_BYTES_MAX => Err(Status::NameTooLong),
        _ if name.contains(&b'/') || name.contains(&0) => Err(Status::BadCharacter),
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
