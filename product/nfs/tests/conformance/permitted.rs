//! The statuses that RFC 1813 (section 3.3) lists for each procedure, and those that this server tells beside them.

use nfs3_types::nfs3::nfsstat3::{self, *};

/// Section 2.6 has these two for each call.
const GENERAL: &[nfsstat3] = &[NFS3ERR_SERVERFAULT, NFS3ERR_JUKEBOX];
const HANDLE: &[nfsstat3] = &[NFS3ERR_STALE, NFS3ERR_BADHANDLE];

const MAKE: &[nfsstat3] = &[
    NFS3ERR_IO,
    NFS3ERR_ACCES,
    NFS3ERR_EXIST,
    NFS3ERR_NOTDIR,
    NFS3ERR_NOSPC,
    NFS3ERR_ROFS,
    NFS3ERR_NAMETOOLONG,
    NFS3ERR_DQUOT,
    NFS3ERR_NOTSUPP,
];

/// The list of the RFC.
fn listed(procedure: u32) -> &'static [nfsstat3] {
    match procedure {
        1 | 4 | 18 | 21 => &[NFS3ERR_IO],
        2 => &[
            NFS3ERR_PERM,
            NFS3ERR_IO,
            NFS3ERR_ACCES,
            NFS3ERR_INVAL,
            NFS3ERR_NOSPC,
            NFS3ERR_ROFS,
            NFS3ERR_DQUOT,
            NFS3ERR_NOT_SYNC,
        ],
        3 => &[NFS3ERR_IO, NFS3ERR_NOENT, NFS3ERR_ACCES, NFS3ERR_NOTDIR, NFS3ERR_NAMETOOLONG],
        5 => &[NFS3ERR_IO, NFS3ERR_INVAL, NFS3ERR_ACCES, NFS3ERR_NOTSUPP],
        6 => &[NFS3ERR_IO, NFS3ERR_NXIO, NFS3ERR_ACCES, NFS3ERR_INVAL],
        7 => &[NFS3ERR_IO, NFS3ERR_ACCES, NFS3ERR_FBIG, NFS3ERR_DQUOT, NFS3ERR_NOSPC, NFS3ERR_ROFS, NFS3ERR_INVAL],
        8..=10 => MAKE,
        11 => &[
            NFS3ERR_IO,
            NFS3ERR_ACCES,
            NFS3ERR_EXIST,
            NFS3ERR_NOTDIR,
            NFS3ERR_NOSPC,
            NFS3ERR_ROFS,
            NFS3ERR_NAMETOOLONG,
            NFS3ERR_DQUOT,
            NFS3ERR_NOTSUPP,
            NFS3ERR_BADTYPE,
        ],
        12 => &[NFS3ERR_NOENT, NFS3ERR_IO, NFS3ERR_ACCES, NFS3ERR_NOTDIR, NFS3ERR_NAMETOOLONG, NFS3ERR_ROFS],
        13 => &[
            NFS3ERR_NOENT,
            NFS3ERR_IO,
            NFS3ERR_ACCES,
            NFS3ERR_INVAL,
            NFS3ERR_EXIST,
            NFS3ERR_NOTDIR,
            NFS3ERR_NAMETOOLONG,
            NFS3ERR_ROFS,
            NFS3ERR_NOTEMPTY,
            NFS3ERR_NOTSUPP,
        ],
        14 => &[
            NFS3ERR_NOENT,
            NFS3ERR_IO,
            NFS3ERR_ACCES,
            NFS3ERR_EXIST,
            NFS3ERR_XDEV,
            NFS3ERR_NOTDIR,
            NFS3ERR_ISDIR,
            NFS3ERR_INVAL,
            NFS3ERR_NOSPC,
            NFS3ERR_ROFS,
            NFS3ERR_MLINK,
            NFS3ERR_NAMETOOLONG,
            NFS3ERR_NOTEMPTY,
            NFS3ERR_DQUOT,
            NFS3ERR_NOTSUPP,
        ],
        15 => &[
            NFS3ERR_IO,
            NFS3ERR_ACCES,
            NFS3ERR_EXIST,
            NFS3ERR_XDEV,
            NFS3ERR_NOTDIR,
            NFS3ERR_INVAL,
            NFS3ERR_NOSPC,
            NFS3ERR_ROFS,
            NFS3ERR_MLINK,
            NFS3ERR_NAMETOOLONG,
            NFS3ERR_DQUOT,
            NFS3ERR_NOTSUPP,
        ],
        16 => &[NFS3ERR_IO, NFS3ERR_ACCES, NFS3ERR_NOTDIR, NFS3ERR_BAD_COOKIE, NFS3ERR_TOOSMALL],
        17 => &[NFS3ERR_IO, NFS3ERR_ACCES, NFS3ERR_NOTDIR, NFS3ERR_BAD_COOKIE, NFS3ERR_TOOSMALL, NFS3ERR_NOTSUPP],
        _ => &[],
    }
}

/// Statuses beside the list, as Linux's servers tell them.
fn beside(procedure: u32) -> &'static [nfsstat3] {
    match procedure {
        2 => &[NFS3ERR_FBIG, NFS3ERR_ISDIR],
        3 => &[NFS3ERR_INVAL],
        6 => &[NFS3ERR_ISDIR],
        7 => &[NFS3ERR_ISDIR, NFS3ERR_PERM],
        8..=11 => &[NFS3ERR_PERM, NFS3ERR_INVAL, NFS3ERR_ISDIR, NFS3ERR_MLINK],
        12 | 13 => &[NFS3ERR_PERM, NFS3ERR_INVAL, NFS3ERR_ISDIR, NFS3ERR_NOSPC, NFS3ERR_DQUOT],
        14 => &[NFS3ERR_PERM],
        15 => &[NFS3ERR_PERM, NFS3ERR_ISDIR],
        21 => &[NFS3ERR_ACCES, NFS3ERR_FBIG, NFS3ERR_NOSPC, NFS3ERR_DQUOT, NFS3ERR_ROFS, NFS3ERR_ISDIR, NFS3ERR_INVAL],
        _ => &[],
    }
}

/// Whether a procedure may return a status.
pub(crate) fn is_permitted(procedure: u32, status: nfsstat3) -> bool {
    [GENERAL, HANDLE, listed(procedure), beside(procedure)].iter().any(|list| list.contains(&status))
}
