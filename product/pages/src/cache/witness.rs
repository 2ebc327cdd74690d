//! Bytes of a model: loom sees their readers and writers.
//!
//! Owns: only the reports to loom.
//! Does not own: any byte. Relaxed atomics show which readers see an old value. A witness also shows unordered reads
//! and writes of the same bytes.
//! Invariants: for bytes that must not be read and written at once, such as a frame's before and after it is reused.

/// Stands for bytes.
pub(crate) struct Witness(loom::cell::UnsafeCell<()>);

// SAFETY: it holds nothing; loom records each access from any thread and reports races.
unsafe impl Sync for Witness {}

impl Witness {
    pub(crate) fn new() -> Self {
        Self(loom::cell::UnsafeCell::new(()))
    }

    pub(crate) fn read(&self) {
        self.0.with(|_| ());
    }

    pub(crate) fn write(&self) {
        self.0.with_mut(|_| ());
    }
}
