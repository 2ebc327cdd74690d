//! Figures of one load.
//!
//! Owns: rates, times in milliseconds, the depth of streams, the place where a figure goes.
//! Does not own: the loads, the table.
//! Invariants: a percentile is one of the measured times.

use std::time::{Duration, Instant};

use afflux_figures::median;

use super::table::Load;

/// Takes a figure.
pub(super) type Note<'a> = dyn FnMut(Load, f64) + 'a;

/// The requests side by side in the streams of this server.
#[derive(Clone, Copy)]
pub(super) struct Depths {
    pub(super) write: u64,
    pub(super) read: u64,
}

impl Default for Depths {
    fn default() -> Self {
        Self { write: 16, read: 16 }
    }
}

/// Megabytes a second since `begin`.
pub(super) fn rate(bytes: u64, begin: Instant) -> f64 {
    bytes as f64 / 1e6 / begin.elapsed().as_secs_f64().max(1e-9)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The median in milliseconds.
pub(super) fn median_ms(times: Vec<Duration>) -> f64 {
    median(times.into_iter().map(ms)).unwrap_or(f64::NAN)
}

pub(super) fn percentile_ms(mut times: Vec<Duration>, percent: usize) -> f64 {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    times.get(last * percent / 100).copied().map_or(f64::NAN, ms)
}
