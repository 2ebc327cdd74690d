//! The state that all streams of a link share.
//!
//! Owns: the link's two directions, under one lock.
//! Does not own: the schedule of a direction (`direction`), the streams (`stream`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::direction::Direction;
use super::options::LinkOptions;
use crate::world::Shared;

/// The state shared by all streams of a link.
pub(super) struct Line {
    pub(super) shared: Arc<Shared>,
    pub(super) number: u64,
    pub(super) options: LinkOptions,
    /// Towards end 0, towards end 1.
    pub(super) directions: Mutex<[Direction; 2]>,
}

impl Line {
    pub(super) fn lock(&self) -> MutexGuard<'_, [Direction; 2]> {
        self.directions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pass(&self, towards: usize, now_ns: u64, len: u64) -> Option<u64> {
        let mut directions = self.lock();
        directions[towards].forget_cuts(now_ns);
        directions[towards].pass(now_ns, len, &self.options)
    }
}
