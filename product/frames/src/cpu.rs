//! The choice of the per-CPU lists for a thread.
//!
//! Owns: the slots, and which live thread has which; the number that a simulator sets.
//! Does not own: the contents of a slot: each allocator has its own lists.
//! Invariants: at most one live thread owns a slot. A thread that finds no free slot shares one, and so does a thread
//! that runs as a given CPU. Everything that a thread did before its end happens before anything that the slot's next
//! thread does.
//!
//! Slots go by thread and not by CPU, since the thread's number costs almost nothing to read (0.2 ns; the CPU's number
//! 0.5 ns by `rdpid`, 1.7 ns by the C library). A thread also keeps its slot between two instructions, while it may
//! change its CPU. So its innermost list needs no atomic.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of slots: more threads than this share them.
pub(crate) const SLOTS: usize = 32;

const UNSET: u32 = u32::MAX;
const EXCLUSIVE: u32 = 1 << 8;

/// One bit a slot, set while a thread has it.
static TAKEN: AtomicU32 = AtomicU32::new(0);
/// Spreads the sharing threads over the slots.
static SHARERS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The place in use. Has no destructor, so that reading it is one load.
    static PLACE: Cell<u32> = const { Cell::new(UNSET) };
    /// The thread's own slot.
    static OWN: Own = const { Own(Cell::new(UNSET)) };
}

/// The location of a thread's lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(u32);

impl Place {
    /// A slot that other threads may use at the same time.
    pub(crate) const fn shared(slot: usize) -> Self {
        Self((slot % SLOTS) as u32)
    }

    /// A slot that only the caller uses.
    pub(crate) const fn exclusive(slot: usize) -> Self {
        Self((slot % SLOTS) as u32 | EXCLUSIVE)
    }

    #[inline]
    pub(crate) const fn slot(self) -> usize {
        self.0 as usize % SLOTS
    }

    #[inline]
    pub(crate) const fn is_exclusive(self) -> bool {
        self.0 & EXCLUSIVE != 0
    }
}

/// The calling thread's place.
#[inline]
pub(crate) fn place() -> Place {
    match PLACE.get() {
        UNSET => settle(),
        place => Place(place),
    }
}

/// Makes the calling thread use the lists of this CPU until the next call; `None` restores its own. For simulators: the
/// allocator's behaviour then depends on the calls alone, not on the threads. CPUs are counted modulo 32.
pub fn run_as_cpu(cpu: Option<u32>) {
    PLACE.set(match cpu {
        Some(cpu) => Place::shared(cpu as usize).0,
        None => OWN.try_with(|own| own.0.get()).unwrap_or(UNSET),
    });
}

#[cold]
fn settle() -> Place {
    let place = match OWN.try_with(|own| own.0.set(claim_any().map_or(UNSET, |slot| Place::exclusive(slot).0))) {
        Ok(()) => OWN.with(|own| own.0.get()),
        Err(_) => UNSET,
    };
    let place = match place {
        UNSET => Place::shared(SHARERS.fetch_add(1, Ordering::Relaxed) as usize),
        place => Place(place),
    };
    PLACE.set(place.0);
    place
}

fn claim_any() -> Option<usize> {
    (0..SLOTS).find(|slot| claim(*slot))
}

pub(crate) fn claim(slot: usize) -> bool {
    TAKEN.fetch_or(1 << slot, Ordering::Acquire) & 1 << slot == 0
}

fn release(slot: usize) {
    TAKEN.fetch_and(!(1 << slot), Ordering::Release);
}

/// Runs `body` as the owner of a slot, if no thread owns it.
pub(crate) fn while_unowned(slot: usize, body: impl FnOnce()) {
    if claim(slot) {
        let _release = Claimed(slot);
        body();
    }
}

struct Claimed(usize);

impl Drop for Claimed {
    fn drop(&mut self) {
        release(self.0);
    }
}

struct Own(Cell<u32>);

impl Drop for Own {
    fn drop(&mut self) {
        let own = self.0.replace(UNSET);
        if own != UNSET {
            // Later destructors that free frames use the slot as a shared one.
            PLACE.set(Place(own).slot() as u32);
            release(Place(own).slot());
        }
    }
}
