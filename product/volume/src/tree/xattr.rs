//! Extended attributes: the change of one, and what a name and a value may be.
//!
//! Owns: the plain values, Linux's bounds.
//! Does not own: the meaning of a name: namespaces, and access control lists (the host).
//! Invariants: a name that passes `check_name` is one C string; the host decides about the rest.

use bytes::Bytes;

use crate::error::VolumeError;

/// Longest name of an extended attribute, in bytes.
pub const XATTR_NAME_BYTES_MAX: usize = 255;

/// Longest value of an extended attribute, in bytes. Most file systems take less.
pub const XATTR_BYTES_MAX: usize = 65_536;

/// The default access control list of a directory: it bounds the modes of new objects there, in place of a umask.
pub const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// A change of one extended attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum XattrChange {
    /// Gives it a value, whether or not it is there.
    Set(Bytes),
    /// Makes it; [`VolumeError::Exists`] if it is there.
    Create(Bytes),
    /// Gives it another value; [`VolumeError::NoAttribute`] if it is not there.
    Replace(Bytes),
    /// Removes it; [`VolumeError::NoAttribute`] if it is not there.
    Remove,
}

impl XattrChange {
    pub(crate) fn check(&self) -> Result<(), VolumeError> {
        let bytes = match self {
            Self::Set(value) | Self::Create(value) | Self::Replace(value) => value.len(),
            Self::Remove => 0,
        };
        if bytes > XATTR_BYTES_MAX { Err(VolumeError::ValueTooLong { bytes }) } else { Ok(()) }
    }
}

/// Whether `name` can be a name: 1 to 255 bytes, no NUL.
pub(crate) fn check_name(name: &[u8]) -> Result<(), VolumeError> {
    if name.is_empty() || name.contains(&0) {
        return Err(VolumeError::Invalid { what: "the name of an extended attribute, empty or with NUL" });
    }
    if name.len() > XATTR_NAME_BYTES_MAX { Err(VolumeError::NameTooLong { bytes: name.len() }) } else { Ok(()) }
}
