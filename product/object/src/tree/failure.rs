//! Failures of the records and of the store as a volume's errors.
//!
//! Owns: the translation.
//! Does not own: retries; an outcome here is final.
//! Invariants: damage and a lost volume are input/output errors: no caller takes them for an answer about a name.

use afflux_volume::VolumeError;

use crate::error::ObjectVolumeError;
use crate::format::error::FormatError;
use crate::seams::RecordsError;

const EIO: i32 = 5;
/// Linux's errno for a damaged file system.
const EUCLEAN: i32 = 117;

impl From<ObjectVolumeError> for VolumeError {
    fn from(error: ObjectVolumeError) -> Self {
        match error {
            ObjectVolumeError::Records(RecordsError::ReadOnly) => Self::ReadOnly,
            ObjectVolumeError::Full(_) => Self::NoSpace,
            ObjectVolumeError::Damaged(_) | ObjectVolumeError::Missing(_) => Self::Io { errno: EUCLEAN },
            _ => Self::Io { errno: EIO },
        }
    }
}

impl From<RecordsError> for VolumeError {
    fn from(error: RecordsError) -> Self {
        ObjectVolumeError::from(error).into()
    }
}

impl From<FormatError> for VolumeError {
    fn from(error: FormatError) -> Self {
        ObjectVolumeError::from(error).into()
    }
}

/// The records contradict each other.
pub(super) const DAMAGED: VolumeError = VolumeError::Io { errno: EUCLEAN };
