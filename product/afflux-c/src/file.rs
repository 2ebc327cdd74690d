//! Files.
//!
//! Owns: the blocking calls on a file in C's form.
//! Does not own: the file (`afflux`), calls in flight (`queue`).
//! Invariants: the flags of opening are those of open(2), and an unknown flag is refused, not ignored.

use std::ffi::{c_char, c_int, c_void};
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::BorrowedFd;

use afflux::{Advice, File, OpenOptions};

use crate::border::{Answer, CallFailure, count, guarded, status};
use crate::cache::{CacheHandle, on_cache};
use crate::handle::HandleTable;
use crate::memory::{Out, bytes, bytes_mut, path, put_known, vector};

static FILES: HandleTable<File> = HandleTable::new(2, "file");

/// An open file of a cache. Opening it twice, by one name or two, gives handles of one file, which see each other's
/// bytes at once.
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
/// O_CLOEXEC. Other flags are refused (AFFLUX_ERROR_INVALID), and so are O_CREAT and O_TRUNC with O_RDONLY. The cache
/// accepts regular files and block devices. If another cache has the file, the call waits for up to two seconds, then
/// fails with AFFLUX_ERROR_BUSY.
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
        return Err(CallFailure::invalid(format!("flags {flags:#o} for opening: only {known} can be")));
    }
    let has = |flag| flags & flag != 0;
    if access == libc::O_RDONLY && (has(libc::O_CREAT) || has(libc::O_TRUNC)) {
        return Err(CallFailure::invalid("O_CREAT and O_TRUNC need O_WRONLY or O_RDWR".to_owned()));
    }
    Ok(OpenOptions::new()
        .read(access != libc::O_WRONLY)
        .write(access != libc::O_RDONLY)
        .create(has(libc::O_CREAT))
        .create_new(has(libc::O_CREAT) && has(libc::O_EXCL))
        .truncate(has(libc::O_TRUNC))
        .mode(mode))
}

/// Takes a copy of a descriptor that is open for reading, or for reading and writing; the caller keeps its own. A write
/// through the caller's descriptor goes behind the cache's back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_open_fd(cache: *mut CacheHandle, fd: c_int, file: *mut *mut FileHandle) -> c_int {
    status(|| {
        on_cache(cache, |cache| {
            // SAFETY: the caller's promise.
            let place = unsafe { Out::new(file, "the place for the file") }?;
            if fd < 0 {
                return Err(CallFailure::bad_handle(format!("{fd} is no descriptor")));
            }
            // SAFETY: used only for the copy, which the host refuses if the descriptor is not open.
            let own = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?;
            place.put(FILES.open(cache.open_fd(own)?)?);
            Ok(())
        })
    })
}

/// Makes a file durable if the handle can write, and gives the handle back in any case, even after an error. Bytes that
/// are not durable then stay dirty, and are written when possible. Calls with it that are in progress on other threads
/// go on.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_close(file: *mut FileHandle) -> c_int {
    status(|| {
        let file = FILES.close(file)?;
        guarded(|| file.cache(), || Ok(File::clone(&file).close()?))
    })
}

/// Gives the handle back without waiting: dirty bytes are written later. afflux_cache_drain() and afflux_cache_close()
/// report whether that succeeds.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_release(file: *mut FileHandle) -> c_int {
    status(|| FILES.close(file).map(drop))
}

/// Reads up to `len` bytes from `offset` on. Returns their number: fewer only at the file's end.
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

/// afflux_read() if it need not wait, otherwise AFFLUX_ERROR_WOULD_BLOCK, and `into` may have some of the bytes. Makes
/// no system call and takes no lock.
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

/// Reads into several buffers, one after the other, as preadv(2). The buffers must not overlap.
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

/// Writes all of `from` at `offset`; the file grows as needed. Returns `len`. The bytes are in the cache then, and
/// every handle sees them. They are on the device after a successful sync, or otherwise after some time. Waits for
/// room, since the dirty bytes of a device are bounded. After an error, a prefix of the bytes may have been written.
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

