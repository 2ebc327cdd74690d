//! Files.
//!
//! Owns: the blocking calls on a file as C has them.
//! Does not own: the file (`afflux`), calls in flight (`queue`).
//! Invariants: the flags of opening are those of open(2), and one that is not known is refused, not left out.

use std::ffi::{c_char, c_int, c_void};
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::BorrowedFd;

use afflux::{Advice, File, OpenOptions};

use crate::border::{Answer, Failure, count, guarded, status};
use crate::cache::{CacheHandle, on_cache};
use crate::handle::Table;
use crate::memory::{Out, bytes, bytes_mut, path, put_known, vector};

static FILES: Table<File> = Table::new(2, "file");

/// An open file of a cache. Opened twice, by one name or another, it is one file: handles see each other's bytes at once.
pub struct FileHandle {
    _private: [u8; 0],
}

/// Does work with a file.
#[inline]
pub(crate) fn on_file<T>(file: *mut FileHandle, work: impl FnOnce(&File) -> Answer<T>) -> Answer<T> {
    let file = FILES.enter(file)?;
    guarded(|| file.cache(), || work(&file))
}

/// Opens a file, with the flags and the mode of open(2): O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC,
/// O_CLOEXEC; others are refused (AFFLUX_ERROR_INVALID), O_CREAT and O_TRUNC with O_RDONLY, too. The cache takes regular files and block devices. One that another
/// cache has is waited for, two seconds at most, then it is AFFLUX_ERROR_BUSY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_open(
    cache: *mut CacheHandle,
    name: *const c_char,
    flags: c_int,
    mode: u32,
    file: *mut *mut FileHandle,
) -> c_int {
    status(|| {
        on_cache(cache, |cache| {
            // SAFETY: the caller's promise.
            let place = unsafe { Out::new(file, "the place for the file") }?;
            // SAFETY: as above.
            let opened = cache.open(unsafe { path(name) }?, options(flags, mode)?)?;
            place.put(FILES.open(opened)?);
            Ok(())
        })
    })
}

fn options(flags: c_int, mode: u32) -> Answer<OpenOptions> {
    let access = flags & libc::O_ACCMODE;
    let known = libc::O_ACCMODE | libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC | libc::O_CLOEXEC;
    if flags & !known != 0 || access == libc::O_ACCMODE {
        let known = "O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC, O_CLOEXEC";
        return Err(Failure::invalid(format!("flags {flags:#o} for opening: only {known} can be")));
    }
    let has = |flag| flags & flag != 0;
    if access == libc::O_RDONLY && (has(libc::O_CREAT) || has(libc::O_TRUNC)) {
        return Err(Failure::invalid("O_CREAT and O_TRUNC need O_WRONLY or O_RDWR".to_owned()));
    }
    Ok(OpenOptions::new()
        .read(access != libc::O_WRONLY)
        .write(access != libc::O_RDONLY)
        .create(has(libc::O_CREAT))
        .create_new(has(libc::O_CREAT) && has(libc::O_EXCL))
        .truncate(has(libc::O_TRUNC))
        .mode(mode))
}

/// Takes a copy of a descriptor that is open for reading, or for reading and writing; the caller keeps its own. Whoever
/// goes on writing through that one writes behind the cache's back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_open_fd(cache: *mut CacheHandle, fd: c_int, file: *mut *mut FileHandle) -> c_int {
    status(|| {
        on_cache(cache, |cache| {
            // SAFETY: the caller's promise.
            let place = unsafe { Out::new(file, "the place for the file") }?;
            if fd < 0 {
                return Err(Failure::bad_handle(format!("{fd} is no descriptor")));
            }
            // SAFETY: used for the copy alone, which the host refuses for one that is not open.
            let own = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?;
            place.put(FILES.open(cache.open_fd(own)?)?);
            Ok(())
        })
    })
}

/// Makes a file durable if the handle can write, and gives the handle back, in any case: after an error, too, it is gone.
/// What is not durable then stays dirty, and is written when it can be. Calls that are in progress with it on other
/// threads go on.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_close(file: *mut FileHandle) -> c_int {
    status(|| {
        let file = FILES.close(file)?;
        guarded(|| file.cache(), || Ok(File::clone(&file).close()?))
    })
}

