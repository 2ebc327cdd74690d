//! Rings of ended threads, for threads that wait later.
//!
//! Owns: the spare rings, how many are kept.
//! Does not own: a ring in use (its reactor).
//! Invariants: nothing is in flight in a spare ring, and it hears no doorbell. Spare rings end with the platform.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ring::Ring;

/// Rings kept at most: enough for a server with a thread for each request, few enough to leave idle.
const SPARE_MAX: usize = 32;

/// A program may start a new thread for each request. The setup and removal of a ring cost the host more than several
/// reads of 4 KiB.
pub(crate) struct SpareRings {
    /// None once the platform has ended.
    rings: Mutex<Option<Vec<Ring>>>,
}

impl SpareRings {
    pub(crate) fn new() -> Self {
        Self { rings: Mutex::new(Some(Vec::new())) }
    }

    pub(super) fn take(&self) -> Option<Ring> {
        self.rings().as_mut()?.pop()
    }

    /// Keeps the ring if there are few. Nothing may be in flight in it.
    pub(super) fn give(&self, mut ring: Ring) {
        ring.stop_listening();
        if let Some(rings) = self.rings().as_mut().filter(|rings| rings.len() < SPARE_MAX) {
            rings.push(ring);
        }
    }

    /// Keeps no rings from here on.
    pub(crate) fn end(&self) {
        let rings = self.rings().take();
        drop(rings);
    }

    fn rings(&self) -> MutexGuard<'_, Option<Vec<Ring>>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.rings().as_ref().map_or(0, Vec::len)
    }
}
