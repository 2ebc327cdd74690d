//! The open files by slot: finds the file of a frame.
//!
//! Owns: the slots. Does not own: the files; their devices' lists keep dirty files alive.
//! Invariants: a slot is not reused while its file lives. Nothing else is locked while the table is, and a file is made
//! without the table's lock (`a_file_is_made_without_the_lock`).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, Weak};

use afflux_pages::wait::lock;

pub(crate) struct FileTable<F>(Mutex<Slots<F>>);

struct Slots<F> {
    slots: Vec<Weak<F>>,
    free: Vec<u32>,
}

impl<F> Default for FileTable<F> {
    fn default() -> Self {
        Self(Mutex::new(Slots { slots: Vec::new(), free: Vec::new() }))
    }
}

impl<F> FileTable<F> {
    /// Makes a file and gives it a slot.
    pub(super) fn add(&self, make: impl FnOnce(u32) -> F) -> Arc<F> {
        let slot = self.take_slot();
        self.add_at(slot, make)
    }

    fn take_slot(&self) -> u32 {
        let mut table = lock(&self.0);
        table.free.pop().unwrap_or_else(|| {
            table.slots.push(Weak::new());
            (table.slots.len() - 1) as u32
        })
    }

    /// Keeps these slots for files that come later by [`FileTable::add_at`]. Called before any file is added.
    pub(super) fn reserve(&self, slots: &BTreeSet<u32>) {
        let mut table = lock(&self.0);
        let count = slots.last().map_or(0, |last| last + 1);
        table.slots.resize_with(count as usize, Weak::new);
        table.free.extend((0..count).rev().filter(|slot| !slots.contains(slot)));
    }

    /// Makes a file in a slot that was kept for it.
    pub(super) fn add_at(&self, slot: u32, make: impl FnOnce(u32) -> F) -> Arc<F> {
        let file = Arc::new(make(slot));
        let mut table = lock(&self.0);
        table.slots[slot as usize] = Arc::downgrade(&file);
        file
    }

    pub(super) fn remove(&self, slot: u32) {
        let mut table = lock(&self.0);
        table.slots[slot as usize] = Weak::new();
        table.free.push(slot);
    }

    pub(crate) fn get(&self, slot: u32) -> Option<Arc<F>> {
        lock(&self.0).slots.get(slot as usize)?.upgrade()
    }

    pub(crate) fn count(&self) -> u64 {
        let table = lock(&self.0);
        (table.slots.len() - table.free.len()) as u64
    }
}

#[cfg(test)]
mod tests;
