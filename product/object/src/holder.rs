//! The object `holder`: the host that serves the volume.
//!
//! Owns: its format, its renewal, the look at another's.
//! Does not own: fencing. The holder only keeps people from mistakes; the records keep the volume safe.
//! Invariants: ages are by the store's clock alone. A server never replaces the record of a later epoch. At its end the
//! server writes a record without a host, and removes nothing.

use bytes::Bytes;

use crate::error::{ObjectVolumeError, refused};
use crate::format::error::FormatError;
use crate::overwritten::{read, replace};
use crate::retry::until_answered;
use crate::seams::{Clock, DatedObject, DatedObjects};

const NAME: &str = "holder";
/// Its time is that of the store's clock, just after a PUT.
const CLOCK_NAME: &str = "clock";
const RENEWAL_NS: u64 = 12_000_000_000;
const ALIVE_NS: u64 = 30_000_000_000;
const HOST_BYTES_MAX: usize = 255;
/// An epoch, a host and two separators.
const BYTES_MAX: u64 = 10 + 1 + HOST_BYTES_MAX as u64 + 1;
/// The host of a volume that nobody serves. No host has this name. Earlier versions wait until it is old.
const NOBODY: &str = "-";

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

    /// Whether this word came later than the other: from a later host, or as the host's last.
    fn is_after(&self, other: &Self) -> bool {
        self.epoch > other.epoch || (self.epoch == other.epoch && self.host == NOBODY && other.host != NOBODY)
    }

    /// Says each 12 seconds that this host serves the volume, until a later epoch's host says so, or until
    /// [`Self::release`]. Returns the later word.
    ///
    /// # Errors
    /// If the store refuses, or the object is malformed.
    pub async fn hold<D: DatedObjects, C: Clock>(&self, objects: &D, clock: &C) -> Result<Self, ObjectVolumeError> {
        loop {
            if let Some(other) = self.write(objects, clock).await? {
                return Ok(other);
            }
            clock.sleep_until_ns(clock.now_ns().saturating_add(RENEWAL_NS)).await;
        }
    }

    /// Says at the end of the service that no host serves the volume, so the next host starts at once.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub async fn release<D: DatedObjects, C: Clock>(&self, objects: &D, clock: &C) -> Result<(), ObjectVolumeError> {
        let nobody = Self { host: NOBODY.to_owned(), epoch: self.epoch };
        nobody.write(objects, clock).await.map(drop)
    }

    /// Writes the object, unless a later epoch's holder has done so. Returns the later holder.
    async fn write<D: DatedObjects, C: Clock>(
        &self,
        objects: &D,
        clock: &C,
    ) -> Result<Option<Self>, ObjectVolumeError> {
        let bytes = self.encode();
        Self::decode(&bytes)?;
        let may_replace = |there: &DatedObject| Ok(!Self::decode(&there.bytes)?.is_after(self));
        let later = replace(objects, clock, (NAME, BYTES_MAX), &bytes, may_replace).await?;
        Ok(later.map(|later| Self::decode(&later.bytes)).transpose()?)
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
        let Some(there) = read(objects, clock, NAME, BYTES_MAX).await? else { return Ok(None) };
        let holder = Self::decode(&there.bytes)?;
        if holder.host == NOBODY || Some(holder.host.as_str()) == gone {
            return Ok(None);
        }
        until_answered(clock, || objects.put(CLOCK_NAME, Bytes::new())).await.map_err(refused)?;
        let now = until_answered(clock, || objects.dated(CLOCK_NAME, 0)).await.map_err(refused)?;
        let age_ns = now.at_ns.saturating_sub(there.at_ns);
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
