//! A read on the thread of its blocked caller: one system call, past the host's page cache.
//!
//! Owns: which reads go this way.
//! Does not own: requests (`flight`), which also repeat a read that the host shortens or fails.
//! Invariants: a read from here is whole. A shorter one, or one with an error, is read again by a request.

use std::os::fd::AsRawFd;

use afflux_engine::{DeviceError, ReadHere};
use smallvec::SmallVec;

use super::file::{HostFile, Path, Use};
use crate::reactor::io::{IOVECS_MAX, Io, IoVec};

/// Reads into all of the memory, whose pages the host takes at multiples of `memory_align` bytes. Or gives `None`: then the memory may have some of the bytes, and a request reads again.
pub(super) fn read(read: &ReadHere<'_>, memory_align: usize) -> Option<Result<(), DeviceError>> {
    let file = read.backing().get::<HostFile>()?;
    if file.path(Path::Direct) != Path::Direct {
        return None;
    }
    let fd = file.opened(Path::Direct, Use::Read)?;
    let mut iovecs: SmallVec<[IoVec; 1]> = SmallVec::new();
    let mut bytes = 0;
    for (start, len) in read.segments() {
        bytes += len;
        match iovecs.last_mut() {
            Some(last) if last.start.wrapping_add(last.len) == start => last.len += len,
            _ => iovecs.push(IoVec { start, len }),
        }
    }
    if iovecs.len() > IOVECS_MAX || !iovecs.iter().all(|iovec| iovec.start.addr().is_multiple_of(memory_align)) {
        return None;
    }
    let (iovecs, count) = (iovecs.as_ptr(), iovecs.len() as u32);
    let io = Io::ReadV { fd: fd.as_raw_fd(), iovecs, count, offset: read.offset(), may_wait: true };
    // SAFETY: the vectors and the descriptor live until the call has ended, and they point into the memory of `read`.
    let result = unsafe { io.perform() };
    (usize::try_from(result) == Ok(bytes)).then_some(Ok(()))
}
