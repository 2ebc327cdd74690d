//! Memory from C.
//!
//! Owns: the conversion of pointers, lengths and texts from C into references, and its checks.
//! Does not own: the truth of C's claims (the caller's promise).
//! Invariants: NULL is refused if something is to be read or written, and accepted otherwise. Unaligned pointers are
//! refused, and so are lengths beyond any memory.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::mem::{MaybeUninit, size_of};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use crate::border::{Answer, CallFailure};

/// Most slices of one call, equal to the host's limit for its own calls.
const SLICES_MAX: c_int = 1024;

fn checked_len(len: usize) -> Answer<usize> {
    let what = || CallFailure::invalid(format!("a length of {len} bytes is more than any memory has"));
    isize::try_from(len).map(|_| len).map_err(|_| what())
}

/// Bytes to read.
///
/// # Safety
/// At `from` there are `len` bytes, which nobody changes for that lifetime.
pub(crate) unsafe fn bytes<'a>(from: *const c_void, len: usize) -> Answer<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(CallFailure::bad_address("the buffer"));
    }
    // SAFETY: the caller's promise; the length was checked.
    Ok(unsafe { std::slice::from_raw_parts(from.cast(), checked_len(len)?) })
}

/// Bytes to write.
///
/// # Safety
/// At `into` there is room for `len` bytes, which nobody else uses for that lifetime. The bytes are never read before
/// they are written: they may be uninitialized in C.
pub(crate) unsafe fn bytes_mut<'a>(into: *mut c_void, len: usize) -> Answer<&'a mut [u8]> {
    if len == 0 {
        return Ok(&mut []);
    }
    if into.is_null() {
        return Err(CallFailure::bad_address("the buffer"));
    }
    // SAFETY: the caller's promise; the length was checked.
    Ok(unsafe { std::slice::from_raw_parts_mut(into.cast(), checked_len(len)?) })
}

/// The values of an array.
///
/// # Safety
/// At `from` there are `count` values, which nobody changes for that lifetime.
pub(crate) unsafe fn array<'a, T>(from: *const T, count: usize, what: &str) -> Answer<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if from.is_null() || !from.is_aligned() {
        return Err(CallFailure::bad_address(what));
    }
    checked_len(count.saturating_mul(size_of::<T>()))?;
    // SAFETY: the caller's promise; address and length were checked.
    Ok(unsafe { std::slice::from_raw_parts(from, count) })
}

/// The slices of a vectored call.
///
/// # Safety
/// As for [`array()`].
pub(crate) unsafe fn vector<'a>(from: *const libc::iovec, count: c_int) -> Answer<&'a [libc::iovec]> {
    if !(0..=SLICES_MAX).contains(&count) {
        return Err(CallFailure::invalid(format!("{count} slices in one call: 0 to {SLICES_MAX} can be")));
    }
    // SAFETY: the caller's promise.
    unsafe { array(from, count as usize, "the array of slices") }
}

/// A pointer for a result, checked before the result is known.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// # Safety
    /// At `place` there is room for a value, which nobody else uses until the call returns.
    pub(crate) unsafe fn new(place: *mut T, what: &str) -> Answer<Self> {
        let place = NonNull::new(place).filter(|place| place.is_aligned());
        place.map(Self).ok_or_else(|| CallFailure::bad_address(what))
    }

    pub(crate) fn put(self, value: T) {
        // SAFETY: the promise at `new`.
        unsafe { self.0.write(value) }
    }
}

/// Stores as much of a value as C has room for: C may know an older, shorter form.
///
/// # Safety
/// At `place` there is room for `size` bytes, which nobody else uses until the call returns. `T` has no padding that
/// matters.
pub(crate) unsafe fn put_known<T>(place: *mut T, size: usize, value: &T, what: &str) -> Answer<()> {
    // SAFETY: the caller's promise.
    let place = unsafe { Out::new(place, what) }?.0;
    let known = size.min(size_of::<T>());
    // SAFETY: both have this many bytes, and the value is ours.
    unsafe { std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast::<u8>(), place.as_ptr().cast(), known) };
    Ok(())
}

/// Takes as much of a value as C knows; the other bytes are zeros.
///
/// # Safety
/// At `from` there are `size` bytes of the value. All zeros are a valid `T`.
pub(crate) unsafe fn take_known<T>(from: *const T, size: usize) -> T {
    let mut value = MaybeUninit::<T>::zeroed();
    let known = size.min(size_of::<T>());
    // SAFETY: both have this many bytes.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), value.as_mut_ptr().cast(), known) };
    // SAFETY: the caller's promise: zeros are a valid value, and so are C's bytes.
    unsafe { value.assume_init() }
}

/// A text.
///
/// # Safety
/// At `from` there is a text that ends with a zero byte, and nobody changes the text for that lifetime.
pub(crate) unsafe fn text<'a>(from: *const c_char, what: &str) -> Answer<&'a str> {
    if from.is_null() {
        return Err(CallFailure::bad_address(what));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|_| CallFailure::invalid(format!("{what} is not UTF-8: {}", text.to_string_lossy())))
}

/// The name of a file.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn path<'a>(from: *const c_char) -> Answer<&'a Path> {
    if from.is_null() {
        return Err(CallFailure::bad_address("the path"));
    }
    // SAFETY: the caller's promise.
    Ok(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(from) }.to_bytes())))
}
