//! Codes of errors, and their texts.
//!
//! Owns: the code of each error, the text of each code.
//! Does not own: the details of one case (`border` keeps them for the thread).
//! Invariants: every code is a negative number of `errno.h`; the header has the named ones with Linux's numbers.

use std::ffi::{CStr, c_char, c_int};
use std::io::{self, ErrorKind};

use afflux::Error;

/// Why a call failed. These are the library's own codes. The host's errors come as their own negative `errno`, such as
/// -ENOENT for a missing file. afflux_strerror() has a text for each.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// The device failed the call, or bytes could not be written before the end (-EIO).
    Io = -5,
    /// The handle is NULL, was closed, is of another kind, or never was one (-EBADF).
    BadHandle = -9,
    /// The call would have to wait, or the queue is full (-EAGAIN).
    WouldBlock = -11,
    /// The host provides no memory, or no thread (-ENOMEM).
    NoMemory = -12,
    /// The handle was not opened for this (-EACCES).
    NotPermitted = -13,
    /// A pointer is NULL, or not aligned (-EFAULT).
    BadAddress = -14,
    /// Another cache has the file, or its bytes are withheld (-EBUSY).
    Busy = -16,
    /// An invalid argument; afflux_last_error() names it, and the allowed values (-EINVAL).
    Invalid = -22,
    /// No descriptors are left (-EMFILE).
    NoDescriptors = -24,
    /// A range above the largest size of a file (-EFBIG).
    TooLarge = -27,
    /// No space on the device; dirty bytes are kept, and tried again (-ENOSPC).
    NoSpace = -28,
    /// The device accepts no writes (-EROFS).
    ReadOnly = -30,
    /// The device, or its file system, cannot do this (-EOPNOTSUPP).
    Unsupported = -95,
    /// The cache was closed, or the queue (-ESHUTDOWN).
    Closed = -108,
    /// The device has completed nothing for too long; dirty bytes are kept (-ETIMEDOUT).
    TimedOut = -110,
    /// The file is gone from the host (-ESTALE).
    Gone = -116,
    /// A quota is used up, or the room for withheld bytes (-EDQUOT).
    Quota = -122,
    /// The handle belongs to the process that this one was forked from (-EOWNERDEAD).
    Forked = -130,
    /// A bug in the library made the cache unusable; afflux_last_error() has its message. Please report it
    /// (-ENOTRECOVERABLE).
    Poisoned = -131,
}

/// The code of an error of the library.
pub(crate) fn code_of(error: &io::Error) -> c_int {
    let code = match Error::of(error) {
        Some(Error::Closed) => Code::Closed,
        Some(Error::Poisoned { .. }) => Code::Poisoned,
        Some(Error::Forked) => Code::Forked,
        Some(Error::NotOpenedFor { .. }) => Code::NotPermitted,
        Some(Error::InUse { .. }) => Code::Busy,
        Some(Error::Gone { .. }) => Code::Gone,
        Some(Error::OutOfDescriptors { .. }) => Code::NoDescriptors,
        Some(Error::NotAFile { .. } | Error::StoresNothing { .. } | Error::Setting { .. }) => Code::Invalid,
        Some(Error::Start { errno: Some(libc::EMFILE | libc::ENFILE), .. }) => Code::NoDescriptors,
        // The host refuses a new thread with this.
        Some(Error::Start { errno: Some(libc::EAGAIN), .. }) => Code::NoMemory,
        other => {
            let errno = other.and_then(Error::errno).or(error.raw_os_error());
            return -errno.unwrap_or_else(|| errno_of(error.kind()));
        }
    };
    code as c_int
}

/// The host's error number for a kind of `std::io`.
fn errno_of(kind: ErrorKind) -> c_int {
    match kind {
        ErrorKind::NotFound => libc::ENOENT,
        ErrorKind::PermissionDenied => libc::EACCES,
        ErrorKind::AlreadyExists => libc::EEXIST,
        ErrorKind::NotADirectory => libc::ENOTDIR,
        ErrorKind::IsADirectory => libc::EISDIR,
        ErrorKind::DirectoryNotEmpty => libc::ENOTEMPTY,
        ErrorKind::InvalidFilename => libc::ENAMETOOLONG,
        ErrorKind::InvalidInput => libc::EINVAL,
        ErrorKind::StorageFull => libc::ENOSPC,
        ErrorKind::ReadOnlyFilesystem => libc::EROFS,
        ErrorKind::QuotaExceeded => libc::EDQUOT,
        ErrorKind::FileTooLarge => libc::EFBIG,
        ErrorKind::ResourceBusy => libc::EBUSY,
        ErrorKind::ExecutableFileBusy => libc::ETXTBSY,
        ErrorKind::Deadlock => libc::EDEADLK,
        ErrorKind::TimedOut => libc::ETIMEDOUT,
        ErrorKind::StaleNetworkFileHandle => libc::ESTALE,
        ErrorKind::OutOfMemory => libc::ENOMEM,
        ErrorKind::Unsupported => libc::EOPNOTSUPP,
        ErrorKind::WouldBlock => libc::EAGAIN,
        _ => libc::EIO,
    }
}

/// The text of a code: the library's own text for its named codes, otherwise that of the host's `errno`. It is valid
/// for ever.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_strerror(code: i64) -> *const c_char {
    text_of(code).as_ptr()
}

/// The text of a code.
pub(crate) fn text_of(code: i64) -> &'static CStr {
    let named = NAMED.iter().find(|(named, _)| *named as i64 == code).map(|(_, text)| *text);
    if let Some(text) = named {
        return text;
    }
    let Ok(errno) = c_int::try_from(code.saturating_neg()) else { return c"no error" };
    if errno <= 0 {
        return c"no error";
    }
    let text = strerrordesc_np(errno);
    // SAFETY: the pointer is null, or points to a text that is valid for ever.
    if text.is_null() { c"unknown error" } else { unsafe { CStr::from_ptr(text) } }
}

unsafe extern "C" {
    /// Of glibc 2.32 and later: as `strerror`, in English, without a buffer that threads would share. Takes any number.
    safe fn strerrordesc_np(errno: c_int) -> *const c_char;
}

/// Each code that the header names, with its text.
const NAMED: &[(Code, &CStr)] = &[
    (Code::Io, c"the device failed it, or bytes could not be written"),
    (Code::BadHandle, c"no open handle: it is NULL, was closed, or never was one of this kind"),
    (Code::WouldBlock, c"it would have to wait, or the queue is full"),
    (Code::NoMemory, c"the host gives no memory, or no thread"),
    (Code::NotPermitted, c"permission denied, or the handle was not opened for that"),
    (Code::BadAddress, c"a pointer is NULL, or not aligned"),
    (Code::Busy, c"another cache has the file"),
    (Code::Invalid, c"an argument that cannot be"),
    (Code::NoDescriptors, c"no descriptors are left"),
    (Code::TooLarge, c"above the largest size of a file"),
    (Code::NoSpace, c"no space left on the device"),
    (Code::ReadOnly, c"the device takes no writes"),
    (Code::Unsupported, c"the device or its file system cannot do it"),
    (Code::Closed, c"the cache or the queue was closed"),
    (Code::TimedOut, c"the device has completed nothing for too long"),
    (Code::Gone, c"the file is gone from the host"),
    (Code::Quota, c"a quota is used up"),
    (Code::Forked, c"the handle belongs to the parent process: a forked child makes its own"),
    (Code::Poisoned, c"a bug in the library made the cache unusable"),
];

#[cfg(test)]
mod tests;
