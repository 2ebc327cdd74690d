//! The object `clients`: the clients that may have open files and locks, for the next server on any host.
//!
//! Owns: its format, its bound.
//! Does not own: the meaning of a client's name (the front end); fencing, which alone keeps the volume safe.
//! Invariants: a list never replaces one of a later epoch's server. A damaged list is an error, not an empty
//! list: the clients would lose their locks.

use bytes::Bytes;

use crate::error::ObjectVolumeError;
use crate::format::error::FormatError;
use crate::overwritten::{read, replace};
use crate::seams::{Clock, DatedObject, DatedObjects};

const NAME: &str = "clients";
/// Most clients of a list. A server knows fewer.
const NAMES_MAX: usize = 65_536;
const LINE_BYTES: usize = 17;
const EPOCH_BYTES_MAX: usize = 11;
const BYTES_MAX: u64 = (EPOCH_BYTES_MAX + NAMES_MAX * LINE_BYTES) as u64;

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

    /// Keeps the list, durably, unless a later server has kept its own.
    ///
    /// # Errors
    /// If the store refuses, the object there is no list, or the list is too long.
    pub async fn keep<D: DatedObjects, C: Clock>(&self, objects: &D, clock: &C) -> Result<(), ObjectVolumeError> {
        let (field, value, most) = ("the number of clients", self.names.len() as u64, NAMES_MAX as u64);
        if value > most {
            return Err(ObjectVolumeError::Invalid { field, value, least: 0, most });
        }
        let may_replace = |there: &DatedObject| Ok(Self::decode(&there.bytes)?.epoch <= self.epoch);
        replace(objects, clock, (NAME, BYTES_MAX), &self.encode(), may_replace).await.map(drop)
    }

    /// The list that the last server has left; an empty one if there is none.
    ///
    /// # Errors
    /// If the store refuses, or the object is no list.
    pub async fn read<D: DatedObjects, C: Clock>(objects: &D, clock: &C) -> Result<Self, ObjectVolumeError> {
        let there = read(objects, clock, NAME, BYTES_MAX).await?;
        Ok(there.map(|there| Self::decode(&there.bytes)).transpose()?.unwrap_or_default())
    }
}
