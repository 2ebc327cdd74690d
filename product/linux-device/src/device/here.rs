//! Transfers and syncs on the thread of their blocked caller: one system call each, past the host's page cache.
//!
//! Owns: which of them take this path.
//! Does not own: requests (`flight`), which also repeat what the host shortens or refuses; the grants of writes
//! (`write_gate`).
//! Invariants: a transfer from here is whole. A shorter one, or one with an error, becomes a request, which transfers
//! all of it again. A write from here has its grant, as a request's write has.

use std::os::fd::{AsRawFd, OwnedFd};

use afflux_engine::{Backing, DeviceError, TransferHere};
use rustix::io::Errno;
use smallvec::SmallVec;

use super::core::DeviceCore;
use super::file::{DescriptorUse, Growth, HostFile};
use super::write_gate::WriteSharing;
use crate::device::file::error_of;
use crate::reactor::io::{IOVECS_MAX, IoVec, RingOperation};

/// Most transfers are one page, or pages beside each other in memory.
type Vectors = SmallVec<[IoVec; 1]>;

/// Reads into all of the memory.
pub(super) fn read(core: &DeviceCore, read: &TransferHere<'_>) -> Option<Result<(), DeviceError>> {
    let file = read.backing().get::<HostFile>()?;
    let fd = file.opened_past_cache(DescriptorUse::Read)?;
    let (iovecs, bytes) = vectors(core, read)?;
    let (iovecs, count) = (iovecs.as_ptr(), iovecs.len() as u32);
    let io = RingOperation::ReadV { fd: fd.as_raw_fd(), iovecs, count, offset: read.offset(), may_wait: true };
    // SAFETY: the vectors and the descriptor live until the call has ended, and they point into the memory of `read`.
    let result = unsafe { io.perform() };
    (usize::try_from(result) == Ok(bytes)).then_some(Ok(()))
}

/// Writes all of the memory.
pub(super) fn write(core: &DeviceCore, write: &TransferHere<'_>) -> Option<()> {
    let file = write.backing().get::<HostFile>()?;
    let fd = file.opened_past_cache(DescriptorUse::Write)?;
    let (iovecs, bytes) = vectors(core, write)?;
    let end = write.offset() + bytes as u64;
    let share = match file.growth(end) {
        growth if growth != Growth::None && core.must_end_inside(file) => return None,
        Growth::None => WriteSharing::Together,
        Growth::WholePages if core.grows_files && file.may_grow() => WriteSharing::Longer,
        Growth::WholePages => WriteSharing::Together,
        Growth::WithinAPage => return None,
    };
    let mut grant = file.gate().enter_now(share)?;
    file.written();
    let (iovecs, count) = (iovecs.as_ptr(), iovecs.len() as u32);
    let io = RingOperation::WriteV {
        fd: fd.as_raw_fd(),
        iovecs,
        count,
        offset: write.offset(),
        may_wait: true,
        plain: false,
    };
    // SAFETY: the vectors and the descriptor live until the call has ended, and they point into the memory of `write`.
    let result = unsafe { io.perform() };
    (usize::try_from(result) == Ok(bytes)).then(|| grant.wrote(end))
}

/// Makes the file's bytes durable, and its times and mode if somebody has asked for them.
pub(super) fn sync(core: &DeviceCore, backing: &Backing) -> Option<Result<(), DeviceError>> {
    let file = backing.get::<HostFile>()?;
    let fd = file.opened_for_sync()?;
    let wholly = file.pending_metadata_sync();
    let began = core.pace.sync_begins();
    let result = sync_whole(&fd, wholly.is_none());
    core.pace.end(Some(began));
    if let (Some(wanted), Ok(())) = (wholly, result) {
        file.note_metadata_synced(wanted);
    }
    Some(result)
}

fn sync_whole(fd: &OwnedFd, data_only: bool) -> Result<(), DeviceError> {
    let io = RingOperation::Sync { fd: fd.as_raw_fd(), data_only };
    loop {
        // SAFETY: the descriptor lives until the call has ended; a sync has no memory.
        let result = unsafe { io.perform() };
        if result >= 0 {
            return Ok(());
        }
        if -result != Errno::INTR.raw_os_error() {
            return Err(error_of(-result));
        }
    }
}

/// The memory as vectors for one call, and its length. None if the host does not take it past its page cache.
fn vectors(core: &DeviceCore, transfer: &TransferHere<'_>) -> Option<(Vectors, usize)> {
    let (block_bytes, mut iovecs, mut bytes) = (core.limits.block_bytes as usize, Vectors::new(), 0);
    for (start, len) in transfer.segments() {
        bytes += len;
        match iovecs.last_mut() {
            Some(last) if last.start.wrapping_add(last.len) == start => last.len += len,
            _ => iovecs.push(IoVec { start, len }),
        }
    }
    let fits =
        |iovec: &IoVec| iovec.start.addr().is_multiple_of(core.memory_align) && iovec.len.is_multiple_of(block_bytes);
    let is_taken =
        iovecs.len() <= IOVECS_MAX && transfer.offset().is_multiple_of(block_bytes as u64) && iovecs.iter().all(fits);
    is_taken.then_some((iovecs, bytes))
}
