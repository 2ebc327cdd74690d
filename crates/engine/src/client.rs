//! Who a call is for, as far as a front end knows.
//!
//! Owns: the name that a front end gives it. Does not own: who is believed (front ends), what is kept of it
//! (`devices::waits`).
//! Invariants: two that are named alike are the same.

use std::sync::Arc;

/// Somebody for whom files are written: the address of an NFS peer, say. With the open file it is the payer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Client(Arc<str>);

impl Client {
    /// The one of that name.
    pub fn named(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}
