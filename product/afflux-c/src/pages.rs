//! Bytes in the cache, shown without a copy.
//!
//! Owns: the calls on pinned reads.
//! Does not own: the pages (`afflux`), the bound on held ones.
//! Invariants: the bytes of a slice stay in place and unchanged until the handle is released.

use std::ffi::{c_int, c_void};

use afflux::Pages;

use crate::border::{Answer, count, status};
use crate::file::{FileHandle, on_file};
use crate::handle::HandleTable;
use crate::memory::Out;

static PAGES: HandleTable<Pages> = HandleTable::new(3, "pages");

/// Bytes of a file as a read found them, until they are released. They hold memory of the cache: keep them for as long
/// as a reply takes, not for ever.
pub struct PagesHandle {
    _private: [u8; 0],
}

/// A part of the bytes: laid out as struct iovec, and read-only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// The first byte.
    pub data: *const c_void,
    /// Number of bytes.
    pub len: usize,
}

/// Shows up to `len` bytes from `offset` on. Returns their number: fewer only at the file's end. Meanwhile, a write of
/// the same bytes goes to other pages. At most a quarter of the cache can be held this way; beyond that the bytes
/// are copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_pages_get(
    file: *mut FileHandle,
    offset: u64,
    len: u64,
    pages: *mut *mut PagesHandle,
) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            let place = unsafe { Out::new(pages, "the place for the pages") }?;
            register(place, file.read_pinned(offset..offset.saturating_add(len))?)
        })
    })
}

/// afflux_pages_get() if it need not wait or copy, otherwise AFFLUX_ERROR_WOULD_BLOCK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_pages_try_get(
    file: *mut FileHandle,
    offset: u64,
    len: u64,
    pages: *mut *mut PagesHandle,
) -> i64 {
    count(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            let place = unsafe { Out::new(pages, "the place for the pages") }?;
            register(place, file.try_read_pinned(offset..offset.saturating_add(len))?)
        })
    })
}

fn register(place: Out<*mut PagesHandle>, pages: Pages) -> Answer<u64> {
    let len = pages.len() as u64;
    place.put(PAGES.open(pages)?);
    Ok(len)
}

/// The bytes, in the file's order, a slice a page: fills up to `room` slices, from slice number `first` on. Returns the
/// number of filled slices; fewer than `room` means that these are the last. They may be read until the pages are
/// released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_pages_slices(
    pages: *mut PagesHandle,
    first: usize,
    slices: *mut Slice,
    room: usize,
) -> i64 {
    count(|| {
        let pages = PAGES.enter(pages)?;
        if room > 0 {
            // SAFETY: the caller's promise, for the first and so for all.
            unsafe { Out::new(slices, "the place for the slices") }?;
        }
        let mut filled = 0;
        for slice in pages.slices().skip(first).take(room) {
            let slice = Slice { data: slice.as_ptr().cast(), len: slice.len() };
            // SAFETY: the caller's promise: there is room for this many.
            unsafe { slices.add(filled).write(slice) };
            filled += 1;
        }
        Ok(filled as u64)
    })
}

/// Gives the pages back; their slices must not be read any more.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_pages_release(pages: *mut PagesHandle) -> c_int {
    status(|| PAGES.close(pages).map(drop))
}
