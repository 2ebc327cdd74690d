//! The bytes that are valid as a name, and the names in a mount path.
//!
//! Owns: the rules for one name and for a path given to MOUNT.
//! Does not own: looking names up.
//! Invariants: a name that passes `check_entry` is one entry of one directory on any host: it has
//! no separator and is neither "." nor "..".

use crate::error::VolumeError;

/// Longest name in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// Longest path for MOUNT, in bytes (RFC 1813, MNTPATHLEN).
pub const MOUNT_PATH_BYTES_MAX: usize = 1024;

/// Longest target of a symbolic link, in bytes: the host's `PATH_MAX` without its NUL.
pub const TARGET_BYTES_MAX: usize = 4095;

/// Whether `name` can be looked up: 1 to 255 bytes, no '/' and no NUL.
pub(crate) fn check(name: &[u8]) -> Result<(), VolumeError> {
    if name.is_empty() {
        return Err(VolumeError::Invalid { what: "an empty name" });
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(VolumeError::NameTooLong { bytes: name.len() });
    }
    if name.iter().any(|&byte| byte == b'/' || byte == 0) {
        return Err(VolumeError::Invalid { what: "a name with '/' or NUL" });
    }
    Ok(())
}

/// Whether an entry can have the name: as [`check`], and not "." or "..".
pub(crate) fn check_entry(name: &[u8]) -> Result<(), VolumeError> {
    check(name)?;
    if name == b"." || name == b".." {
        return Err(VolumeError::Invalid { what: "'.' or '..' where an entry's name is needed" });
    }
    Ok(())
}

/// Whether `target` can be the target of a symbolic link: 1 to 4,095 bytes, no NUL.
pub(crate) fn check_target(target: &[u8]) -> Result<(), VolumeError> {
    if target.is_empty() {
        return Err(VolumeError::Invalid { what: "an empty link target" });
    }
    if target.len() > TARGET_BYTES_MAX {
        return Err(VolumeError::NameTooLong { bytes: target.len() });
    }
    if target.contains(&0) {
        return Err(VolumeError::Invalid { what: "a link target with NUL" });
    }
    Ok(())
}

/// The names in a mount path; empty ones and "." are omitted.
pub(crate) fn components(path: &[u8]) -> Result<Vec<&[u8]>, VolumeError> {
    if path.len() > MOUNT_PATH_BYTES_MAX {
        return Err(VolumeError::NameTooLong { bytes: path.len() });
    }
    let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    names.map(|name| check(name).map(|()| name)).collect()
}

#[cfg(test)]
mod tests;
