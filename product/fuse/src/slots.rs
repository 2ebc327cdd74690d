//! Values by ids that the kernel holds.
//!
//! Owns: the slots, the generation of each.
//! Does not own: the values' meaning (`nodes`, `open_files`).
//! Invariants: an id names one value. After its removal the id names nothing, for the next 2^31 values of the same
//! slot. There are at most as many values as the maker allowed. The first value has the id 1. No call
//! goes through all slots.

pub(crate) struct NumberedSlots<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
    most: usize,
}

/// The slot that an id names.
#[derive(Clone, Copy)]
pub(crate) struct SlotId {
    pub(crate) at: usize,
    pub(crate) generation: u32,
}

/// The slot in the lower half, the generation in the upper one.
pub(crate) fn id(slot_id: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | (slot_id as u64 + 1)
}

pub(crate) fn slot_id(id: u64) -> Option<SlotId> {
    Some(SlotId { at: (id as u32).checked_sub(1)? as usize, generation: (id >> 32) as u32 })
}

/// The generation of a slot after the removal of its value.
pub(crate) fn next(generation: u32) -> u32 {
    (generation + 1) & (u32::MAX >> 1)
}

impl<T> NumberedSlots<T> {
    /// No values yet, and never more than `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), most }
    }

    /// The values of an earlier process, by their slots, with the generations of these.
    pub(crate) fn restored(slots: Vec<(u32, Option<T>)>, most: usize) -> Self {
        let free = slots.iter().enumerate().filter(|(_, (_, value))| value.is_none());
        let free = free.map(|(slot_id, _)| slot_id as u32).collect();
        Self { slots, free, most }
    }

    /// Adds a value; none if no slot is free.
    pub(crate) fn insert(&mut self, value: T) -> Option<u64> {
        if let Some(free) = self.free.pop() {
            let (generation, slot) = &mut self.slots[free as usize];
            *slot = Some(value);
            return Some(id(free as usize, *generation));
        }
        if self.slots.len() >= self.most {
            return None;
        }
        self.slots.push((0, Some(value)));
        Some(id(self.slots.len() - 1, 0))
    }

    pub(crate) fn get(&self, id: u64) -> Option<&T> {
        let SlotId { at: slot_id, generation: wanted } = slot_id(id)?;
        self.slots.get(slot_id).filter(|(generation, _)| *generation == wanted)?.1.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let SlotId { at: slot_id, generation: wanted } = slot_id(id)?;
        self.slots.get_mut(slot_id).filter(|(generation, _)| *generation == wanted)?.1.as_mut()
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<T> {
        let SlotId { at: slot_id, generation: wanted } = slot_id(id)?;
        let (generation, slot) = self.slots.get_mut(slot_id).filter(|(generation, _)| *generation == wanted)?;
        let value = slot.take()?;
        *generation = next(*generation);
        self.free.push(slot_id as u32);
        Some(value)
    }

    /// `most` slots from a slot on, in order and wrapping around, each once, with the ids of their values.
    pub(crate) fn slots_from(&self, from: usize, most: usize) -> impl Iterator<Item = (usize, Option<u64>)> {
        let all = (from..self.slots.len()).chain(0..from.min(self.slots.len()));
        all.take(most).map(|at| (at, self.slots[at].1.as_ref().map(|_| id(at, self.slots[at].0))))
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests;
