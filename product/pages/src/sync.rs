//! Atomics and locks for lock-free code: std's, or loom's while a model is checked.
//!
//! Owns: that choice, made by `--cfg loom`; the wrapper that puts values of different threads on different cache lines;
//! the cheap side of a fence whose other side is a call of the world.
//! Does not own: any protocol; the models stand beside the modelled code, in `loom_models.rs`.
//! Invariants: code that a model runs takes its types from here. Everything else may use std's: outside of a model the
//! two are the same.

#[cfg(not(loom))]
pub use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(loom)]
pub use loom::sync::{Mutex, MutexGuard, atomic};

#[cfg(not(loom))]
pub use afflux_frames::zeroed as zeros;

/// The same in a model: each entry is made, since loom follows it.
#[cfg(loom)]
pub(crate) fn zeros<T: Default>(len: usize) -> Box<[T]> {
    (0..len).map(|_| T::default()).collect()
}

/// A value on its own cache lines, two at a time because a CPU fetches the second with the first. One thread's frequent
/// changes then do not slow down readers of neighbouring data.
#[derive(Default)]
#[repr(align(128))]
pub struct OwnLines<T>(pub T);

impl<T> std::ops::Deref for OwnLines<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Orders this thread's earlier stores before its later loads, as seen by a thread that calls the world's fence of all
/// threads: a fence for the compiler is enough. Loom has no such fence. There both sides have a full one.
#[inline]
pub(crate) fn light_fence() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    #[cfg(loom)]
    atomic::fence(atomic::Ordering::SeqCst);
}

/// Locks, even after a holder has panicked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs a model with at most three involuntary thread switches (or `LOOM_MAX_PREEMPTIONS`). Two are nearly always
/// enough to find an error, and all models together take seconds.
#[cfg(loom)]
pub fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(body);
}
