//! Sizes and times of the cases.
//!
//! Owns: the sizes and times that several cases share, in a race and in a quick run.
//! Does not own: the sizes that a single case has.

use std::time::Duration;

/// Calls in flight of a client that keeps a server busy.
pub(super) const WINDOW: usize = 64;
/// Bytes of one call.
pub(super) const BLOCK: u32 = 4096;

/// Sizes and times.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) steady: Duration,
    pub(super) file_bytes: u64,
    pub(super) sequential_bytes: u64,
    pub(super) many_files: u64,
    pub(super) names: u64,
    pub(super) cold_bytes: u64,
    pub(super) cold_calls: u64,
    pub(super) tree_files: u64,
}

impl Scale {
    pub(super) fn new(quick: bool) -> Self {
        if quick {
            Self {
                steady: Duration::from_millis(150),
                file_bytes: 16 << 20,
                sequential_bytes: 64 << 20,
                many_files: 3_000,
                names: 48,
                cold_bytes: 16 << 20,
                cold_calls: 1_000,
                tree_files: 60,
            }
        } else {
            Self {
                steady: Duration::from_millis(700),
                file_bytes: 256 << 20,
                sequential_bytes: 1 << 30,
                many_files: 100_000,
                names: 2_000,
                cold_bytes: 512 << 20,
                cold_calls: 50_000,
                tree_files: 2_000,
            }
        }
    }
}
