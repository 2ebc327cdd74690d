//! A table whose places are reused.
//!
//! Owns: the values and the list of free places.
//! Does not own: the meaning of keys elsewhere; keys of removed values come back.
//! Invariants: a key names one value from `insert` to `remove`.

/// Values under small keys.
pub(super) struct SlotTable<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> SlotTable<T> {
    pub(super) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// The key that the next [`SlotTable::insert`] will return.
    pub(super) fn next_key(&self) -> usize {
        self.free.last().copied().unwrap_or(self.places.len())
    }

    pub(super) fn insert(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(key) => {
                self.places[key] = Some(value);
                key
            }
            None => {
                self.places.push(Some(value));
                self.places.len() - 1
            }
        }
    }

    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut T> {
        self.places.get_mut(key)?.as_mut()
    }

    pub(super) fn remove(&mut self, key: usize) -> Option<T> {
        let value = self.places.get_mut(key)?.take()?;
        self.free.push(key);
        Some(value)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Some key in use.
    pub(super) fn any_key(&self) -> Option<usize> {
        self.places.iter().position(Option::is_some)
    }
}
