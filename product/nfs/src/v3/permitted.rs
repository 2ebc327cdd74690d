//! A procedure in progress, and its failures: the statuses that each procedure of NFS may return, and the body of a
//! failed call.
//!
//! Owns: the lists of RFC 1813 (section 3.3), the further statuses that are returned, the status that replaces another;
//! the body with one object's attributes; the refusal of data operations on other kinds of objects.
//! Does not own: the status of an error (`status`).
//! Invariants: a status that a procedure may not return is never sent. No failure becomes a success. A failure carries
//! the object's attributes if they can be had.

use std::sync::Arc;

use afflux_volume::{Inode, Kind, Platform};

use crate::operations::{Ended, Operations, Stop, attributes_if_any};
use crate::status::NfsStatus::{
    self, Acces, BadCookie, Badhandle, Badtype, Delay, Dquot, Exist, Fbig, Inval, Io, Isdir, Mlink, Nametoolong, Noent,
    Nospc, NotSync, Notdir, Notempty, Notsupp, Perm, Rofs, Serverfault, Stale, Toosmall, Xdev,
};
use crate::wire::reply::Draft;

/// Any procedure may return these.
const ALWAYS: &[NfsStatus] = &[NfsStatus::Ok, Stale, Badhandle, Serverfault, Delay];

/// The lists of the RFC, by the number of the procedure and without [`ALWAYS`].
const LISTED: [&[NfsStatus]; 22] = [
    &[],
    &[Io],
    &[Perm, Io, Acces, Inval, Nospc, Rofs, Dquot, NotSync],
    &[Io, Noent, Acces, Notdir, Nametoolong],
    &[Io],
    &[Io, Inval, Acces, Notsupp],
    &[Io, Acces, Inval],
    &[Io, Acces, Fbig, Dquot, Nospc, Rofs, Inval],
    MAKES,
    MAKES,
    MAKES,
    &[Io, Acces, Exist, Notdir, Nospc, Rofs, Nametoolong, Dquot, Notsupp, Badtype],
    &[Noent, Io, Acces, Notdir, Nametoolong, Rofs],
    &[Noent, Io, Acces, Inval, Exist, Notdir, Nametoolong, Rofs, Notempty, Notsupp],
    &[Noent, Io, Acces, Exist, Xdev, Notdir, Isdir, Inval, Nospc, Rofs, Mlink, Nametoolong, Notempty, Dquot, Notsupp],
    &[Io, Acces, Exist, Xdev, Notdir, Inval, Nospc, Rofs, Mlink, Nametoolong, Dquot, Notsupp],
    &[Io, Acces, Notdir, BadCookie, Toosmall],
    &[Io, Acces, Notdir, BadCookie, Toosmall, Notsupp],
    &[Io],
    &[],
    &[],
    &[Io],
];

/// Those of CREATE, MKDIR and SYMLINK.
const MAKES: &[NfsStatus] = &[Io, Acces, Exist, Notdir, Nospc, Rofs, Nametoolong, Dquot, Notsupp];

/// Statuses that are returned although the RFC does not list them. Linux's servers return them, and programs act on
/// them.
fn told_beside(procedure: u32) -> &'static [NfsStatus] {
    match procedure {
        // A size that is too large, or of a directory.
        2 => &[Fbig, Isdir],
        // A name that no file system has.
        3 => &[Inval],
        6 => &[Isdir],
        // A file that only takes appends.
        7 => &[Isdir, Perm],
        // A directory that may not change, names that the file system cannot have, its bound on links.
        8..=11 => &[Perm, Inval, Isdir, Mlink],
        // The sticky bit. A file system that copies on write needs space to remove.
        12 | 13 => &[Perm, Inval, Isdir, Nospc, Dquot],
        14 => &[Perm],
        15 => &[Perm, Isdir],
        // A user without rights to the file. The bytes reach the disk only now.
        21 => &[Acces, Fbig, Nospc, Dquot, Rofs, Isdir, Inval],
        _ => &[],
    }
}

impl NfsStatus {
    /// This status for the reply of a procedure: itself, or the nearest one that the procedure may return.
    pub(crate) fn permitted(self, procedure: u32) -> Self {
        let lists = [ALWAYS, LISTED[procedure as usize], told_beside(procedure)];
        let may_return = |status: &NfsStatus| lists.iter().any(|list| list.contains(status));
        let mut candidates = [self].into_iter().chain(self.stands_in().iter().copied()).chain([Io]);
        candidates.find(may_return).unwrap_or(Serverfault)
    }

    /// The statuses that say nearly the same, the nearest first.
    fn stands_in(self) -> &'static [Self] {
        match self {
            // The object of the call itself is not there any more.
            Noent => &[Stale],
            Perm | Rofs => &[Acces],
            Mlink | Dquot => &[Nospc],
            Notsupp | Xdev | Notdir | Isdir | Nametoolong | Badtype => &[Inval],
            _ => &[],
        }
    }
}

/// A procedure in progress.
pub(crate) struct Procedure<'a, P: Platform> {
    /// The object of the call's first handle.
    pub(crate) object: &'a Arc<Inode<P>>,
    pub(crate) draft: &'a mut Draft,
}

/// Writes the results of a call that failed and has an object's attributes for that.
pub(crate) async fn failed<P: Platform>(on: &impl Operations<P>, call: &mut Procedure<'_, P>, stop: Stop) -> Ended {
    let Stop::Failed(status) = stop else { return Err(stop) };
    let attributes = attributes_if_any(on, call.object).await?;
    call.draft.status(status).post_op(attributes.as_ref());
    Ok(())
}

/// Refuses data operations on objects that are not regular files, as Linux servers do.
pub(crate) fn check_regular(kind: Kind) -> Result<(), NfsStatus> {
    match kind {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(NfsStatus::Isdir),
        _ => Err(NfsStatus::Inval),
    }
}
