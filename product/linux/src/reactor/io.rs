//! The operations of a reactor, and the owners of their memory.
//!
//! Owns: the shapes of vectors and messages as the kernel reads them.
//! Does not own: the memory; the `Owner` has it, and a reactor keeps the owner until the kernel is done.
//! Invariants: an owner gets the outcome once, on the thread that started the operation, with nothing of the reactor
//! borrowed.

use std::os::fd::RawFd;

/// One piece of memory, as the kernel's `struct iovec`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct IoVec {
    pub(crate) start: *mut u8,
    pub(crate) len: usize,
}

/// The most pieces of one call: the kernel's `UIO_MAXIOV`.
pub(crate) const IOVECS_MAX: usize = 1024;
/// The kernel's flag since Linux 6.14; older kernels refuse it.
pub(crate) const RWF_DONTCACHE: u32 = 0x80;

/// A message to send, as the kernel's `struct user_msghdr`.
#[repr(C)]
pub(crate) struct Message {
    name: *mut u8,
    name_bytes: u32,
    iovecs: *const IoVec,
    iovec_count: usize,
    control: *mut u8,
    control_bytes: usize,
    flags: u32,
}

impl Message {
    /// A message of the bytes in `iovecs`, which must stay in place while the kernel uses the message.
    pub(crate) fn new(iovecs: &[IoVec]) -> Self {
        Self {
            name: std::ptr::null_mut(),
            name_bytes: 0,
            iovecs: iovecs.as_ptr(),
            iovec_count: iovecs.len(),
            control: std::ptr::null_mut(),
            control_bytes: 0,
            flags: 0,
        }
    }

    pub(super) fn iovecs(&self) -> (*const IoVec, usize) {
        (self.iovecs, self.iovec_count)
    }
}

/// One operation. Descriptors and pointers belong to its [`Owner`]. A read that `may_wait` is begun by a thread of the
/// kernel. An uncached write goes through the host's page cache, which drops the pages once they are on the device
/// ([`RWF_DONTCACHE`]).
#[derive(Clone, Copy)]
pub(crate) enum Io {
    ReadV {
        fd: RawFd,
        iovecs: *const IoVec,
        count: u32,
        offset: u64,
        may_wait: bool,
    },
    WriteV {
        fd: RawFd,
        iovecs: *const IoVec,
        count: u32,
        offset: u64,
    },
    WriteUncached {
        fd: RawFd,
        iovecs: *const IoVec,
        count: u32,
        offset: u64,
    },
    Sync {
        fd: RawFd,
        data_only: bool,
    },
    SetSize {
        fd: RawFd,
        size: u64,
    },
    Allocate {
        fd: RawFd,
        mode: u32,
        offset: u64,
        len: u64,
    },
    /// Until the descriptor has something to read, or a connection to accept.
    WaitReadable {
        fd: RawFd,
    },
    Receive {
        fd: RawFd,
        start: *mut u8,
        len: u32,
    },
    Send {
        fd: RawFd,
        message: *const Message,
    },
}

/// Keeps an operation's memory and descriptor, and gets its outcome.
pub(crate) trait Owner {
    /// `result` is as system calls return it to the kernel's own callers: a negative value is an errno.
    fn completed(self: Box<Self>, result: i32);
}
