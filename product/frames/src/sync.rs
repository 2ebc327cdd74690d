//! The atomics and the lock of the allocators: std's and a spin lock, or loom's in a model.
//!
//! Owns: that choice, made by `--cfg loom`; the spin lock.
//! Does not own: any protocol; its model is in `loom_models.rs`.
//! Invariants: a lock is held for a bounded number of steps, never over a call of foreign code.

#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic;
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::atomic;

#[cfg(not(all(test, loom)))]
pub(crate) use crate::table::zeroed as zeros;

/// Of a model: each entry is made, since loom follows it.
#[cfg(all(test, loom))]
pub(crate) fn zeros<T: Default>(len: usize) -> Box<[T]> {
    (0..len).map(|_| T::default()).collect()
}

#[cfg(all(test, loom))]
pub use loom_lock::{SpinGuard, SpinLock};
#[cfg(not(all(test, loom)))]
pub use spin::{SpinGuard, SpinLock};

#[cfg(all(test, loom))]
pub(crate) mod loom_lock;

mod spin {
    use std::cell::UnsafeCell;
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Checks of a held lock before its holder counts as switched out.
    const SPINS_MAX: u32 = 1 << 10;

    /// A lock for a few dozen instructions. A waiter spins; it yields only if the holder was switched out in the
    /// middle. Public for allocators of other crates, so that all are measured with one lock.
    #[derive(Debug)]
    #[repr(align(128))]
    pub struct SpinLock<T> {
        held: AtomicBool,
        value: UnsafeCell<T>,
    }

    // SAFETY: one thread at a time reaches the value, through the guard.
    unsafe impl<T: Send> Sync for SpinLock<T> {}

    #[allow(dead_code, reason = "a model of the allocators has loom's lock instead")]
    impl<T> SpinLock<T> {
        /// A free lock.
        pub fn new(value: T) -> Self {
            Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
        }

        /// Waits for the lock.
        #[inline]
        pub fn lock(&self) -> SpinGuard<'_, T> {
            if self.held.swap(true, Ordering::Acquire) {
                self.wait();
            }
            SpinGuard { lock: self, value: PhantomData }
        }

        #[cold]
        fn wait(&self) {
            loop {
                // Reads before it writes, so that the waiters share the cache line.
                for _ in 0..SPINS_MAX {
                    if !self.held.load(Ordering::Relaxed) && !self.held.swap(true, Ordering::Acquire) {
                        return;
                    }
                    std::hint::spin_loop();
                }
                std::thread::yield_now();
            }
        }
    }

    /// The lock, held.
    pub struct SpinGuard<'a, T> {
        lock: &'a SpinLock<T>,
        /// The guard counts as the value itself: threads may share the guard only if they may share the value. By the
        /// lock alone, it would suffice that the value can be sent.
        value: PhantomData<&'a mut T>,
    }

    impl<T> Deref for SpinGuard<'_, T> {
        type Target = T;

        #[inline]
        fn deref(&self) -> &T {
            // SAFETY: the lock is held, so no thread changes the value.
            unsafe { &*self.lock.value.get() }
        }
    }

    impl<T> DerefMut for SpinGuard<'_, T> {
        #[inline]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: the lock is held and the guard is borrowed uniquely, so no other code reaches the value.
            unsafe { &mut *self.lock.value.get() }
        }
    }

    impl<T> Drop for SpinGuard<'_, T> {
        #[inline]
        fn drop(&mut self) {
            self.lock.held.store(false, Ordering::Release);
        }
    }

    #[cfg(test)]
    mod tests;
}
