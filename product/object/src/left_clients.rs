//! The object `clients`: the clients that may have open files and locks, for the next server on any host.
//!
//! Owns: its format.
//! Does not own: the meaning of a client's name (the front end); fencing, which alone keeps the volume safe.
//! Invariants: a list never replaces one that a later epoch's server has kept before.

use bytes::Bytes;

use crate::error::{ObjectVolumeError, refused};
use crate::retry::until_answered;
use crate::seams::{Clock, DatedObjects, ObjectError};

const NAME: &str = "clients";

/// The clients of a server.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LeftClients {
    /// The epoch of the server's opening.
    pub epoch: u32,
    /// A number for each client.
    pub names: Vec<u64>,
}

impl LeftClients {
    fn encode(&self) -> Bytes {
        let names = self.names.iter().map(|name| format!("{name:016x}\n"));
        Bytes::from(format!("{}\n", self.epoch) + &names.collect::<String>())
    }

    /// Lines that are no numbers are nobody's.
    fn decode(object: &[u8]) -> Self {
        let text = String::from_utf8_lossy(object);
        let mut lines = text.lines();
        let epoch = lines.next().and_then(|line| line.parse().ok()).unwrap_or_default();
        Self { epoch, names: lines.filter_map(|line| u64::from_str_radix(line, 16).ok()).collect() }
    }

    /// Keeps the list, durably, unless a later server has kept its own.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn keep<D: DatedObjects, C: Clock>(&self, objects: &D, clock: &C) -> Result<(), ObjectVolumeError> {
        if Self::left(objects, clock).await?.epoch > self.epoch {
            return Ok(());
        }
        until_answered(clock, || objects.put(NAME, self.encode())).await.map_err(refused)
    }

    /// The list that the last server has left; an empty one if there is none.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn left<D: DatedObjects, C: Clock>(objects: &D, clock: &C) -> Result<Self, ObjectVolumeError> {
        match until_answered(clock, || objects.dated(NAME)).await {
            Ok((object, _)) => Ok(Self::decode(&object)),
            Err(ObjectError::Missing) => Ok(Self::default()),
            Err(error) => Err(refused(error)),
        }
    }
}
