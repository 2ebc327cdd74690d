//! Tables whose entries all begin as zeros.
//!
//! Owns: how they are made. Does not own: what stands in them.
//! Invariants: an entry that nobody wrote to takes neither time nor memory, as far as the kernel gives memory by the
//! page.

use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// A type of which bytes that are all zero are a value.
///
/// # Safety
/// They are, whatever padding there is.
pub unsafe trait Zeroed: Sized {}

macro_rules! atomics {
    ($($atomic:ty),*) => {
        $(
            // SAFETY: it is a number in memory, and zero is one.
            unsafe impl Zeroed for $atomic {}
        )*
    };
}

atomics!(AtomicU8, AtomicU16, AtomicU32, AtomicU64);

// SAFETY: zeros are the null pointer.
unsafe impl<T> Zeroed for AtomicPtr<T> {}

// SAFETY: zeros are a value of each entry.
unsafe impl<T: Zeroed, const N: usize> Zeroed for [T; N] {}

/// So many entries of zeros, in memory that the kernel gives at the first write to each page.
///
/// Does not block; ends the process, as any allocation, when the host refuses that much address space.
pub fn zeroed<T: Zeroed>(len: usize) -> Box<[T]> {
    // SAFETY: zeros are a value of each entry, as its type promises.
    unsafe { Box::new_zeroed_slice(len).assume_init() }
}

#[cfg(test)]
mod tests;
