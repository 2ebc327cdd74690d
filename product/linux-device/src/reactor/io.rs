//! The operations of a reactor, and the owners of their memory.
//!
//! Owns: the shapes of vectors and messages as the kernel reads them; the table of what is in flight, with keys that
//! are used again.
//! Does not own: the memory; the `Owner` has it, and a reactor holds the owner until the kernel is done.
//! Invariants: an owner gets the outcome once, on the thread that started the operation, with nothing of the reactor
//! borrowed. A key of the table names one value from `insert` to `remove`.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::fs::{FallocateFlags, fallocate, fdatasync, fsync, ftruncate};
use rustix::io::{Errno, ReadWriteFlags};

use crate::plain_user::PlainUser;

/// One piece of memory, as the kernel's `struct iovec`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct IoVec {
    /// The first byte.
    pub start: *mut u8,
    /// How many bytes.
    pub len: usize,
}

/// The most pieces of one call: the kernel's `UIO_MAXIOV`.
pub const IOVECS_MAX: usize = 1024;
/// The kernel's flag since Linux 6.14; older kernels refuse it.
pub(crate) const RWF_DONTCACHE: u32 = 0x80;

/// A message to send, as the kernel's `struct user_msghdr`.
#[repr(C)]
pub struct Message {
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
    pub fn new(iovecs: &[IoVec]) -> Self {
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

/// One operation. Descriptors and pointers belong to its [`Owner`]. A transfer that `may_wait` is begun by a thread of
/// the kernel. An uncached write goes through the host's page cache, which drops the pages once they are on the device
/// (`RWF_DONTCACHE`). A `plain` one is made as the plain user, who owns no blocks that the file system reserves.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "the names are those of the system calls and of their arguments")]
pub enum RingOperation {
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
        may_wait: bool,
        plain: bool,
    },
    WriteUncached {
        fd: RawFd,
        iovecs: *const IoVec,
        count: u32,
        offset: u64,
        may_wait: bool,
        plain: bool,
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
        plain: bool,
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

impl RingOperation {
    /// Whether it is about a file, so that a system call may do it and wait.
    pub(super) fn is_about_a_file(&self) -> bool {
        !matches!(self, Self::WaitReadable { .. } | Self::Receive { .. } | Self::Send { .. })
    }

    /// Whether it is made as the plain user.
    pub(super) fn is_plain(&self) -> bool {
        match *self {
            Self::WriteV { plain, .. } | Self::WriteUncached { plain, .. } | Self::Allocate { plain, .. } => plain,
            _ => false,
        }
    }

    /// Does a file operation with a system call that blocks. The result is as io_uring's.
    ///
    /// # Safety
    /// The pointers in `io` are valid and its descriptor is open.
    pub(crate) unsafe fn perform(&self) -> i32 {
        // SAFETY: the caller's promise, for each of the descriptors below.
        let file = |fd: RawFd| unsafe { BorrowedFd::borrow_raw(fd) };
        let nothing = |result: Result<(), Errno>| result.map(|()| 0);
        let _plain = if self.is_plain() { PlainUser::begin() } else { None };
        let result = match *self {
            Self::ReadV { fd, iovecs, count, offset, .. } => {
                // SAFETY: the caller's promise. The kernel's vector, ours and the standard library's have one layout.
                // The call fills the memory before it is read.
                let slices = unsafe { slices_of::<std::io::IoSliceMut<'_>>(iovecs, count) };
                rustix::io::preadv(file(fd), slices, offset)
            }
            Self::WriteV { fd, iovecs, count, offset, .. } => {
                // SAFETY: as above.
                let slices = unsafe { slices_of::<std::io::IoSlice<'_>>(iovecs, count) };
                rustix::io::pwritev(file(fd), slices, offset)
            }
            Self::WriteUncached { fd, iovecs, count, offset, .. } => {
                // SAFETY: as above.
                let slices = unsafe { slices_of::<std::io::IoSlice<'_>>(iovecs, count) };
                let flags = ReadWriteFlags::from_bits_retain(RWF_DONTCACHE);
                rustix::io::pwritev2(file(fd), slices, offset, flags)
            }
            Self::Sync { fd, data_only: true } => nothing(fdatasync(file(fd))),
            Self::Sync { fd, data_only: false } => nothing(fsync(file(fd))),
            Self::SetSize { fd, size } => nothing(ftruncate(file(fd), size)),
            Self::Allocate { fd, mode, offset, len, .. } => {
                nothing(fallocate(file(fd), FallocateFlags::from_bits_retain(mode), offset, len))
            }
            Self::WaitReadable { .. } | Self::Receive { .. } | Self::Send { .. } => {
                unreachable!("not a file operation")
            }
        };
        match result {
            Ok(count) => count as i32,
            Err(error) => -error.raw_os_error(),
        }
    }
}

/// # Safety
/// `iovecs` are `count` valid vectors, `S` is the standard library's form of them, and no other code uses the vectors
/// while the result lives.
unsafe fn slices_of<'a, S>(iovecs: *const IoVec, count: u32) -> &'a mut [S] {
    const {
        assert!(size_of::<S>() == size_of::<IoVec>() && align_of::<S>() == align_of::<IoVec>());
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(iovecs.cast_mut().cast::<S>(), count as usize) }
}

/// Holds an operation's memory and descriptor, and gets its outcome.
pub trait Owner {
    /// `result` is as system calls return it to the kernel's own callers: a negative value is an errno.
    fn completed(self: Box<Self>, result: i32);
}

/// Values under small keys.
pub(super) struct SlotTable<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> SlotTable<T> {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    /// The key that the next [`SlotTable::insert`] will return.
    pub(super) fn next_key(&self) -> usize {
        self.free.last().copied().unwrap_or(self.entries.len())
    }

    pub(super) fn insert(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(key) => {
                self.entries[key] = Some(value);
                key
            }
            None => {
                self.entries.push(Some(value));
                self.entries.len() - 1
            }
        }
    }

    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut T> {
        self.entries.get_mut(key)?.as_mut()
    }

    pub(super) fn remove(&mut self, key: usize) -> Option<T> {
        let value = self.entries.get_mut(key)?.take()?;
        self.free.push(key);
        Some(value)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Some key in use.
    pub(super) fn any_key(&self) -> Option<usize> {
        self.entries.iter().position(Option::is_some)
    }
}
