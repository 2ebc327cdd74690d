//! Every error of a volume, and its status.

use afflux_volume::VolumeError;
use nfs3_types::nfs3::nfsstat3::{self, *};

/// An error, and the status that says it best.
pub(crate) fn table() -> Vec<(VolumeError, nfsstat3)> {
    vec![
        (VolumeError::NotFound, NFS3ERR_NOENT),
        (VolumeError::Exists, NFS3ERR_EXIST),
        (VolumeError::NotDirectory, NFS3ERR_NOTDIR),
        (VolumeError::IsDirectory, NFS3ERR_ISDIR),
        (VolumeError::NotEmpty, NFS3ERR_NOTEMPTY),
        (VolumeError::Denied, NFS3ERR_ACCES),
        (VolumeError::NotPermitted, NFS3ERR_PERM),
        (VolumeError::Io { errno: 5 }, NFS3ERR_IO),
        (VolumeError::NoSpace, NFS3ERR_NOSPC),
        (VolumeError::Quota, NFS3ERR_DQUOT),
        (VolumeError::TooLarge, NFS3ERR_FBIG),
        (VolumeError::ReadOnly, NFS3ERR_ROFS),
        (VolumeError::Stale, NFS3ERR_STALE),
        (VolumeError::BadHandle, NFS3ERR_BADHANDLE),
        (VolumeError::NameTooLong { bytes: 256 }, NFS3ERR_NAMETOOLONG),
        (VolumeError::Invalid { what: "a test" }, NFS3ERR_INVAL),
        (VolumeError::NoAttribute, NFS3ERR_IO),
        (VolumeError::ValueTooLong { bytes: 65537 }, NFS3ERR_IO),
        (VolumeError::PastData { offset: 0 }, NFS3ERR_SERVERFAULT),
        (VolumeError::CrossDevice, NFS3ERR_XDEV),
        (VolumeError::TooManyLinks, NFS3ERR_MLINK),
        (VolumeError::NotSupported, NFS3ERR_NOTSUPP),
        (VolumeError::NotSynchronised, NFS3ERR_NOT_SYNC),
        (VolumeError::BadCookie, NFS3ERR_BAD_COOKIE),
        (VolumeError::Symlink, NFS3ERR_INVAL),
        (VolumeError::Leased, NFS3ERR_JUKEBOX),
        (VolumeError::Delayed, NFS3ERR_JUKEBOX),
        (VolumeError::NoMemory, NFS3ERR_SERVERFAULT),
        (VolumeError::NoDescriptor, NFS3ERR_JUKEBOX),
    ]
}

#[test]
fn the_table_has_each_error_of_a_volume() {
    let rows = table().into_iter().map(|(error, _)| error);
    afflux_scratch::assert_each_variant(rows, include_str!("../../../volume/src/error.rs"), "VolumeError");
}
