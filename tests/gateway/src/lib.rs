//! A store that speaks S3 on this machine: a Ceph with its gateway, and a relay that delays and counts requests.
//!
//! Owns: the programs of the cluster (`ceph`), the relay (`relay`).
//! Does not own: what is asked of the store.
//! Invariants: everything listens on loopback alone. The programs end with their values.
#![forbid(unsafe_code)]

mod ceph;
mod relay;

pub use ceph::{Gateway, KEY, SECRET};
pub use relay::{Asked, Relay};
