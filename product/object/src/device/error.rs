//! The volume's errors as the engine knows them.
//!
//! Owns: the mapping.
//! Does not own: outcomes that a later try changes: the device waits for these.
//! Invariants: an error is final for its request.

use afflux_engine::DeviceError;

use crate::error::ObjectVolumeError;

const EIO: i32 = 5;
/// Linux's errno for a damaged file system.
const EUCLEAN: i32 = 117;

pub(super) fn device_error(error: &ObjectVolumeError) -> DeviceError {
    match error {
        // Another writer has the volume, or the database ended. The request's outcome stays unknown.
        ObjectVolumeError::Records(_) | ObjectVolumeError::Closed => DeviceError::Lost,
        ObjectVolumeError::Invalid { .. } => DeviceError::TooLarge,
        ObjectVolumeError::Full(_) => DeviceError::NoSpace,
        ObjectVolumeError::Damaged(_) | ObjectVolumeError::Missing(_) => DeviceError::Io { errno: EUCLEAN },
        // The store's keys are no user's rights: a refusal is no `Denied`.
        _ => DeviceError::Io { errno: EIO },
    }
}
