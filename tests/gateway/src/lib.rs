//! Stores on this machine: a Ceph with its S3 gateway, a moto, an Azurite; and a relay that delays, counts and refuses
//! requests.
//!
//! Owns: the programs of the cluster (`ceph`), of moto (`moto`) and of Azurite (`azurite`), the relay (`relay`).
//! Does not own: the choice of requests.
//! Invariants: everything listens on loopback alone. The programs end with their values.
#![forbid(unsafe_code)]

mod azurite;
mod ceph;
mod moto;
mod relay;

pub use azurite::{AZURITE_ACCOUNT, AZURITE_KEY, Azurite};
pub use ceph::{Gateway, KEY, SECRET};
pub use moto::Moto;
pub use relay::{Asked, Relay, Reply, Rule, Treatment};
