//! The atomics and locks of what is lock-free: std's, or loom's while a model is checked.
//!
//! Owns: that choice, made by `--cfg loom`; what keeps values apart that different threads change.
//! Does not own: any protocol; the models are beside what they check, in `loom_models.rs`.
//! Invariants: what a model runs takes its types from here. Everything else may use std's: outside of
//! a model the two are the same.

#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(all(test, loom))]
pub(crate) use loom::sync::{Mutex, MutexGuard, atomic};

#[cfg(not(all(test, loom)))]
pub(crate) use frames::zeroed as zeros;

/// Of a model: each entry is made, since loom follows it.
#[cfg(all(test, loom))]
pub(crate) fn zeros<T: Default>(len: usize) -> Box<[T]> {
    (0..len).map(|_| T::default()).collect()
}

/// A value on cache lines of its own, two at a time since a CPU fetches the second with the first: what one thread
/// changes often does not slow down those that only read what happens to lie beside it.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct OwnLines<T>(pub(crate) T);

impl<T> std::ops::Deref for OwnLines<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Locks, also after a panic of somebody who held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs a model with at most three involuntary switches of thread (or `LOOM_MAX_PREEMPTIONS`): what
/// goes wrong at all nearly always does with two, and all models together take seconds.
#[cfg(all(test, loom))]
pub(crate) fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(body);
}
