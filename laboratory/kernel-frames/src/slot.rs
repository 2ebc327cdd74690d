//! The CPU that a thread counts as.
//!
//! Owns: the numbers. Does not own: the lists of a CPU (`zone`).
//! Invariants: a thread keeps its number, and threads that begin one after the other have different ones.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of CPUs: more threads than this share them.
pub(crate) const SLOTS: usize = 32;

const UNSET: usize = usize::MAX;

static BEGUN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(UNSET) };
}

/// The calling thread's CPU.
#[inline]
pub(crate) fn own() -> usize {
    match OWN.get() {
        UNSET => begin(),
        slot => slot,
    }
}

#[cold]
fn begin() -> usize {
    OWN.set(BEGUN.fetch_add(1, Ordering::Relaxed) % SLOTS);
    OWN.get()
}
