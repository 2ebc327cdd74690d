//! Blocks that two files share (`FICLONERANGE`).
//!
//! Owns: the call to the host.
//! Does not own: which ranges may be shared, dirty pages of both files (the volume).
//! Invariants: the call shares the whole range or nothing. A target of another user than root takes no blocks that are
//! reserved for root.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use afflux_volume::VolumeError;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Core;
use super::calls::{error_of, last_errno};
use super::node::HostNode;
use afflux_linux_device::plain_user::PlainUser;

/// `FICLONERANGE`.
const SHARE: u64 = 0x4020_940d;
/// No file has a byte there, so the host refuses the offset, once it has found that it can share blocks.
const PAST_EACH_FILE: u64 = (i64::MAX as u64) & !0xffff;

/// `struct file_clone_range`.
#[repr(C)]
struct ClonedRange {
    source: i64,
    from: u64,
    /// Bytes; 0 would mean all to the source's end.
    len: u64,
    to: u64,
}

impl Core {
    /// Makes a range of a file share the blocks of another, or of its own. An empty range only asks whether the host
    /// can.
    pub(super) fn share_blocks(
        &self,
        source: &HostNode,
        from: u64,
        target: &HostNode,
        to: Range<u64>,
    ) -> Result<(), VolumeError> {
        let (readable, writable) = (self.reopen(source, OFlags::RDONLY)?, self.reopen(target, OFlags::RDWR)?);
        let _plain = if target.is_roots()? { None } else { PlainUser::begin() };
        if to.is_empty() {
            return match share(readable.as_fd(), PAST_EACH_FILE, writable.as_fd(), to.start..to.start + 1) {
                Err(Errno::INVAL) => Ok(()),
                shared => shared.map_err(error_of),
            };
        }
        share(readable.as_fd(), from, writable.as_fd(), to).map_err(error_of)
    }
}

fn share(source: BorrowedFd<'_>, from: u64, target: BorrowedFd<'_>, to: Range<u64>) -> Result<(), Errno> {
    let range = ClonedRange { source: source.as_raw_fd().into(), from, len: to.end - to.start, to: to.start };
    // SAFETY: the call only reads the range, which outlives it.
    let result = unsafe { libc::ioctl(target.as_raw_fd(), SHARE as libc::Ioctl, &raw const range) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}
