//! Files without a name.
//!
//! Owns: their creation (O_TMPFILE).
//! Does not own: their first name, which is a link like another (`entries`); their attributes (`entries`).
//! Invariants: the descriptor is the only way to the file, so a creation that fails leaves nothing behind.

use afflux_volume::{AttributeChange, New, Unnamed, VolumeError};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::Core;
use super::acting::Acting;
use super::climb::here;
use super::entries::{FILE_MODE, for_new};
use super::node::HostNode;
use afflux_linux_device::shortage::open_or_close_spare;

impl Core {
    pub(super) fn create_unnamed(
        &self,
        parent: &HostNode,
        acting: &Acting,
        attributes: &AttributeChange,
    ) -> Result<Unnamed, VolumeError> {
        parent.check_storing()?;
        self.contained(parent)?;
        let attributes = &for_new(parent, attributes)?;
        let mode = Mode::from_raw_mode(attributes.mode.unwrap_or(FILE_MODE));
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let made = || {
            open_or_close_spare(|| openat(parent.fd(), ".", flags, mode)).map_err(|errno| match errno {
                // A file system without such files; EISDIR from one that does not even know the flag.
                Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL => VolumeError::NotSupported,
                errno => here(parent, errno),
            })
        };
        let found = self.found(acting.call(made)?, true)?;
        let (found, data) = self.finish(found, acting, &New::Regular, attributes)?;
        self.contained(parent)?;
        let data = data.ok_or(VolumeError::NotSupported)?;
        Ok(Unnamed { found, data })
    }
}
