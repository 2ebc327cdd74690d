//! A volume in an object store: the store itself, and the database of records in it.
//!
//! `Store` opens a URL and finds out what the store is able to do. Its `objects` and `records` implement the seams of
//! `afflux-object` over the crates `object_store` and `slatedb`.
//!
//! Owns: the two adapters, a cache of objects' parts on a local disk, the threads of their runtime, the probe of a
//! store, credentials, errors with advice.
//! Does not own: any decision about data: formats, COMMIT, garbage.
//! Invariants: no type of the runtime is in an interface. Every future works on any executor. A conditional request is
//! sent once; its layer above repeats it.
//!
//! All of the crate is behind its feature `stores`.
#![cfg(feature = "stores")]
#![forbid(unsafe_code)]

mod address;
mod connect;
mod directory;
mod disk_cache;
mod error;
mod failure;
mod judge;
mod objects;
mod options;
mod probe;
mod profile;
mod records;
mod s3;
mod shown;
mod site;
mod snapshot;
mod store;
#[cfg(test)]
mod tests;
mod there;
mod threads;
mod transport;
mod volumes;
mod waits;
mod wire;

pub use address::check_address;
pub use disk_cache::{DiskCache, DiskCacheFigures};
pub use error::{DiskCacheError, StoreError};
pub use objects::StoreObjects;
pub use options::{Keys, Options, check_endpoint};
pub use probe::AllowedUse;
pub use records::{StoreRecords, StoreView, ViewState};
pub use snapshot::{Snapshot, check_snapshot_name};
pub use store::Store;
pub use threads::{StoreClock, wait};
pub use volumes::StoredObjects;
pub use waits::{RequestWaits, Trouble};
pub use wire::SentRequests;
