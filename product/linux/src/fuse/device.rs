//! The device of a mount: messages out of it, replies into it.
//!
//! Owns: the system calls.
//! Does not own: threads (`session`), the contents of messages.
//! Invariants: a reply is one write. Pages leave from their frames, without a copy.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use afflux_frontend::{MessageReply, Segment};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

const PATH: &str = "/dev/fuse";

/// `FUSE_DEV_IOC_CLONE`: joins a fresh descriptor to the mount of another one.
const CLONE: u32 = 0x8004_e500;

/// A descriptor of the device.
#[derive(Clone)]
pub(super) struct Device(Arc<OwnedFd>);

/// The place of the request that a reply belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written {
    /// This descriptor, as far as the kernel says.
    Here,
    /// Not this descriptor: another one, or none any more.
    Elsewhere,
}

/// A fresh descriptor, of no mount yet.
pub(super) fn fresh() -> io::Result<OwnedFd> {
    Ok(open(Path::new(PATH), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

impl Device {
    pub(super) fn new(descriptor: OwnedFd) -> Self {
        Self(Arc::new(descriptor))
    }

    /// Another descriptor of the same mount. Each has a queue of its own for requests that wait for their answers.
    pub(super) fn cloned(&self) -> io::Result<Self> {
        let descriptor = fresh()?;
        let source = self.0.as_raw_fd() as u32;
        // SAFETY: both descriptors are open, and the call reads the number alone.
        let result = unsafe { libc::ioctl(descriptor.as_raw_fd(), CLONE.into(), &raw const source) };
        if result == 0 { Ok(Self::new(descriptor)) } else { Err(io::Error::last_os_error()) }
    }

    /// The length of the next message, read into `buffer`; none once the mount is gone.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&*self.0, &mut *buffer) {
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
        let mut polled = [PollFd::new(&*self.0, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&at_once)) == Ok(1) && polled[0].revents().contains(PollFlags::IN)
    }

    /// Writes a reply. The kernel refuses the reply to a caller that is gone.
    pub(super) fn write(&self, reply: &MessageReply) -> Written {
        let head = IoSlice::new(reply.head());
        let written = match reply.data() {
            None => rustix::io::writev(&*self.0, &[head]),
            Some(Segment::Bytes(bytes)) => rustix::io::writev(&*self.0, &[head, IoSlice::new(bytes)]),
            Some(Segment::Lent(bytes)) => rustix::io::writev(&*self.0, &[head, IoSlice::new(bytes)]),
            Some(Segment::Pages(pages)) => {
                let parts: Vec<_> = std::iter::once(head).chain(pages.slices().map(IoSlice::new)).collect();
                rustix::io::writev(&*self.0, &parts)
            }
        };
        if written == Err(Errno::NOENT) { Written::Elsewhere } else { Written::Here }
    }
}
