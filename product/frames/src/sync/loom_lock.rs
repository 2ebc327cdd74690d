//! The lock of the allocator in a model, which cannot follow a spinning thread; the run of a model.
//!
//! Owns: both, over loom's. Does not own: the models (`loom_models.rs`).
//! Invariants: as those of the spin lock.

use std::sync::PoisonError;

#[derive(Debug)]
pub struct SpinLock<T>(loom::sync::Mutex<T>);

pub type SpinGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

impl<T> SpinLock<T> {
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> SpinGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a model with at most three involuntary switches of thread (or `LOOM_MAX_PREEMPTIONS`).
pub(crate) fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(body);
}
