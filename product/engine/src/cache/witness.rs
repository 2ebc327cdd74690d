//! Bytes of a model: loom sees who reads them and who writes them.
//!
//! Owns: nothing but that loom is told.
//! Does not own: any byte. Relaxed atomics show who sees an old value; this also shows who reads what
//! another writes without anything that orders the two.
//! Invariants: for bytes that must not be read and written at once, such as a frame's before and
//! after it is reused.

/// Stands for bytes.
pub(crate) struct Witness(loom::cell::UnsafeCell<()>);

// SAFETY: it holds nothing; loom takes note of each access from whatever thread and reports races.
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
