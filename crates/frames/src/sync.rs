//! The atomics and the lock of the allocators: std's, or loom's while a model is checked.
//!
//! Owns: that choice, made by `--cfg loom`; the spin lock.
//! Does not own: any protocol; the models are beside what they check, in `loom_models.rs`.
//! Invariants: the lock is held for a bounded number of steps, never over a call of foreign code.

#[cfg(not(all(test, loom)))]
pub(crate) use std::{hint, sync::atomic, thread::yield_now};

#[cfg(all(test, loom))]
pub(crate) use loom::{hint, sync::atomic, thread::yield_now};

use std::ops::{Deref, DerefMut};

use atomic::{AtomicBool, Ordering};

/// Looks at a held lock before its holder is taken to have been switched out.
const SPINS_MAX: u32 = 1 << 10;

/// A lock for a few dozen instructions. Who finds it held spins; only when the holder was switched out
/// in the middle does it give its own turn away.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct SpinLock<T> {
    held: AtomicBool,
    value: cell::Cell<T>,
}

// SAFETY: the value is reached by one thread at a time, through the guard.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: cell::Cell::new(value) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> SpinGuard<'_, T> {
        if self.held.swap(true, Ordering::Acquire) {
            self.wait();
        }
        SpinGuard { lock: self, value: self.value.enter() }
    }

    #[cold]
    fn wait(&self) {
        let mut spins = 0_u32;
        loop {
            // Looked at before it is written to, so that the waiters share the line.
            while self.held.load(Ordering::Relaxed) {
                spins = spins.wrapping_add(1);
                if spins.is_multiple_of(SPINS_MAX) || cfg!(loom) {
                    yield_now();
                } else {
                    hint::spin_loop();
                }
            }
            if !self.held.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }
}

/// The lock, held.
pub(crate) struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
    value: cell::Entered<'a, T>,
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held, so nobody changes the value.
        unsafe { &*self.value.pointer() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held and the guard borrowed alone, so nobody else reaches the value.
        unsafe { &mut *self.value.pointer() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.value.leave();
        self.lock.held.store(false, Ordering::Release);
    }
}

#[cfg(not(all(test, loom)))]
mod cell {
    use std::cell::UnsafeCell;
    use std::marker::PhantomData;

    #[derive(Debug)]
    pub(super) struct Cell<T>(UnsafeCell<T>);

    impl<T> Cell<T> {
        pub(super) fn new(value: T) -> Self {
            Self(UnsafeCell::new(value))
        }

        #[inline]
        pub(super) fn enter(&self) -> Entered<'_, T> {
            Entered(self.0.get(), PhantomData)
        }
    }

    pub(super) struct Entered<'a, T>(*mut T, PhantomData<&'a T>);

    impl<T> Entered<'_, T> {
        #[inline]
        pub(super) fn pointer(&self) -> *mut T {
            self.0
        }

        #[inline]
        pub(super) fn leave(&mut self) {}
    }
}

/// Loom's cell finds two who are inside at once.
#[cfg(all(test, loom))]
mod cell {
    use std::marker::PhantomData;

    #[derive(Debug)]
    pub(super) struct Cell<T>(loom::cell::UnsafeCell<T>);

    impl<T> Cell<T> {
        pub(super) fn new(value: T) -> Self {
            Self(loom::cell::UnsafeCell::new(value))
        }

        pub(super) fn enter(&self) -> Entered<'_, T> {
            Entered(Some(self.0.get_mut()), PhantomData)
        }
    }

    pub(super) struct Entered<'a, T>(Option<loom::cell::MutPtr<T>>, PhantomData<&'a T>);

    impl<T> Entered<'_, T> {
        pub(super) fn pointer(&self) -> *mut T {
            self.0.as_ref().map_or(std::ptr::null_mut(), |pointer| pointer.with(|pointer| pointer))
        }

        pub(super) fn leave(&mut self) {
            self.0 = None;
        }
    }
}

/// Runs a model with at most three involuntary switches of thread (or `LOOM_MAX_PREEMPTIONS`).
#[cfg(all(test, loom))]
pub(crate) fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(body);
}
