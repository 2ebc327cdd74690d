//! Errors of a volume's operations, and their meaning for the engine and for the tree of names.
//!
//! Owns: their kinds, both translations.
//! Does not own: outcomes that a later try changes; an operation waits for these.
//! Invariants: an error never means that acknowledged data was dropped, and is final for its request. Damage and a lost
//! volume are input/output errors: no caller takes them for an answer about a name.

use afflux_engine::DeviceError;
use afflux_volume::VolumeError;

use crate::format::FormatError;
use crate::format::extent::SegmentId;
use crate::seams::{ObjectError, RecordsError};

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectVolumeError {
    /// Another writer took the volume over, or the database closed.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Stored bytes are malformed.
    #[error("the volume is damaged: {0}")]
    Damaged(#[from] FormatError),
    /// A live record names a segment that is not in the store.
    #[error("the volume is damaged: {} is missing", .0.name())]
    Missing(SegmentId),
    /// The store refused a request for good.
    #[error("the store refused: {0}")]
    Refused(String),
    /// The store has no space.
    #[error("the store has no space: {0}")]
    Full(String),
    /// The store has a segment of this epoch, and this writer never sent it. Another writer has the same epoch.
    #[error("{} is in the store before this writer sent it", .0.name())]
    NotOurs(SegmentId),
    /// There is nothing to read.
    #[error("there is no volume")]
    NoVolume,
    /// An argument is out of its range.
    #[error("{field} is {value} instead of {least} to {most}")]
    Invalid {
        /// Name of the field that has the value.
        field: &'static str,
        /// Value that was refused.
        value: u64,
        /// The smallest permitted value.
        least: u64,
        /// The largest permitted value.
        most: u64,
    },
    /// The volume was closed.
    #[error("the volume is closed")]
    Closed,
}

impl ObjectVolumeError {
    /// Whether this writer can do nothing more with the volume. Another writer has the volume, its records have ended,
    /// or somebody has closed it.
    /// After any other error the next operation may succeed.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Records(RecordsError::Fenced | RecordsError::Closed(_)) | Self::Closed)
    }
}

/// The error of an operation whose request got no other answer.
pub(crate) fn refused(error: ObjectError) -> ObjectVolumeError {
    match error {
        ObjectError::Refused(why) => ObjectVolumeError::Refused(why),
        ObjectError::Full(why) => ObjectVolumeError::Full(why),
        error => ObjectVolumeError::Refused(format!("{error:?}")),
    }
}

const EIO: i32 = 5;
/// Linux's errno for a damaged file system.
const EUCLEAN: i32 = 117;

pub(crate) fn device_error(error: &ObjectVolumeError) -> DeviceError {
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
pub(crate) const DAMAGED: VolumeError = VolumeError::Io { errno: EUCLEAN };
