//! The statuses that each procedure of NFS may return.
//!
//! Owns: the lists of RFC 1813 (section 3.3), the statuses that are told beside them, the status that stands in for
//! another.
//! Does not own: the status of an error (`status`).
//! Invariants: a status that a procedure may not return is never sent. No failure becomes a success.

use crate::status::Status;
use crate::status::Status::{
    BadCookie, BadHandle, BadType, CrossDevice, Denied, Exists, Invalid, Io, IsDirectory, Jukebox, NameTooLong,
    NoSpace, NotDirectory, NotEmpty, NotFound, NotPermitted, NotSupported, NotSynchronised, Quota, ReadOnly,
    ServerFault, Stale, TooLarge, TooManyLinks, TooSmall,
};

/// Any procedure may return these.
const ALWAYS: &[Status] = &[Status::Ok, Stale, BadHandle, ServerFault, Jukebox];

/// The lists of the RFC, by the number of the procedure and without [`ALWAYS`].
const LISTED: [&[Status]; 22] = [
    &[],
    &[Io],
    &[NotPermitted, Io, Denied, Invalid, NoSpace, ReadOnly, Quota, NotSynchronised],
    &[Io, NotFound, Denied, NotDirectory, NameTooLong],
    &[Io],
    &[Io, Invalid, Denied, NotSupported],
    &[Io, Denied, Invalid],
    &[Io, Denied, TooLarge, Quota, NoSpace, ReadOnly, Invalid],
    MAKES,
    MAKES,
    MAKES,
    &[Io, Denied, Exists, NotDirectory, NoSpace, ReadOnly, NameTooLong, Quota, NotSupported, BadType],
    &[NotFound, Io, Denied, NotDirectory, NameTooLong, ReadOnly],
    &[NotFound, Io, Denied, Invalid, Exists, NotDirectory, NameTooLong, ReadOnly, NotEmpty, NotSupported],
    &[
        NotFound,
        Io,
        Denied,
        Exists,
        CrossDevice,
        NotDirectory,
        IsDirectory,
        Invalid,
        NoSpace,
        ReadOnly,
        TooManyLinks,
        NameTooLong,
        NotEmpty,
        Quota,
        NotSupported,
    ],
    &[
        Io,
        Denied,
        Exists,
        CrossDevice,
        NotDirectory,
        Invalid,
        NoSpace,
        ReadOnly,
        TooManyLinks,
        NameTooLong,
        Quota,
        NotSupported,
    ],
    &[Io, Denied, NotDirectory, BadCookie, TooSmall],
    &[Io, Denied, NotDirectory, BadCookie, TooSmall, NotSupported],
    &[Io],
    &[],
    &[],
    &[Io],
];

/// Those of CREATE, MKDIR and SYMLINK.
const MAKES: &[Status] = &[Io, Denied, Exists, NotDirectory, NoSpace, ReadOnly, NameTooLong, Quota, NotSupported];

/// Statuses that are told although the RFC does not list them. Linux's servers tell them, and programs act on them.
fn told_beside(procedure: u32) -> &'static [Status] {
    match procedure {
        // A size that is too large, or of a directory.
        2 => &[TooLarge, IsDirectory],
        // A name that no file system has.
        3 => &[Invalid],
        6 => &[IsDirectory],
        // A file that only takes appends.
        7 => &[IsDirectory, NotPermitted],
        // A directory that may not change, names that the file system cannot have, its bound on links.
        8..=11 => &[NotPermitted, Invalid, IsDirectory, TooManyLinks],
        // The sticky bit. A file system that copies on write needs space to remove.
        12 | 13 => &[NotPermitted, Invalid, IsDirectory, NoSpace, Quota],
        14 => &[NotPermitted],
        15 => &[NotPermitted, IsDirectory],
        // A user without rights to the file. The bytes reach the disk only now.
        21 => &[Denied, TooLarge, NoSpace, Quota, ReadOnly, IsDirectory, Invalid],
        _ => &[],
    }
}

impl Status {
    /// This status for the reply of a procedure: itself, or the nearest one that the procedure may return.
    pub(crate) fn permitted(self, procedure: u32) -> Self {
        let lists = [ALWAYS, LISTED[procedure as usize], told_beside(procedure)];
        let may_return = |status: &Status| lists.iter().any(|list| list.contains(status));
        let mut candidates = [self].into_iter().chain(self.stands_in().iter().copied()).chain([Io]);
        candidates.find(may_return).unwrap_or(ServerFault)
    }

    /// The statuses that say nearly the same, the nearest first.
    fn stands_in(self) -> &'static [Self] {
        match self {
            // The object of the call itself is not there any more.
            NotFound => &[Stale],
            NotPermitted | ReadOnly => &[Denied],
            TooManyLinks | Quota => &[NoSpace],
            NotSupported | CrossDevice | NotDirectory | IsDirectory | NameTooLong | BadType => &[Invalid],
            _ => &[],
        }
    }
}
