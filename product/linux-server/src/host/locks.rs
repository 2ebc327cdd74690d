//! Locks of a file that programs of the host see, by open file descriptions (fcntl(2), F_OFD_SETLK).
//!
//! Owns: a descriptor of the file for its locks alone, the calls, the threads that wait for programs.
//! Does not own: the modes of bytes, the order of calls (the volume).
//! Invariants: the descriptor is never used for bytes, and its close ends the locks. Threads of the device's pool make
//! the calls and the close, since the file system may stand still. A thread waits with a descriptor of its own, and
//! retains no lock. One thread waits for a file at a time, and [`WAITS_MAX`] for all files.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use afflux_volume::{HostLocks, HostRefusal, LockMode, LockWaker, Span, VolumeError};
use rustix::fs::{CWD, OFlags};

use super::Core;
use super::node::HostNode;
use afflux_linux_device::pool::{WorkerPool, begin_next_call};
use afflux_linux_device::reopen::open_without_waiting;

/// Most threads that wait for programs. Others wait for the next check of all queues.
const WAITS_MAX: usize = 32;

static WAITS: AtomicUsize = AtomicUsize::new(0);

/// A file's locks.
struct DescribedLocks {
    pool: WorkerPool,
    /// Present until the drop.
    fd: Option<Arc<OwnedFd>>,
    flags: OFlags,
    /// A thread waits for a program.
    waits: Arc<AtomicBool>,
}

impl Core {
    /// Opens a file for locks. One that cannot be written takes shared ones alone.
    pub(super) fn open_locks(&self, node: &HostNode) -> Result<Arc<dyn HostLocks>, VolumeError> {
        let (fd, flags) = match self.reopen(node, OFlags::RDWR) {
            Ok(fd) => (fd, OFlags::RDWR),
            Err(VolumeError::Denied | VolumeError::NotPermitted | VolumeError::ReadOnly) => {
                (self.reopen(node, OFlags::RDONLY)?, OFlags::RDONLY)
            }
            Err(error) => return Err(error),
        };
        let (pool, fd) = (node.pool().clone(), Some(Arc::new(fd)));
        Ok(Arc::new(DescribedLocks { pool, fd, flags, waits: Arc::default() }))
    }
}

/// A lock in the kernel's form. Offsets there are signed: what lies beyond them is no byte of a file.
fn described(span: Span, mode: Option<LockMode>) -> Option<libc::flock> {
    let start = i64::try_from(span.first()).ok()?;
    // 0 stands for all bytes from the start on.
    let len = i64::try_from(span.last()).ok().and_then(|last| (last - start).checked_add(1)).unwrap_or_default();
    let kind = match mode {
        Some(LockMode::Exclusive) => libc::F_WRLCK,
        Some(LockMode::Shared) => libc::F_RDLCK,
        None => libc::F_UNLCK,
    };
    Some(libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: len,
        l_pid: 0,
    })
}

fn call(fd: &OwnedFd, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is open, and the kernel reads and writes no more than the lock.
        if unsafe { libc::fcntl(fd.as_raw_fd(), command, std::ptr::from_mut(lock)) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

impl Drop for DescribedLocks {
    fn drop(&mut self) {
        let fd = self.fd.take();
        // One for each file whose locks have ended.
        self.pool.post(move || drop(fd));
    }
}

impl HostLocks for DescribedLocks {
    fn start(&self, work: Box<dyn FnOnce() + Send>) {
        // The volume has one work for a file.
        self.pool.post(work);
    }

    fn set(&self, span: Span, mode: Option<LockMode>) -> Result<(), HostRefusal> {
        let (Some(mut lock), Some(fd)) = (described(span, mode), &self.fd) else { return Ok(()) };
        begin_next_call();
        call(fd, libc::F_OFD_SETLK, &mut lock).map_err(|error| match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => HostRefusal::Held,
            _ => HostRefusal::Failed,
        })
    }

    fn conflict(&self, span: Span, mode: LockMode) -> Option<(Span, LockMode, u32)> {
        let mut lock = described(span, Some(mode))?;
        begin_next_call();
        call(self.fd.as_ref()?, libc::F_OFD_GETLK, &mut lock).ok()?;
        let mode = match libc::c_int::from(lock.l_type) {
            libc::F_WRLCK => LockMode::Exclusive,
            libc::F_RDLCK => LockMode::Shared,
            _ => return None,
        };
        let len = if lock.l_len == 0 { u64::MAX } else { lock.l_len.cast_unsigned() };
        let span = Span::of(lock.l_start.cast_unsigned(), len)?;
        // The kernel has no process for an open file description.
        Some((span, mode, u32::try_from(lock.l_pid).unwrap_or_default()))
    }

    fn wake_when_free(&self, span: Span, mode: LockMode, waker: Arc<dyn LockWaker>) {
        let Some(mut lock) = described(span, Some(mode)) else { return };
        let (Some(fd), Some(permit)) = (self.fd.clone(), WaiterPermit::take(&self.waits)) else { return };
        let flags = self.flags;
        // The caller may have a lock, and does not wait for the start of a thread. Without a thread, and after an
        // error, the waiter waits for the next check of all queues.
        self.pool.post(move || {
            let _ = thread::Builder::new().name("lock wait".to_owned()).spawn(move || {
                let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let Ok(own) = open_without_waiting(CWD, &name, flags) else { return };
                drop(fd);
                let is_free = call(&own, libc::F_OFD_SETLKW, &mut lock).is_ok();
                // Its close ends the lock before the waiter asks again.
                drop(own);
                drop(permit);
                if is_free {
                    waker.wake();
                }
            });
        });
    }
}

/// A permit for a thread that waits.
struct WaiterPermit(Arc<AtomicBool>);

impl WaiterPermit {
    fn take(waits: &Arc<AtomicBool>) -> Option<Self> {
        if waits.swap(true, Ordering::AcqRel) {
            return None;
        }
        let permit = Self(Arc::clone(waits));
        // The drop of a permit counts one less, also if the permit is not given.
        (WAITS.fetch_add(1, Ordering::AcqRel) < WAITS_MAX).then_some(permit)
    }
}

impl Drop for WaiterPermit {
    fn drop(&mut self) {
        WAITS.fetch_sub(1, Ordering::AcqRel);
        self.0.store(false, Ordering::Release);
    }
}
