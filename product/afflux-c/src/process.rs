//! The identity of this process; a forked child is another.
//!
//! Owns: the number of the process.
//! Does not own: a child's rights to its parent's objects (none: `handle`).
//! Invariants: no lock is taken, since a lock may be held for ever in a child. A child has no number until it makes an
//! object of its own.

use std::num::NonZeroU32;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use afflux_linux_device::ProcessWord;

use crate::border::{Answer, CallFailure};

/// The newest process record: this process's, or its parent's.
static NEWEST: AtomicPtr<Process> = AtomicPtr::new(null_mut());
/// Numbers given so far; a child continues the count.
static GIVEN: AtomicU32 = AtomicU32::new(0);

/// A process. Never freed, since another thread may be reading it.
struct Process {
    /// The number, in memory that a fork wipes in the child.
    number: ProcessWord,
    /// The parent's record.
    _older: *mut Process,
}

/// The number of this process; 0 if it has none yet.
#[inline]
pub(crate) fn number() -> u32 {
    let newest = NEWEST.load(Ordering::Acquire);
    // SAFETY: the pointer is null, or was stored once and is never freed.
    unsafe { newest.as_ref() }.map_or(0, |process| process.number.load())
}

/// The number of this process, a new one if it has none.
pub(crate) fn numbered() -> Answer<u32> {
    loop {
        let newest = NEWEST.load(Ordering::Acquire);
        let known = number();
        if known != 0 {
            return Ok(known);
        }
        let number = NonZeroU32::new(GIVEN.fetch_add(1, Ordering::Relaxed) + 1).unwrap_or(NonZeroU32::MIN);
        let number = ProcessWord::new(number).map_err(CallFailure::from)?;
        let made = Box::into_raw(Box::new(Process { number, _older: newest }));
        if NEWEST.compare_exchange(newest, made, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // SAFETY: made above, and no other thread has seen it.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}