/// afflux_write() of bytes that are dirty in the cache already, which is a copy. Otherwise AFFLUX_ERROR_WOULD_BLOCK:
/// some bytes may have been written; writing all of them again completes the write.
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

/// Writes several buffers, one after the other, as pwritev(2). Returns the number of all bytes.
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
/// At `from` there are `count` slices, each valid for `vector` and `bytes`.
unsafe fn slices<'a>(from: *const libc::iovec, count: c_int) -> Answer<Vec<IoSlice<'a>>> {
    // SAFETY: the caller's promise.
    let from = unsafe { vector(from, count) }?.iter();
    // SAFETY: as above.
    from.map(|slice| unsafe { bytes(slice.iov_base, slice.iov_len) }.map(IoSlice::new)).collect()
}

/// Writes at the file's end. Returns the offset of the bytes. Appends take turns, so that two of them never overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_append(file: *mut FileHandle, from: *const c_void, len: usize) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            Ok(file.append(unsafe { bytes(from, len) }?)?)
        })
    })
}

/// Appends several buffers, as one append. Returns the offset of the first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_appendv(file: *mut FileHandle, from: *const libc::iovec, count_of: c_int) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            Ok(file.append_vectored(&unsafe { slices(from, count_of) }?)?)
        })
    })
}

/// Makes all earlier writes to the file durable, through any handle, with its size: fdatasync(2). Every sync returns an
/// error until the bytes that failed have been written. So a sync that succeeds can be trusted, even after an error.
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
    end.map(|end| offset..end)
        .ok_or_else(|| CallFailure::invalid(format!("{offset} + {len} bytes is no range of a file")))
}

/// Sets the size: bytes past a smaller one are gone, bytes up to a larger one read as zeros. Durable after a sync.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_set_len(file: *mut FileHandle, len: u64) -> c_int {
    status(|| on_file(file, |file| Ok(file.set_len(len)?)))
}

/// Makes a range read as zeros, and frees the space of its whole pages if the device can. The size stays.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_punch_hole(file: *mut FileHandle, offset: u64, len: u64) -> c_int {
    status(|| on_file(file, |file| Ok(file.punch_hole(range(offset, len)?)?)))
}

/// How a range of a file will be read.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advised {
    /// Nothing is known: earlier advice no longer holds.
    Normal = 0,
    /// In order.
    Sequential = 1,
    /// At random places: nothing is read ahead.
    Random = 2,
    /// Soon: it is read ahead now, as far as there is room.
    WillNeed = 3,
    /// Not any more: its clean pages leave the cache.
    DontNeed = 4,
    /// Once: pages leave the cache once a stream has passed them.
    NoReuse = 5,
}

/// Announces how a range will be read, by one of afflux_advice. A `len` of UINT64_MAX means up to the end. Waits for
/// nothing and promises nothing.
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
                other => {
                    return Err(CallFailure::invalid(format!("advice {other}: it is one of afflux_advice, 0 to 5")));
                }
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

/// The file's size, as every handle sees it: immediately after a write.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_len(file: *mut FileHandle) -> i64 {
    count(|| on_file(file, |file| Ok(file.len())))
}

/// A file's metadata: the size and the dirty bytes are the cache's, the other members the host's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Metadata {
    /// The size, including unwritten bytes.
    pub len: u64,
    /// Unwritten bytes, in whole pages.
    pub dirty_bytes: u64,
    /// Bytes allocated on the device.
    pub allocated_bytes: u64,
    /// Its number in its file system.
    pub inode: u64,
    /// Its kind and permissions, as in st_mode.
    pub mode: u32,
    /// Number of its names.
    pub links: u32,
}

/// Stores a file's metadata, from the host. This also notices other programs' changes of the file. `size` is
/// sizeof(afflux_metadata).
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
            unsafe { put_known(metadata, size, &known, "the place for the file's attributes") }
        })
    })
}

#[cfg(test)]
mod tests;
