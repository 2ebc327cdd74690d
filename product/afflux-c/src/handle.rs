//! Handles: numbers that C holds as pointers, and the values behind them.
//!
//! Owns: the tables, the count of calls with a handle, the moment when its value is dropped.
//! Does not own: the values.
//! Invariants: a handle is never an address: its highest bit is set, so that it cannot be dereferenced even by mistake.
//! The number of a closed handle is never given again. A value lives until the last call with its handle has returned.
//! No lock is taken, so that a forked child finds none held; and two calls with different handles write to no common
//! word.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::null_mut;
#[cfg(not(all(test, loom)))]
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

#[cfg(all(test, loom))]
use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::border::{Answer, CallFailure};
use crate::process;

/// Slots of the first chunk; each further chunk has twice as many. In a model a second chunk is soon needed.
const FIRST_SLOTS: u32 = if cfg!(all(test, loom)) { 1 } else { 64 };
const CHUNKS: usize = 20;
const SLOTS_MAX: u32 = FIRST_SLOTS * ((1 << CHUNKS) - 1);

// A handle: the highest bit, the kind, the generation, the index.
const HANDLE: u64 = 1 << 63;
const KIND_SHIFT: u32 = 60;
const GENERATION_SHIFT: u32 = 30;
const GENERATION_MAX: u64 = (1 << 30) - 1;
const INDEX_MASK: u64 = (1 << GENERATION_SHIFT) - 1;

// A slot's word: the generation, whether it is open, and the number of users, including the open handle itself.
const OPEN: u64 = 1 << 32;
const WORD_SHIFT: u32 = 33;
const USERS: u64 = OPEN - 1;

const _: () = assert!(usize::BITS == 64, "a handle has 64 bits");
const _: () = assert!((SLOTS_MAX as u64) < INDEX_MASK);

/// The handles of one kind, with their values.
pub(crate) struct HandleTable<T: 'static> {
    kind: u64,
    /// The kind in words for people: "file".
    name: &'static str,
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    /// Number of slots that were ever used.
    used: AtomicU32,
    /// The first free slot, as its index plus 1, below a count of changes. The count reveals a change that another
    /// thread made unseen.
    free: AtomicU64,
}

struct Slot<T> {
    word: AtomicU64,
    /// The process that opened it.
    process: AtomicU32,
    /// The next free slot, as its index plus 1.
    next_free: AtomicU32,
    /// Initialized from the opening until the last user has left.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: a value is written before its slot is opened and dropped by the last user. So several threads have only
// shared references to it, and any of them may drop it.
unsafe impl<T: Send + Sync> Sync for HandleTable<T> {}

/// A call with a handle. The value lives at least as long.
pub(crate) struct Entered<T: Send + Sync + 'static> {
    table: &'static HandleTable<T>,
    slot: &'static Slot<T>,
    index: u32,
}

