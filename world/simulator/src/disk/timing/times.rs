//! Arithmetic of times for all models.
//!
//! Owns: the time of a transfer, the earlier of two instants.
//! Does not own: any model's state.

/// The earlier of two instants, if there are any.
pub(super) fn sooner(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The time of `bytes` at a rate, in whole nanoseconds, rounded down.
pub(crate) fn transfer_ns(bytes: u64, bytes_per_second: u64) -> u64 {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
