//! Extended attributes and access control lists of the host's objects.
//!
//! Owns: the system calls, made as the caller.
//! Does not own: the bounds of names and values (the volume), lists and their effect on the mode (the kernel).
//! Invariants: an object is reached by its descriptor alone, so a symbolic link's attributes are its own.

use std::os::fd::AsRawFd;

use afflux_volume::{ACCESS_ACL, DEFAULT_ACL, VolumeError, XATTR_BYTES_MAX, XattrChange};
use bytes::Bytes;
use rustix::fs::{XattrFlags, getxattr, getxattr_query, listxattr, removexattr, setxattr};
use rustix::io::Errno;

use super::Core;
use super::acting::Acting;
use super::calls::error_of;
use super::node::HostNode;

/// A path to the object of a descriptor. It leads to the object itself, also to a symbolic link's.
fn path_of(node: &HostNode) -> String {
    format!("/proc/self/fd/{}", node.fd().as_raw_fd())
}

/// Whether a directory has a default access control list.
pub(super) fn has_default_acl(directory: &HostNode) -> Result<bool, VolumeError> {
    match getxattr_query(path_of(directory), DEFAULT_ACL) {
        Ok(bytes) => Ok(bytes > 0),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(error_of(errno)),
    }
}

impl Core {
    pub(super) fn xattr(&self, node: &HostNode, acting: &Acting, name: &[u8]) -> Result<Bytes, VolumeError> {
        if node.is_void() {
            return Err(VolumeError::NoAttribute);
        }
        let mut value = vec![0; XATTR_BYTES_MAX];
        let len = acting.call(|| getxattr(path_of(node), name, &mut value[..]).map_err(error_of))?;
        Ok(Bytes::copy_from_slice(&value[..len]))
    }

    pub(super) fn xattrs(&self, node: &HostNode, acting: &Acting) -> Result<Vec<Bytes>, VolumeError> {
        if node.is_void() {
            return Ok(Vec::new());
        }
        let mut names = vec![0; XATTR_BYTES_MAX];
        let len = acting.call(|| listxattr(path_of(node), &mut names[..]).map_err(error_of))?;
        let names = names[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(Bytes::copy_from_slice).collect())
    }

    pub(super) fn change_xattr(
        &self,
        node: &HostNode,
        acting: &Acting,
        name: &[u8],
        change: &XattrChange,
    ) -> Result<(), VolumeError> {
        node.check_storing()?;
        let (value, flags) = match change {
            XattrChange::Set(value) => (value, XattrFlags::empty()),
            XattrChange::Create(value) => (value, XattrFlags::CREATE),
            XattrChange::Replace(value) => (value, XattrFlags::REPLACE),
            XattrChange::Remove => {
                return acting.call(|| removexattr(path_of(node), name).map_err(error_of));
            }
        };
        let set = || setxattr(path_of(node), name, value, flags);
        acting.call(|| {
            // The kernel makes a list and the mode agree. A new list may take the setgid bit from one who is not in the
            // file's group.
            let set = if name == ACCESS_ACL { acting.call_in_group(node.stat()?.gid, set) } else { set() };
            set.map_err(|errno| match errno {
                Errno::TOOBIG | Errno::RANGE => VolumeError::ValueTooLong { bytes: value.len() },
                errno => error_of(errno),
            })
        })
    }
}
