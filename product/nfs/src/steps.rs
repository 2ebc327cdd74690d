//! The steps that the tables of the server take, of this thread and in tests alone.
//!
//! Owns: the count.
//! Does not own: the tables, the bounds of steps (each table's tests).
//! Invariants: each access to an entry in a walk is a step, so that a test finds a walk over all.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts an access to an entry.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// The steps that a call takes on this thread.
#[cfg(test)]
pub(crate) fn steps_of<T>(call: impl FnOnce() -> T) -> (u64, T) {
    let before = STEPS.with(std::cell::Cell::get);
    let result = call();
    (STEPS.with(std::cell::Cell::get) - before, result)
}
