//! A table whose entries are reused.
//!
//! Owns: the values and the list of free entries.
//! Does not own: the meaning of keys elsewhere; keys of removed values come back.
//! Invariants: a key names one value from `insert` to `remove`.

/// Values under small keys.
pub(super) struct SlotTable<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> SlotTable<T> {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    /// The key that the next [`SlotTable::insert`] will return.
    pub(super) fn next_key(&self) -> usize {
        self.free.last().copied().unwrap_or(self.entries.len())
    }

    pub(super) fn insert(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(key) => {
                self.entries[key] = Some(value);
                key
            }
            None => {
                self.entries.push(Some(value));
                self.entries.len() - 1
            }
        }
    }

    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut T> {
        self.entries.get_mut(key)?.as_mut()
    }

    pub(super) fn remove(&mut self, key: usize) -> Option<T> {
        let value = self.entries.get_mut(key)?.take()?;
        self.free.push(key);
        Some(value)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Some key in use.
    pub(super) fn any_key(&self) -> Option<usize> {
        self.entries.iter().position(Option::is_some)
    }
}
