//! The choice of the per-CPU lists for a thread.
//!
//! Owns: the slots, and which live thread has which; the number that a simulator sets.
//! Does not own: the contents of a slot: each allocator has its own lists.
//! Invariants: at most one live thread owns a slot. A thread that finds no free slot shares one, and so does a thread
//! that runs as a given CPU. Everything that a thread did before its end happens before anything that the slot's next
//! thread does.
//!
//! Slots belong to threads and not to CPUs, since the thread's number costs almost nothing to read (0.2 ns; the CPU's
//! number 0.5 ns by `rdpid`, 1.7 ns by the C library). A thread also holds its slot between two instructions, while it
//! may change its CPU. So its innermost list needs no atomic.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of slots: more threads than this share them.
pub(crate) const SLOTS: usize = 32;

/// Set in a slot that other threads may use at the same time.
const SHARED: u32 = 1 << 8;
/// The thread has no slot yet.
const UNSET: u32 = u32::MAX;

/// One bit a slot, set while a thread has it.
static TAKEN: AtomicU32 = AtomicU32::new(0);
/// Spreads the sharing threads over the slots.
static SHARERS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The slot in use. Has no destructor, so that reading it is one load.
    static SLOT: Cell<u32> = const { Cell::new(UNSET) };
    /// The thread's own slot.
    static OWN: Own = const { Own(Cell::new(UNSET)) };
}

/// The location of a thread's lists: a slot that only the caller uses, or one that others may use, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ListSlot(pub(crate) u32);

impl ListSlot {
    /// A slot that other threads may use at the same time.
    pub(crate) const fn shared(slot: usize) -> Self {
        Self((slot % SLOTS) as u32 | SHARED)
    }

    #[inline]
    pub(crate) const fn slot(self) -> usize {
        self.0 as usize % SLOTS
    }

    /// The slot that only the caller uses; otherwise a number above all slots.
    #[inline]
    pub(crate) const fn own_slot(self) -> usize {
        self.0 as usize
    }

    /// The slot itself, or a new one if the thread has none yet.
    #[inline]
    pub(crate) fn or_settle(self) -> Self {
        if self.0 == UNSET { settle() } else { self }
    }
}

/// The calling thread's slot, or none. One load.
#[inline]
pub(crate) fn slot() -> ListSlot {
    ListSlot(SLOT.get())
}

/// Makes the calling thread use the lists of this CPU until the next call; `None` restores its own. For simulators: the
/// allocator's behaviour then depends on the calls alone, not on the threads. CPUs are counted modulo 32.
pub fn run_as_cpu(cpu: Option<u32>) {
    SLOT.set(match cpu {
        Some(cpu) => ListSlot::shared(cpu as usize).0,
        None => OWN.try_with(|own| own.0.get()).unwrap_or(UNSET),
    });
}

#[cold]
fn settle() -> ListSlot {
    // A thread at its end has no slot of its own any more.
    let own = OWN.try_with(|own| {
        let slot = (0..SLOTS).find(|slot| try_claim(*slot))?;
        own.0.set(slot as u32);
        Some(ListSlot(slot as u32))
    });
    let sharing = || ListSlot::shared(SHARERS.fetch_add(1, Ordering::Relaxed) as usize);
    let slot = own.ok().flatten().unwrap_or_else(sharing);
    SLOT.set(slot.0);
    slot
}

pub(crate) fn try_claim(slot: usize) -> bool {
    TAKEN.fetch_or(1 << slot, Ordering::Acquire) & 1 << slot == 0
}

/// Runs `body` as the owner of a slot, if no thread owns it.
pub(crate) fn while_unowned(slot: usize, body: impl FnOnce()) {
    if try_claim(slot) {
        body();
        TAKEN.fetch_and(!(1 << slot), Ordering::Release);
    }
}

struct Own(Cell<u32>);

impl Drop for Own {
    fn drop(&mut self) {
        let own = self.0.replace(UNSET);
        if own != UNSET {
            // Later destructors that free frames use the slot as a shared one.
            SLOT.set(ListSlot::shared(own as usize).0);
            TAKEN.fetch_and(!(1 << own), Ordering::Release);
        }
    }
}
