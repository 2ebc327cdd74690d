//! What the last walk of the exports found.
//!
//! Owns: when a walk ended, whether all was seen, what it met of what was looked for.
//! Does not own: walking (`handles::search`), who waits for a walk (`sightings`).
//! Invariants: what a walk met stays in memory until the next walk begins.

use std::collections::BTreeSet;
use std::sync::Arc;

use afflux_engine::{Nanos, Platform};

use super::inode::Inode;
use super::sightings::Sight;
use crate::tree::identity::Identity;

/// The last walk that was begun.
pub(crate) struct Walk<P: Platform> {
    pub(crate) last: Option<Walked>,
    /// What it met of what was wanted: kept in memory until those who wait have it.
    pub(crate) met: Vec<Arc<Inode<P>>>,
}

impl<P: Platform> Default for Walk<P> {
    fn default() -> Self {
        Self { last: None, met: Vec::new() }
    }
}

#[derive(Clone)]
pub(crate) struct Walked {
    /// Counts walks: it looked for everything that was wanted before it had this number.
    pub(crate) number: u64,
    pub(crate) ended: Nanos,
    /// It went to the end, and nothing of ours was carried past it.
    pub(crate) complete: bool,
    /// Wanted and seen, but not where it was seen any more.
    pub(crate) missed: BTreeSet<Identity>,
    /// From before it began.
    pub(crate) sight: Sight,
}
