//! The object `holder`: the host that serves the volume.
//!
//! Owns: its format, its renewal, the look at another's.
//! Does not own: fencing. The holder only keeps people from mistakes; the records keep the volume safe.
//! Invariants: ages are by the store's clock alone. A holder never replaces one of a later epoch.

use bytes::Bytes;

use crate::error::{ObjectVolumeError, refused};
use crate::format::error::FormatError;
use crate::retry::until_answered;
use crate::seams::{Clock, DatedObjects, ObjectError, Objects};

const NAME: &str = "holder";
/// Its time is that of the store's clock, just after a PUT.
const CLOCK_NAME: &str = "clock";
const RENEWAL_NS: u64 = 12_000_000_000;
const ALIVE_NS: u64 = 30_000_000_000;
const HOST_BYTES_MAX: usize = 255;

/// The host that serves a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The name of the host.
    pub host: String,
    /// The epoch of its opening.
    pub epoch: u32,
}

impl Holder {
    fn encode(&self) -> Bytes {
        Bytes::from(format!("{} {}\n", self.epoch, self.host))
    }

    fn decode(object: &[u8]) -> Result<Self, FormatError> {
        let parse = || {
            let (epoch, host) = std::str::from_utf8(object).ok()?.strip_suffix('\n')?.split_once(' ')?;
            let is_host = !host.is_empty() && host.len() <= HOST_BYTES_MAX;
            is_host.then_some(Self { host: host.to_owned(), epoch: epoch.parse().ok()? })
        };
        let shown = || String::from_utf8_lossy(&object[..object.len().min(HOST_BYTES_MAX)]).into_owned();
        parse().ok_or_else(|| FormatError::Holder { found: shown() })
    }

    /// Says each 12 seconds that this host serves the volume, until a later epoch's host says so. Returns that one.
    ///
    /// # Errors
    /// If the store refuses, or the object is malformed.
    pub async fn hold<D: DatedObjects, C: Clock>(&self, objects: &D, clock: &C) -> Result<Self, ObjectVolumeError> {
        Self::decode(&self.encode())?;
        loop {
            if let Some((other, _)) = read(objects, clock).await?
                && other.epoch > self.epoch
            {
                return Ok(other);
            }
            until_answered(clock, || objects.put(NAME, self.encode())).await.map_err(refused)?;
            clock.sleep_until_ns(clock.now_ns().saturating_add(RENEWAL_NS)).await;
        }
    }

    /// Removes the object at the end of the service, so the next host starts at once.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub async fn release<D: DatedObjects + Objects, C: Clock>(
        &self,
        objects: &D,
        clock: &C,
    ) -> Result<(), ObjectVolumeError> {
        if read(objects, clock).await?.is_some_and(|(holder, _)| holder == *self) {
            until_answered(clock, || objects.delete(NAME)).await.map_err(refused)?;
        }
        Ok(())
    }

    /// The host that served the volume in the last 30 seconds, and the age of its word in nanoseconds. `gone` is the
    /// name of a holder that has surely ended.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub async fn alive<D: DatedObjects, C: Clock>(
        objects: &D,
        clock: &C,
        gone: Option<&str>,
    ) -> Result<Option<(Self, u64)>, ObjectVolumeError> {
        let read = read(objects, clock).await?;
        let Some((holder, renewed_ns)) = read.filter(|(holder, _)| Some(holder.host.as_str()) != gone) else {
            return Ok(None);
        };
        until_answered(clock, || objects.put(CLOCK_NAME, Bytes::new())).await.map_err(refused)?;
        let (_, now_ns) = until_answered(clock, || objects.dated(CLOCK_NAME)).await.map_err(refused)?;
        let age_ns = now_ns.saturating_sub(renewed_ns);
        Ok((age_ns < ALIVE_NS).then_some((holder, age_ns)))
    }

    /// Waits until no host serves the volume.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub async fn standby<D: DatedObjects, C: Clock>(objects: &D, clock: &C) -> Result<(), ObjectVolumeError> {
        while let Some((_, age_ns)) = Self::alive(objects, clock, None).await? {
            clock.sleep_until_ns(clock.now_ns().saturating_add(ALIVE_NS - age_ns)).await;
        }
        Ok(())
    }
}

async fn read<D: DatedObjects, C: Clock>(objects: &D, clock: &C) -> Result<Option<(Holder, u64)>, ObjectVolumeError> {
    match until_answered(clock, || objects.dated(NAME)).await {
        Ok((object, at_ns)) => Ok(Some((Holder::decode(&object)?, at_ns))),
        Err(ObjectError::Missing) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}