/// Gives the handle back without waiting for anything: what is dirty is written later, and whether that succeeds is told
/// by afflux_cache_drain() and afflux_cache_close().
#[unsafe(no_mangle)]
pub extern "C" fn afflux_release(file: *mut FileHandle) -> c_int {
    status(|| FILES.close(file).map(drop))
}

/// Reads up to `len` bytes from `offset` on. How many were read: fewer only at the file's end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_read(file: *mut FileHandle, into: *mut c_void, len: usize, offset: u64) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            let into = unsafe { bytes_mut(into, len) }?;
            Ok(file.read_at(into, offset)? as u64)
        })
    })
}

/// afflux_read() if that need not wait, otherwise AFFLUX_ERROR_WOULD_BLOCK, and `into` may have some of the bytes. Without
/// a system call or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_try_read(file: *mut FileHandle, into: *mut c_void, len: usize, offset: u64) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            let into = unsafe { bytes_mut(into, len) }?;
            Ok(file.try_read_at(into, offset)? as u64)
        })
    })
}

/// Reads into several buffers, one after the other, as preadv(2). No two may have bytes in common.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_readv(
    file: *mut FileHandle,
    into: *const libc::iovec,
    count_of: c_int,
    offset: u64,
) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            let into = unsafe { vector(into, count_of) }?.iter().map(|slice| {
                // SAFETY: as above.
                unsafe { bytes_mut(slice.iov_base, slice.iov_len) }.map(IoSliceMut::new)
            });
            let mut into = into.collect::<Answer<Vec<_>>>()?;
            Ok(file.read_vectored_at(&mut into, offset)? as u64)
        })
    })
}

/// Writes all of `from` at `offset`; the file grows as needed. Returns `len`. The bytes are in the cache then, seen by
/// every handle, and on the device after a sync that succeeds; without one, by and by. Waits for room: so much may be
/// dirty for a device. After an error a part of the bytes, from the first on, may have been written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_write(file: *mut FileHandle, from: *const c_void, len: usize, offset: u64) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            let from = unsafe { bytes(from, len) }?;
            file.write_at(from, offset)?;
            Ok(len as u64)
        })
    })
}

/// afflux_write() of bytes that are dirty in the cache already, which is a copy; otherwise AFFLUX_ERROR_WOULD_BLOCK, and
/// some may have been written, which writing all of them again makes good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_try_write(file: *mut FileHandle, from: *const c_void, len: usize, offset: u64) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            let from = unsafe { bytes(from, len) }?;
            file.try_write_at(from, offset)?;
            Ok(len as u64)
        })
    })
}

/// Writes several buffers, one after the other, as pwritev(2). Returns how many bytes: all of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_writev(
    file: *mut FileHandle,
    from: *const libc::iovec,
    count_of: c_int,
    offset: u64,
) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            let from = unsafe { slices(from, count_of) }?;
            file.write_vectored_at(&from, offset)?;
            Ok(from.iter().map(|slice| slice.len() as u64).sum())
        })
    })
}

/// # Safety
/// At `from` there are `count` slices, as `vector` and `bytes` want them.
unsafe fn slices<'a>(from: *const libc::iovec, count: c_int) -> Answer<Vec<IoSlice<'a>>> {
    // SAFETY: the caller's promise.
    let from = unsafe { vector(from, count) }?.iter();
    // SAFETY: as above.
    from.map(|slice| unsafe { bytes(slice.iov_base, slice.iov_len) }.map(IoSlice::new)).collect()
}

/// Writes at the file's end. Returns where the bytes begin. One append at a time: what two of them write never overlaps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_append(file: *mut FileHandle, from: *const c_void, len: usize) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            Ok(file.append(unsafe { bytes(from, len) }?)?)
        })
    })
}

/// Appends several buffers, as one append. Returns where the first begins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_appendv(file: *mut FileHandle, from: *const libc::iovec, count_of: c_int) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            Ok(file.append_vectored(&unsafe { slices(from, count_of) }?)?)
        })
    })
}

/// Makes everything durable that was written to the file before the call, through whatever handle, with its size:
/// fdatasync(2). An error is told by every sync until what failed has been written, so one that succeeds is to be
/// believed, after an error, too.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_sync_data(file: *mut FileHandle) -> c_int {
    status(|| on_file(file, |file| Ok(file.sync_data()?)))
}

