//! Values by numbers that the kernel keeps.
//!
//! Owns: the slots, the generation of each.
//! Does not own: the values' meaning (`nodes`, `open_files`).
//! Invariants: a number names one value. After its removal the number names nothing, for the next 2^31 values of the
//! same slot. There are at most as many values as the maker allowed. The first value has the number 1.

/// Numbered values.
pub(crate) struct Slots<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
    most: usize,
}

/// The place in the lower half, the generation in the upper one.
fn number(place: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | (place as u64 + 1)
}

fn place(number: u64) -> Option<(usize, u32)> {
    Some(((number as u32).checked_sub(1)? as usize, (number >> 32) as u32))
}

impl<T> Slots<T> {
    /// No values yet, and never more than `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), most }
    }

    /// Adds a value; none if there is no room.
    pub(crate) fn insert(&mut self, value: T) -> Option<u64> {
        if let Some(free) = self.free.pop() {
            let (generation, slot) = &mut self.slots[free as usize];
            *slot = Some(value);
            return Some(number(free as usize, *generation));
        }
        if self.slots.len() >= self.most {
            return None;
        }
        self.slots.push((0, Some(value)));
        Some(number(self.slots.len() - 1, 0))
    }

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        let (place, wanted) = place(number)?;
        self.slots.get(place).filter(|(generation, _)| *generation == wanted)?.1.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let (place, wanted) = place(number)?;
        self.slots.get_mut(place).filter(|(generation, _)| *generation == wanted)?.1.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let (place, wanted) = place(number)?;
        let (generation, slot) = self.slots.get_mut(place).filter(|(generation, _)| *generation == wanted)?;
        let value = slot.take()?;
        *generation = (*generation + 1) & (u32::MAX >> 1);
        self.free.push(place as u32);
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests;