impl<T: Send + Sync + 'static> HandleTable<T> {
    /// An empty table. Each kind has its number, below 8.
    #[cfg(not(all(test, loom)))]
    pub(crate) const fn new(kind: u64, name: &'static str) -> Self {
        Self {
            kind: kind << KIND_SHIFT,
            name,
            chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS],
            used: AtomicU32::new(0),
            free: AtomicU64::new(0),
        }
    }

    /// An empty table in a model. The model makes the atomics while it runs.
    #[cfg(all(test, loom))]
    fn modelled() -> Self {
        Self {
            kind: 1 << KIND_SHIFT,
            name: "value",
            chunks: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
            used: AtomicU32::new(0),
            free: AtomicU64::new(0),
        }
    }

    /// Makes a handle for a value.
    pub(crate) fn open<H>(&'static self, value: T) -> Answer<*mut H> {
        let process = process::numbered()?;
        let (index, slot) = self.vacant()?;
        // SAFETY: the slot is vacant and this thread's alone, until it is opened.
        unsafe { (*slot.value.get()).write(value) };
        slot.process.store(process, Ordering::Relaxed);
        let generation = slot.word.load(Ordering::Relaxed) >> WORD_SHIFT;
        slot.word.store(generation << WORD_SHIFT | OPEN | 1, Ordering::Release);
        let bits = HANDLE | self.kind | generation << GENERATION_SHIFT | u64::from(index);
        Ok(std::ptr::without_provenance_mut(bits as usize))
    }

    /// Begins a call with a handle.
    #[inline]
    pub(crate) fn enter<H>(&'static self, handle: *const H) -> Answer<Entered<T>> {
        self.change(handle, |word| word + 1)
    }

    /// Closes a handle; of several callers, one succeeds. That caller is a user, and the last user to leave drops the
    /// value.
    pub(crate) fn close<H>(&'static self, handle: *const H) -> Answer<Entered<T>> {
        self.change(handle, |word| word & !OPEN)
    }

    #[inline]
    fn change<H>(&'static self, handle: *const H, to: impl Fn(u64) -> u64) -> Answer<Entered<T>> {
        let bits = handle.addr() as u64;
        let (index, generation) = ((bits & INDEX_MASK) as u32, bits >> GENERATION_SHIFT & GENERATION_MAX);
        let is_ours = bits & !(INDEX_MASK | GENERATION_MAX << GENERATION_SHIFT) == HANDLE | self.kind;
        let Some(slot) = is_ours.then(|| self.slot(index)).flatten() else { return Err(self.no_handle(bits)) };
        let mut word = slot.word.load(Ordering::Acquire);
        loop {
            if word >> 32 != generation << 1 | 1 {
                return Err(self.no_handle(bits));
            }
            // This comes before any write: a child must change nothing of its parent's.
            if slot.process.load(Ordering::Relaxed) != process::number() {
                return Err(CallFailure::forked(self.name));
            }
            match slot.word.compare_exchange_weak(word, to(word), Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Ok(Entered { table: self, slot, index }),
                Err(now) => word = now,
            }
        }
    }

    #[cold]
    fn no_handle(&self, bits: u64) -> CallFailure {
        let name = self.name;
        CallFailure::bad_handle(match bits {
            0 => format!("NULL is no {name}"),
            _ => format!("{bits:#x} is no open {name}: it was closed, or never was one"),
        })
    }

    /// A slot that has been used.
    #[inline]
    fn slot(&self, index: u32) -> Option<&'static Slot<T>> {
        let (chunk, offset) = position(index)?;
        let chunk = self.chunks[chunk].load(Ordering::Acquire);
        // SAFETY: a chunk is never freed, and has the slots that `position` counts in it.
        (!chunk.is_null()).then(|| unsafe { &*chunk.add(offset) })
    }

    fn vacant(&self) -> Answer<(u32, &'static Slot<T>)> {
        let mut free = self.free.load(Ordering::Acquire);
        while let Some(index) = (free as u32).checked_sub(1) {
            let Some(slot) = self.slot(index) else { break };
            let next = (free >> 32).wrapping_add(1) << 32 | u64::from(slot.next_free.load(Ordering::Relaxed));
            match self.free.compare_exchange_weak(free, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok((index, slot)),
                Err(now) => free = now,
            }
        }
        let more = |used: u32| (used < SLOTS_MAX).then_some(used + 1);
        let index = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let index =
            index.map_err(|_| CallFailure::no_memory(format!("{SLOTS_MAX} handles of a {} are open", self.name)))?;
        let slot = position(index).and_then(|(chunk, _)| {
            self.make_chunk(chunk);
            self.slot(index)
        });
        slot.map(|slot| (index, slot)).ok_or_else(|| CallFailure::no_memory("no memory for a handle".to_owned()))
    }

    fn make_chunk(&self, chunk: usize) {
        let position = &self.chunks[chunk];
        if !position.load(Ordering::Acquire).is_null() {
            return;
        }
        let vacant = |_| Slot {
            word: AtomicU64::new(0),
            process: AtomicU32::new(0),
            next_free: AtomicU32::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        };
        let made: Box<[Slot<T>]> = (0..FIRST_SLOTS << chunk).map(vacant).collect();
        let made = Box::into_raw(made);
        if position.compare_exchange(null_mut(), made.cast(), Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // Another thread was faster. SAFETY: made above, and no other thread has seen it.
            drop(unsafe { Box::from_raw(made) });
        }
    }

    fn give_back(&self, index: u32, slot: &Slot<T>) {
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            slot.next_free.store(free as u32, Ordering::Relaxed);
            let new = (free >> 32).wrapping_add(1) << 32 | u64::from(index + 1);
            match self.free.compare_exchange_weak(free, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => free = now,
            }
        }
    }
}

/// The chunk of a slot and its index there.
#[inline]
fn position(index: u32) -> Option<(usize, usize)> {
    let from_first = index.checked_add(FIRST_SLOTS).filter(|_| index < SLOTS_MAX)?;
    let chunk = from_first.ilog2() - FIRST_SLOTS.ilog2();
    Some((chunk as usize, (from_first - (FIRST_SLOTS << chunk)) as usize))
}

impl<T: Send + Sync + 'static> Deref for Entered<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value was initialized when this user entered, and stays until the user has left.
        unsafe { (*self.slot.value.get()).assume_init_ref() }
    }
}

impl<T: Send + Sync + 'static> Drop for Entered<T> {
    #[inline]
    fn drop(&mut self) {
        let before = self.slot.word.fetch_sub(1, Ordering::AcqRel);
        if before & USERS == 1 {
            self.end(before);
        }
    }
}

impl<T: Send + Sync + 'static> Entered<T> {
    /// Drops the value: the last user has left, and no further one can enter.
    #[cold]
    fn end(&self, word: u64) {
        // SAFETY: the value is initialized, and there is no other user; no other code moves the value out.
        let value = unsafe { (*self.slot.value.get()).assume_init_read() };
        let generation = (word >> WORD_SHIFT) + 1;
        self.slot.word.store(generation << WORD_SHIFT, Ordering::Relaxed);
        // A slot whose generations are used up is not used again.
        if generation <= GENERATION_MAX {
            self.table.give_back(self.index, self.slot);
        }
        drop(value);
    }
}

#[cfg(all(test, loom))]
mod loom_models;
#[cfg(all(test, not(loom)))]
mod tests;
