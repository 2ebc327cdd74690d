//! A simulated object store, and records that log through it.
//!
//! Owns: the objects (`contents`), the time and the fate of each request (`store`), the bandwidth that requests share
//! (`wire`), the records (`records`, `entry`).
//! Does not own: the volume above (the crate `object`).
//! Invariants: a PUT or DELETE under way takes effect at most once, also after the world of its client has ended.

mod contents;
mod entry;
mod records;
mod store;
#[cfg(test)]
mod tests;
mod wire;

pub use contents::ObjectContents;
pub use records::ObjectRecords;
pub use store::{ObjectStore, StoreFaults, StoreFigures, StoreOptions};
