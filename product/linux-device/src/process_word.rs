//! A word of memory that is wiped in a forked child.
//!
//! Owns: one page of memory with the word in it.
//! Does not own: the meaning of the word.
//! Invariants: zero is never stored, so a zero shows that the process was forked from the word's maker. If the host
//! cannot wipe memory (before Linux 4.14), a child sees its parent's value.

use std::num::NonZeroU32;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

const PAGE_BYTES: usize = 4096;

/// The word. Reading it costs a load.
pub struct ProcessWord {
    word: NonNull<AtomicU32>,
}

// SAFETY: the word owns its page, and all accesses are atomic.
unsafe impl Send for ProcessWord {}
// SAFETY: as above.
unsafe impl Sync for ProcessWord {}

impl ProcessWord {
    /// A word with this value.
    ///
    /// # Errors
    /// The host's, if it gives no page of memory.
    pub fn new(value: NonZeroU32) -> std::io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a fresh private anonymous mapping aliases nothing.
        let page = unsafe { mmap_anonymous(std::ptr::null_mut(), PAGE_BYTES, protection, flags) }?;
        // SAFETY: the page was mapped above; the advice concerns children alone.
        let _ = unsafe { madvise(page, PAGE_BYTES, Advice::LinuxWipeOnFork) };
        let word = NonNull::new(page.cast()).ok_or_else(|| std::io::Error::other("memory at address 0"))?;
        let made = Self { word };
        made.word().store(value.get(), Ordering::SeqCst);
        Ok(made)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped while `self` lives, zeroed or stored to, and used as this type alone.
        unsafe { self.word.as_ref() }
    }

    /// The value; 0 in a forked child.
    #[inline]
    pub fn load(&self) -> u32 {
        self.word().load(Ordering::Acquire)
    }

    /// The value, in one order with all loads and changes of this kind.
    pub fn load_in_order(&self) -> u32 {
        self.word().load(Ordering::SeqCst)
    }

    /// Replaces `from` by `to`, if the word is `from`; returns whether it was.
    pub fn try_change(&self, from: NonZeroU32, to: NonZeroU32) -> bool {
        self.word().compare_exchange(from.get(), to.get(), Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

impl Drop for ProcessWord {
    fn drop(&mut self) {
        // SAFETY: `new` mapped the page, and no reference to it remains.
        let _ = unsafe { munmap(self.word.as_ptr().cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests;
