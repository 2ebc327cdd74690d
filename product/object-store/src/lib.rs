//! A volume in an object store: the store itself, and the database of records in it.
//!
//! `Store` opens a URL and finds out what the store is able to do. Its `objects` and `records` implement the seams of
//! `afflux-object` over the crates `object_store` and `slatedb`.
//!
//! Owns: the two adapters, the threads of their runtime, the probe of a store, credentials, errors with advice.
//! Does not own: any decision about data: formats, COMMIT, garbage.
//! Invariants: no type of the runtime is in an interface. Every future works on any executor. A conditional request is
//! sent once; its layer above repeats it.
//!
//! All of the crate is behind its feature `stores`.
#![cfg(feature = "stores")]
#![forbid(unsafe_code)]

mod access;
mod address;
mod advice;
mod answer;
mod clock;
mod connect;
mod directory;
mod endpoint;
mod error;
mod failure;
mod folders;
mod judge;
mod keys;
mod objects;
mod options;
mod patience;
mod private;
mod probe;
mod profile;
mod proxy;
mod records;
mod s3;
mod shown;
mod site;
mod snapshot;
mod split;
mod store;
#[cfg(test)]
mod tests;
mod there;
mod threads;
mod transport;
mod volumes;
mod waits;
mod wire;

pub use access::AllowedUse;
pub use address::check_address;
pub use clock::StoreClock;
pub use endpoint::check_endpoint;
pub use error::StoreError;
pub use objects::StoreObjects;
pub use options::{Keys, Options};
pub use records::{StoreRecords, StoreView, ViewState};
pub use snapshot::{Snapshot, check_snapshot_name};
pub use store::Store;
pub use threads::wait;
pub use waits::{RequestWaits, Trouble};
pub use wire::SentRequests;
