//! The host's errors as the engine knows them.
//!
//! Owns: the meaning of each error number.
//! Does not own: what becomes of a request with an error (`flight`).
//! Invariants: none.

use afflux_engine::DeviceError;
use rustix::io::Errno;

/// A host's error number as the engine knows it.
pub(super) fn error_of(errno: i32) -> DeviceError {
    match Errno::from_raw_os_error(errno) {
        Errno::NOSPC => DeviceError::NoSpace,
        Errno::DQUOT => DeviceError::Quota,
        Errno::FBIG => DeviceError::TooLarge,
        Errno::ROFS => DeviceError::ReadOnly,
        Errno::ACCESS | Errno::PERM | Errno::TXTBSY => DeviceError::Denied,
        Errno::STALE => DeviceError::Stale,
        _ => DeviceError::Io { errno },
    }
}
