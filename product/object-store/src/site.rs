//! The place of an open volume, with the means to reach it.
//!
//! Owns: the parts that all adapters share.
//! Does not own: the opening (`store`).
//! Invariants: the lock of a directory lives as long as its last adapter.

use std::sync::Arc;

use crate::address::Address;
use crate::directory::Lock;
use crate::threads::Threads;
use crate::wire::Wire;

/// A place that was opened.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) url: String,
    pub(crate) address: Address,
    pub(crate) threads: Threads,
    pub(crate) wire: Arc<Wire>,
    pub(crate) lock: Option<Lock>,
}
