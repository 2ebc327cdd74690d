//! The objects that one writer after the other overwrites: `holder`, the host that serves the volume, and `clients`,
//! those that may have open files and locks, for the next server on any host.
//!
//! Owns: their formats and bounds, the renewal of the holder, the read of another's; the read and the replacement of an
//! object until both have an answer.
//! Does not own: fencing, which alone protects the volume: the holder only prevents mistakes of people. The meaning of
//! a client's name (the front end).
//! Invariants: ages are by the store's clock alone. A server never replaces the holder or the list of a later epoch. At
//! its end the server writes a holder without a host, and removes nothing. A replacement follows a read, and replaces
//! the version of that read alone. So a request of an earlier writer changes nothing when it comes late or twice. A
//! damaged list of clients is an error, not an empty list: the clients would lose their locks.

use bytes::Bytes;

use crate::error::{ObjectVolumeError, refused};
use crate::format::FormatError;
use crate::retry::until_answered;
use crate::seams::{Clock, DatedObject, DatedObjects, ObjectError, ReplaceOutcome};

const HOLDER_NAME: &str = "holder";
/// Its time is that of the store's clock, just after a PUT.
const CLOCK_NAME: &str = "clock";
const RENEWAL_NS: u64 = 12_000_000_000;
const ALIVE_NS: u64 = 30_000_000_000;
const HOST_BYTES_MAX: usize = 255;
/// An epoch, a host and two separators.
const HOLDER_BYTES_MAX: u64 = 10 + 1 + HOST_BYTES_MAX as u64 + 1;
/// The host of a volume that nobody serves. No host has this name.
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

    /// Whether this holder came later than the other: from a later host, or as the host's last.
    fn is_after(&self, other: &Self) -> bool {
        self.epoch > other.epoch || (self.epoch == other.epoch && self.host == NOBODY && other.host != NOBODY)
    }

    /// Records each 12 seconds that this host serves the volume, until a later epoch's host records this, or until
    /// [`Self::release`]. Returns the later holder.
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

    /// Records at the end of the service that no host serves the volume, so the next host starts at once.
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
        let later = replace(objects, clock, HOLDER_NAME, HOLDER_BYTES_MAX, &bytes, may_replace).await?;
        Ok(later.map(|later| Self::decode(&later.bytes)).transpose()?)
    }

    /// The host that served the volume in the last 30 seconds, and the age of its object in nanoseconds. `gone` is the
    /// name of a holder that has surely ended.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub async fn alive<D: DatedObjects, C: Clock>(
        objects: &D,
        clock: &C,
        gone: Option<&str>,
    ) -> Result<Option<(Self, u64)>, ObjectVolumeError> {
        let Some(there) = read(objects, clock, HOLDER_NAME, HOLDER_BYTES_MAX).await? else { return Ok(None) };
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
    name: &str,
    bytes_max: u64,
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

const CLIENTS_NAME: &str = "clients";
/// Most clients of a list. A server knows fewer.
const NAMES_MAX: usize = 65_536;
const LINE_BYTES: usize = 17;
const EPOCH_BYTES_MAX: usize = 11;
const CLIENTS_BYTES_MAX: u64 = (EPOCH_BYTES_MAX + NAMES_MAX * LINE_BYTES) as u64;

/// The clients of a server.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PreviousClients {
    /// The epoch of the server's opening.
    pub epoch: u32,
    /// A number for each client.
    pub names: Vec<u64>,
}

impl PreviousClients {
    fn encode(&self) -> Bytes {
        let names = self.names.iter().map(|name| format!("{name:016x}\n"));
        Bytes::from(format!("{}\n", self.epoch) + &names.collect::<String>())
    }

    fn decode(object: &[u8]) -> Result<Self, FormatError> {
        let parse = || {
            let mut lines = std::str::from_utf8(object).ok()?.strip_suffix('\n')?.split('\n');
            let epoch = lines.next()?.parse().ok()?;
            let names = lines.map(|line| (line.len() < LINE_BYTES).then(|| u64::from_str_radix(line, 16).ok())?);
            Some(Self { epoch, names: names.collect::<Option<_>>()? })
        };
        parse().ok_or(FormatError::PreviousClients)
    }

    /// Persists the list, unless a later server has persisted its own.
    ///
    /// # Errors
    /// If the store refuses, the object there is no list, or the list is too long.
    pub async fn keep<D: DatedObjects, C: Clock>(&self, objects: &D, clock: &C) -> Result<(), ObjectVolumeError> {
        let (field, value, most) = ("the number of clients", self.names.len() as u64, NAMES_MAX as u64);
        if value > most {
            return Err(ObjectVolumeError::Invalid { field, value, least: 0, most });
        }
        let may_replace = |there: &DatedObject| Ok(Self::decode(&there.bytes)?.epoch <= self.epoch);
        replace(objects, clock, CLIENTS_NAME, CLIENTS_BYTES_MAX, &self.encode(), may_replace).await.map(drop)
    }

    /// The list that the last server has persisted; an empty one if there is none.
    ///
    /// # Errors
    /// If the store refuses, or the object is no list.
    pub async fn read<D: DatedObjects, C: Clock>(objects: &D, clock: &C) -> Result<Self, ObjectVolumeError> {
        let there = read(objects, clock, CLIENTS_NAME, CLIENTS_BYTES_MAX).await?;
        Ok(there.map(|there| Self::decode(&there.bytes)).transpose()?.unwrap_or_default())
    }
}
