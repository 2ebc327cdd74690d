//! The results of the last walk of an export.
//!
//! Owns: when a walk ended, whether it saw everything, the wanted objects that it met.
//! Does not own: walking (`walk`), the waiters for a walk (`known_locations`).
//! Invariants: the objects that a walk met stay in memory until the next walk begins.

use std::collections::BTreeSet;
use std::sync::Arc;

use afflux_engine::{Nanos, Platform};

use super::known_locations::LocationEpoch;
use crate::objects::inode::Inode;
use crate::tree::identity::Identity;

/// The last walk that was begun.
pub(crate) struct Walk<P: Platform> {
    pub(crate) last: Option<Walked>,
    /// The wanted objects that were met: kept in memory for their waiters.
    pub(crate) found: Vec<Arc<Inode<P>>>,
}

impl<P: Platform> Default for Walk<P> {
    fn default() -> Self {
        Self { last: None, found: Vec::new() }
    }
}

#[derive(Clone)]
pub(crate) struct Walked {
    /// The number of the walk: objects wanted before this number were looked for.
    pub(crate) number: u64,
    pub(crate) ended: Nanos,
    /// It reached the end, and saw everything, also what a rename of ours carried past it.
    pub(crate) complete: bool,
    /// Wanted and seen, but already gone from there.
    pub(crate) missed: BTreeSet<Identity>,
    /// From before it began.
    pub(crate) sight: LocationEpoch,
    /// Directories that were carried to another export before it began.
    pub(crate) crossed: u64,
}
