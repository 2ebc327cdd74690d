//! Caches that outlive their engine, because threads still use lent guards.
//!
//! Owns: a reference to each such cache, until its last guard has ended.
//! Does not own: guards that have a reference of their own (`guards`).
//! Invariants: when an engine ends, the count rises before the slots are looked at, and a guard reads the count after
//! its slot is empty. All threads are fenced in between, so either the engine sees the slot empty, or the guard sees
//! the count.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::cache::PageCache;
use crate::sync::light_fence;
use crate::wait::lock;

/// The number of caches in the list, or about to come there.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static CACHES: Mutex<Vec<Arc<PageCache>>> = Mutex::new(Vec::new());

/// Keeps the cache of an engine that ends, as long as guards need it.
pub(in crate::cache) fn keep(cache: &Arc<PageCache>) {
    if cache.lending.leased() == 0 {
        return;
    }
    cache.lending.end();
    COUNT.fetch_add(1, Ordering::SeqCst);
    cache.lending.fence();
    let mut caches = lock(&CACHES);
    if cache.lending.has_users() {
        caches.push(Arc::clone(cache));
    } else {
        COUNT.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Frees the caches that no guard uses any more. The caller has just emptied a slot.
#[inline]
pub(in crate::cache) fn free_unused() {
    light_fence();
    if COUNT.load(Ordering::Relaxed) > 0 {
        sweep();
    }
}

#[cold]
fn sweep() {
    let unused: Vec<_> = lock(&CACHES).extract_if(.., |cache| !cache.lending.has_users()).collect();
    COUNT.fetch_sub(unused.len(), Ordering::SeqCst);
}