/// afflux_sync_data(), and the file's times and mode with it: fsync(2).
#[unsafe(no_mangle)]
pub extern "C" fn afflux_sync_all(file: *mut FileHandle) -> c_int {
    status(|| on_file(file, |file| Ok(file.sync_all()?)))
}

/// afflux_sync_data() of a range, and of the file's size.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_sync_range(file: *mut FileHandle, offset: u64, len: u64) -> c_int {
    status(|| on_file(file, |file| Ok(file.sync_range(range(offset, len)?)?)))
}

fn range(offset: u64, len: u64) -> Answer<Range<u64>> {
    let end = offset.checked_add(len);
    end.map(|end| offset..end).ok_or_else(|| Failure::invalid(format!("{offset} + {len} bytes is no range of a file")))
}

/// Sets the size: bytes past a smaller one are gone, bytes up to a larger one read as zeros. Durable after a sync.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_set_len(file: *mut FileHandle, len: u64) -> c_int {
    status(|| on_file(file, |file| Ok(file.set_len(len)?)))
}

/// Makes a range read as zeros, and gives the space of its whole pages back where the device can. The size stays.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_punch_hole(file: *mut FileHandle, offset: u64, len: u64) -> c_int {
    status(|| on_file(file, |file| Ok(file.punch_hole(range(offset, len)?)?)))
}

/// How a range of a file will be read.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advised {
    /// Nothing is known: what was said before is taken back.
    Normal = 0,
    /// In order.
    Sequential = 1,
    /// Here and there: nothing is read ahead.
    Random = 2,
    /// Soon: it is read ahead now, as far as there is room.
    WillNeed = 3,
    /// No more: its clean pages leave the cache.
    DontNeed = 4,
    /// Once: pages leave the cache once a stream has passed them.
    NoReuse = 5,
}

/// Says how a range will be read, by one of afflux_advice; a `len` of UINT64_MAX is up to any end. Waits for nothing and
/// promises nothing.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_advise(file: *mut FileHandle, offset: u64, len: u64, advice: c_int) -> c_int {
    status(|| {
        on_file(file, |file| {
            let advice = match advice {
                0 => Advice::Normal,
                1 => Advice::Sequential,
                2 => Advice::Random,
                3 => Advice::WillNeed,
                4 => Advice::DontNeed,
                5 => Advice::NoReuse,
                other => return Err(Failure::invalid(format!("advice {other}: it is one of afflux_advice, 0 to 5"))),
            };
            Ok(file.advise(offset..offset.saturating_add(len), advice)?)
        })
    })
}

/// Has a range read in the background, as far as there is room.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_prefetch(file: *mut FileHandle, offset: u64, len: u64) -> c_int {
    status(|| on_file(file, |file| Ok(file.prefetch(offset..offset.saturating_add(len))?)))
}

/// The file's size, as every handle sees it: at once after a write.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_len(file: *mut FileHandle) -> i64 {
    count(|| on_file(file, |file| Ok(file.len())))
}

/// What is known of a file: the size and what is dirty as the cache has it, the rest as the host has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Metadata {
    /// The size, with what is not written yet.
    pub len: u64,
    /// Bytes not written yet, in whole pages.
    pub dirty_bytes: u64,
    /// Bytes that it takes on its device.
    pub allocated_bytes: u64,
    /// Its number in its file system.
    pub inode: u64,
    /// Its kind and permissions, as st_mode has them.
    pub mode: u32,
    /// How many names it has.
    pub links: u32,
}

/// Asks the host after a file; what others changed in it is noticed by this, too. `size` is sizeof(afflux_metadata).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_stat(file: *mut FileHandle, metadata: *mut Metadata, size: usize) -> c_int {
    status(|| {
        on_file(file, |file| {
            let host = file.metadata()?;
            let known = Metadata {
                len: host.len(),
                dirty_bytes: file.dirty_bytes(),
                allocated_bytes: host.allocated_bytes(),
                inode: host.inode(),
                mode: host.mode(),
                links: host.links(),
            };
            // SAFETY: the caller's promise.
            unsafe { put_known(metadata, size, &known, "the place for what is known of the file") }
        })
    })
}

#[cfg(test)]
mod tests;
