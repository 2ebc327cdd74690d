//! An object that one writer after the other overwrites.
//!
//! Owns: the read and the replacement until both have an answer.
//! Does not own: the object's format, the rule which writer comes later.
//! Invariants: a replacement follows a read, and replaces the version of that read alone. So a request of an earlier
//! writer changes nothing when it comes late or twice.

use bytes::Bytes;

use crate::error::{ObjectVolumeError, refused};
use crate::retry::until_answered;
use crate::seams::{Clock, DatedObject, DatedObjects, ObjectError, ReplaceOutcome};

/// The object, if there is one.
pub(crate) async fn read<D: DatedObjects, C: Clock>(
    objects: &D,
    clock: &C,
    name: &str,
    bytes_max: u64,
) -> Result<Option<DatedObject>, ObjectVolumeError> {
    match until_answered(clock, || objects.dated(name, bytes_max)).await {
        Ok(object) => Ok(Some(object)),
        Err(ObjectError::Missing) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

/// Writes the object if `may_replace` permits it for the present one. Otherwise returns the present one.
pub(crate) async fn replace<D: DatedObjects, C: Clock>(
    objects: &D,
    clock: &C,
    (name, bytes_max): (&str, u64),
    bytes: &Bytes,
    may_replace: impl Fn(&DatedObject) -> Result<bool, ObjectVolumeError>,
) -> Result<Option<DatedObject>, ObjectVolumeError> {
    loop {
        let before = read(objects, clock, name, bytes_max).await?;
        if let Some(before) = &before
            && !may_replace(before)?
        {
            return Ok(Some(before.clone()));
        }
        let version = before.as_ref().map(|before| &before.version);
        match until_answered(clock, || objects.replace(name, bytes.clone(), version)).await.map_err(refused)? {
            ReplaceOutcome::Replaced => return Ok(None),
            // Another writer was quicker, or a try without an answer had its effect.
            ReplaceOutcome::Changed => {}
        }
    }
}
