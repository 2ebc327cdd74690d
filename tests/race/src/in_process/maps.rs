//! Caches of objects as contenders: pages by number.
//!
//! Owns: the operations used of each: a look at a page, an insertion.
//! Does not own: the source of missing pages.
//! Invariants: each has room for twice the pages that it is filled with, or for the requested number.

use std::sync::Arc;

use crate::rounds::PAGE;

/// A page as these caches hold it: a look returns a reference that outlives the page's eviction.
pub(super) type Page = Arc<[u8; PAGE]>;

/// A cache of pages.
pub(super) trait Map: Sync {
    const NAME: &'static str;
    fn with_room(pages: u64) -> Self;
    /// Shows the page, if it is cached.
    fn look<T>(&self, number: u64, see: impl FnOnce(&[u8; PAGE]) -> T) -> Option<T>;
    fn put(&self, number: u64, page: Page);
}

/// A cache with this many pages, and room for twice as many, so that none is evicted.
pub(super) fn filled<M: Map>(pages: u64) -> M {
    let map = M::with_room((2 * pages).max(4096));
    for number in 0..pages {
        map.put(number, Arc::new([7; PAGE]));
    }
    map
}

pub(super) struct QuickCache(quick_cache::sync::Cache<u64, Page>);

impl Map for QuickCache {
    const NAME: &'static str = "quick_cache";

    fn with_room(pages: u64) -> Self {
        Self(quick_cache::sync::Cache::new(pages as usize))
    }

    fn look<T>(&self, number: u64, see: impl FnOnce(&[u8; PAGE]) -> T) -> Option<T> {
        self.0.get(&number).map(|page| see(&page))
    }

    fn put(&self, number: u64, page: Page) {
        self.0.insert(number, page);
    }
}

pub(super) struct Foyer(foyer_memory::Cache<u64, Page>);

impl Map for Foyer {
    const NAME: &'static str = "foyer";

    fn with_room(pages: u64) -> Self {
        Self(foyer_memory::CacheBuilder::new(pages as usize).build())
    }

    fn look<T>(&self, number: u64, see: impl FnOnce(&[u8; PAGE]) -> T) -> Option<T> {
        self.0.get(&number).map(|entry| see(entry.value()))
    }

    fn put(&self, number: u64, page: Page) {
        drop(self.0.insert(number, page));
    }
}

pub(super) struct Moka(moka::sync::Cache<u64, Page>);

impl Map for Moka {
    const NAME: &'static str = "moka";

    fn with_room(pages: u64) -> Self {
        Self(moka::sync::Cache::new(pages))
    }

    fn look<T>(&self, number: u64, see: impl FnOnce(&[u8; PAGE]) -> T) -> Option<T> {
        self.0.get(&number).map(|page| see(&page))
    }

    fn put(&self, number: u64, page: Page) {
        self.0.insert(number, page);
    }
}
