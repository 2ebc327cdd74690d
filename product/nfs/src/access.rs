//! The rights that ACCESS tells of, which are the same in all versions.
//!
//! Owns: the bits of ACCESS, and which of them follow from a user's rights.
//! Does not own: the rights (the volume).
//! Invariants: a right is told only where the kind of object knows it.

use afflux_volume::Kind;

/// The right to read, in the volume's answer about a user's rights.
pub(crate) const READ: u8 = 1;
/// The right to write.
pub(crate) const WRITE: u8 = 2;
/// The right to execute, or to search a directory.
pub(crate) const EXECUTE: u8 = 4;

/// The bits of ACCESS (RFC 1813, section 3.3.4).
mod bits {
    pub(super) const READ: u32 = 0x01;
    pub(super) const LOOKUP: u32 = 0x02;
    pub(super) const MODIFY: u32 = 0x04;
    pub(super) const EXTEND: u32 = 0x08;
    pub(super) const DELETE: u32 = 0x10;
    pub(super) const EXECUTE: u32 = 0x20;
    /// Of extended attributes (RFC 8276, section 8.5): to read one, to change one, to list all.
    pub(super) const XATTR_READ: u32 = 0x40;
    pub(super) const XATTR_WRITE: u32 = 0x80;
    pub(super) const XATTR_LIST: u32 = 0x100;
}

/// The ACCESS bits that follow from the permissions `granted` (read 1, write 2, execute or search 4) on an object.
pub(crate) fn allowed(kind: Kind, granted: u8) -> u32 {
    let (read, write, execute) = (granted & READ != 0, granted & WRITE != 0, granted & EXECUTE != 0);
    let when = |condition, bits| if condition { bits } else { 0 };
    match kind {
        // A change of names needs the rights to write and to search the directory.
        Kind::Directory => {
            when(read, bits::READ)
                | when(execute, bits::LOOKUP)
                | when(write && execute, bits::MODIFY | bits::EXTEND | bits::DELETE)
        }
        _ => when(read, bits::READ) | when(write, bits::MODIFY | bits::EXTEND) | when(execute, bits::EXECUTE),
    }
}

/// The ACCESS bits about a user's extended attributes.
pub(crate) fn allowed_of_xattrs(granted: u8) -> u32 {
    let of_reader = if granted & READ != 0 { bits::XATTR_READ | bits::XATTR_LIST } else { 0 };
    of_reader | if granted & WRITE != 0 { bits::XATTR_WRITE } else { 0 }
}

#[cfg(test)]
mod tests;
