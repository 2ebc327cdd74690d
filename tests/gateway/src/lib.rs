//! Stores that speak S3 on this machine: a Ceph with its gateway, a moto; and a relay that delays, counts and refuses
//! requests.
//!
//! Owns: the programs of the cluster (`ceph`) and of moto (`moto`), the relay (`relay`).
//! Does not own: what is asked of the store.
//! Invariants: everything listens on loopback alone. The programs end with their values.
#![forbid(unsafe_code)]

mod ceph;
mod moto;
mod relay;

pub use ceph::{Gateway, KEY, SECRET};
pub use moto::Moto;
pub use relay::{Asked, Relay};
