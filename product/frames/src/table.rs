//! Tables whose entries all begin as zeros, and tables over memory that may hold anything.
//!
//! Owns: the types of their entries, how zeroed tables are made, the reference that holds the memory.
//! Does not own: the memory, the meaning of entries.
//! Invariants: an entry over shared memory is read and written by atomic numbers alone, so that other users of the
//! memory do no harm. An entry of a zeroed table that nobody wrote to takes neither time nor memory, as far as the
//! kernel gives memory by the page.

use std::any::Any;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// A type of which any bytes are a value, and which consists of atomic numbers alone.
///
/// # Safety
/// It is so.
pub unsafe trait AnyBytes: Zeroed + Send + Sync + 'static {}

// SAFETY: an atomic number.
unsafe impl AnyBytes for AtomicU8 {}
// SAFETY: an atomic number.
unsafe impl AnyBytes for AtomicU32 {}
// SAFETY: an atomic number.
unsafe impl AnyBytes for AtomicU64 {}
// SAFETY: any bytes are each of its entries.
unsafe impl<T: AnyBytes, const N: usize> AnyBytes for [T; N] {}

/// Entries in memory that the table holds.
pub struct FrameTable<T> {
    start: NonNull<T>,
    len: usize,
    _memory: Arc<dyn Any + Send + Sync>,
}

// SAFETY: it gives shared references to entries, which may go to other threads.
unsafe impl<T: Sync> Send for FrameTable<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for FrameTable<T> {}

impl<T: AnyBytes> FrameTable<T> {
    /// # Safety
    /// From `start`, aligned for the type, `len` entries can be read and written while `memory` lives, and all users of
    /// the memory use atomic numbers.
    pub(crate) unsafe fn new(start: NonNull<T>, len: usize, memory: Arc<dyn Any + Send + Sync>) -> Self {
        Self { start, len, _memory: memory }
    }

    /// A table of its own, of zeros.
    pub fn zeroed(len: usize) -> Self {
        let memory: Arc<Box<[T]>> = Arc::new(zeroed(len));
        let start = NonNull::from(&**memory).cast::<T>();
        // SAFETY: the box has the entries, and stays in the heap while it lives.
        unsafe { Self::new(start, len, memory) }
    }
}

impl<const N: usize> AsRef<[AtomicU64]> for FrameTable<[AtomicU64; N]> {
    /// All words of all entries.
    fn as_ref(&self) -> &[AtomicU64] {
        self.as_flattened()
    }
}

impl<T> Deref for FrameTable<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the memory has the entries and lives as long as the table.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

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
