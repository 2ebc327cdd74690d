//! The volume's errors as the engine knows them.
//!
//! Owns: the mapping.
//! Does not own: outcomes that a later try changes: the device waits for these.
//! Invariants: an error is final for its request.

use afflux_engine::DeviceError;

use crate::error::ObjectVolumeError;

pub(super) fn device_error(error: &ObjectVolumeError) -> DeviceError {
    match error {
        // Another writer has the volume, or the database ended. The request's outcome stays unknown.
        ObjectVolumeError::Records(_) | ObjectVolumeError::Closed => DeviceError::Lost,
        ObjectVolumeError::Invalid { .. } => DeviceError::TooLarge,
        ObjectVolumeError::Refused(_) => DeviceError::Denied,
        _ => DeviceError::Io { errno: 0 },
    }
}
