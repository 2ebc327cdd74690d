//! The device of a mount, messages out of it and replies into it, and the buffers of messages.
//!
//! Owns: the system calls; a thread's buffer, the messages that calls take along, the spare buffers.
//! Does not own: threads and when a call waits (`session`), the contents of messages.
//! Invariants: a reply is one write. Pages leave from their frames, without a copy. The kernel finds all memory of a
//! mount that outlives this server mapped. A short message is copied, so that its call holds little. At most
//! [`SPARES_MAX`] buffers wait for use. Any other buffer holds a large message that waits, and the machine bounds their
//! bytes.

use std::hint::black_box;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_frontend::{MESSAGE_COPIED_MAX, MessageReply, Segment};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

const PATH: &str = "/dev/fuse";

/// The smallest page of any host.
const PAGE_BYTES: usize = 4096;

/// `FUSE_DEV_IOC_CLONE`: joins a fresh descriptor to the mount of another one.
const CLONE: u32 = 0x8004_e500;

/// A descriptor of the device.
#[derive(Clone)]
pub(super) struct FuseDevice {
    descriptor: Arc<OwnedFd>,
    /// The mount outlives this server.
    is_persistent: bool,
}

/// Where the request of a reply was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written {
    /// This descriptor, as far as the kernel reports.
    Here,
    /// Not this descriptor: another one, or none any more.
    Elsewhere,
}

/// Maps each page of a reply. Once the process is killed, the kernel maps no page for a write that is under way, and
/// the program gets EIO. A kill before the write leaves the request to the next server.
fn touch<'a>(slices: impl Iterator<Item = &'a [u8]>) {
    for page in slices.flat_map(|slice| slice.chunks(PAGE_BYTES)) {
        black_box(page.first().copied());
    }
}

/// A fresh descriptor, of no mount yet.
pub(super) fn fresh() -> io::Result<OwnedFd> {
    Ok(open(Path::new(PATH), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

impl FuseDevice {
    pub(super) fn new(descriptor: OwnedFd) -> Self {
        Self { descriptor: Arc::new(descriptor), is_persistent: false }
    }

    /// The descriptor of a mount that outlives this server.
    pub(super) fn persistent(descriptor: OwnedFd) -> Self {
        Self { descriptor: Arc::new(descriptor), is_persistent: true }
    }

    pub(super) fn keep(&mut self) {
        self.is_persistent = true;
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Another descriptor of the same mount. Each has a queue of its own for requests that wait for their answers. The
    /// queue ends with its descriptor, and its callers get errors. So a mount that outlives its server has one
    /// descriptor.
    pub(super) fn cloned(&self) -> io::Result<Self> {
        if self.is_persistent {
            return Ok(self.clone());
        }
        let descriptor = fresh()?;
        let source = self.descriptor.as_raw_fd() as u32;
        // SAFETY: both descriptors are open, and the call reads the number alone.
        let result = unsafe { libc::ioctl(descriptor.as_raw_fd(), CLONE.into(), &raw const source) };
        if result == 0 { Ok(Self::new(descriptor)) } else { Err(io::Error::last_os_error()) }
    }

    /// The length of the next message, read into `buffer`; none once the mount is gone.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&*self.descriptor, &mut *buffer) {
                Ok(bytes) => return Ok(Some(bytes)),
                // The caller of the message gave up before it was read.
                Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => {}
                Err(Errno::NODEV) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether a message waits to be read.
    pub(super) fn has_message(&self) -> bool {
        let mut polled = [PollFd::new(&*self.descriptor, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&at_once)) == Ok(1) && polled[0].revents().contains(PollFlags::IN)
    }

    /// Writes a reply. The kernel refuses the reply to a caller that is gone.
    pub(super) fn write(&self, reply: &MessageReply) -> Written {
        let head = IoSlice::new(reply.head());
        let written = match reply.data() {
            None => rustix::io::writev(&*self.descriptor, &[head]),
            Some(Segment::Bytes(bytes)) => rustix::io::writev(&*self.descriptor, &[head, IoSlice::new(bytes)]),
            Some(Segment::Lent(bytes)) => rustix::io::writev(&*self.descriptor, &[head, IoSlice::new(bytes)]),
            Some(Segment::Pages(pages)) => {
                if self.is_persistent {
                    touch(pages.slices());
                }
                let parts: Vec<_> = std::iter::once(head).chain(pages.slices().map(IoSlice::new)).collect();
                rustix::io::writev(&*self.descriptor, &parts)
            }
        };
        if written == Err(Errno::NOENT) { Written::Elsewhere } else { Written::Here }
    }
}

const SPARES_MAX: usize = 8;

/// Buffers of one size.
pub(super) struct Buffers {
    bytes: usize,
    spares: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { bytes, spares: Mutex::default() })
    }

    pub(super) fn take(&self) -> Vec<u8> {
        // Not zeros: the kernel maps no page for a process that is being killed, and would fail the request (`device`).
        self.lock().pop().unwrap_or_else(|| vec![1; self.bytes])
    }

    /// The first `len` bytes of a thread's buffer, for a call that outlives the thread's round.
    pub(super) fn message(self: &Arc<Self>, buffer: &mut Vec<u8>, len: usize) -> PooledMessage {
        if len <= MESSAGE_COPIED_MAX {
            return PooledMessage { buffer: buffer[..len].to_vec(), len, of: None };
        }
        let full = std::mem::replace(buffer, self.take());
        PooledMessage { buffer: full, len, of: Some(Arc::clone(self)) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message that a call holds.
pub(super) struct PooledMessage {
    buffer: Vec<u8>,
    len: usize,
    of: Option<Arc<Buffers>>,
}

impl AsRef<[u8]> for PooledMessage {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl Drop for PooledMessage {
    fn drop(&mut self) {
        let Some(of) = self.of.take() else { return };
        let mut spares = of.lock();
        if spares.len() < SPARES_MAX {
            spares.push(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests;
