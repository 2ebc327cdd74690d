//! A link with a bandwidth.
//!
//! Owns: the time that bytes take on it.
//! Does not own: the bytes.
//! Invariants: pieces pass one after the other, in the order of their calls. A caller sends its next piece after the
//! last one has passed, so all connections have equal parts.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A caller may wake so late without a loss of bandwidth.
const LATE: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Link {
    bytes_per_s: u64,
    free_at: Mutex<Instant>,
}

impl Link {
    /// 0 bytes a second are no bound.
    pub(super) fn new(bytes_per_s: u64) -> Self {
        Self { bytes_per_s, free_at: Mutex::new(Instant::now()) }
    }

    /// Waits until the link has carried so many bytes.
    pub(super) fn carry(&self, bytes: usize) {
        if self.bytes_per_s == 0 || bytes == 0 {
            return;
        }
        let time = Duration::from_secs(bytes as u64) / u32::try_from(self.bytes_per_s).unwrap_or(u32::MAX);
        let passed_at = {
            let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            *free_at = Instant::now().checked_sub(LATE).map_or(*free_at, |now| now.max(*free_at)) + time;
            *free_at
        };
        thread::sleep(passed_at.saturating_duration_since(Instant::now()));
    }
}
