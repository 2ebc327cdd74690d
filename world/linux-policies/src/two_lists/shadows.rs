//! Shadows of pages that went: how long ago in pages.
//!
//! Owns: the age, the shadows and their bound. Does not own: what a page's return means (`two_lists`).
//! Invariants: at most as many shadows as the cache has frames; the oldest are forgotten.

use std::collections::{HashMap, VecDeque};

use afflux_engine::eviction::PageKey;

pub(super) struct Shadows {
    /// The age at which each page went.
    ages: HashMap<PageKey, u64>,
    /// The same in order. A page that came back meanwhile has no such age any more.
    order: VecDeque<(u64, PageKey)>,
    most: usize,
    age: u64,
}

impl Shadows {
    /// At most so many.
    pub(super) fn new(most: u32) -> Self {
        Self { ages: HashMap::new(), order: VecDeque::new(), most: most as usize, age: 0 }
    }

    /// Pages were activated.
    pub(super) fn age(&mut self, pages: u64) {
        self.age += pages;
    }

    /// A page has gone.
    pub(super) fn note(&mut self, key: PageKey) {
        self.ages.insert(key, self.age);
        self.order.push_back((self.age, key));
        self.age += 1;
        if self.order.len() > self.most
            && let Some((age, key)) = self.order.pop_front()
            && self.ages.get(&key) == Some(&age)
        {
            self.ages.remove(&key);
        }
    }

    /// How many pages have gone or were activated since the page went, if that is known. Its shadow is removed.
    pub(super) fn take(&mut self, key: PageKey) -> Option<u64> {
        self.ages.remove(&key).map(|age| self.age - age)
    }

    /// Bytes of all shadows.
    pub(super) fn bytes(&self) -> u64 {
        (self.ages.capacity() * size_of::<(PageKey, u64)>() + self.order.capacity() * size_of::<(u64, PageKey)>())
            as u64
    }
}

#[cfg(test)]
mod tests;
