//! The descriptors that files of a pool have opened beside the given ones.
//!
//! Owns: their number, the bound on it, the files that have some.
//! Does not own: the descriptors (each file its own).
//! Invariants: above the bound, a file that opens another descriptor first closes those of the files that opened theirs
//! longest ago. Descriptors in use by requests stay open, so the number passes the bound by at most the requests in
//! flight.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::shortage::{SparePool, add_pool};

/// A file of a pool, which opens descriptors that it can close and open anew.
pub(super) trait SpareOwner: Send + Sync {
    /// Closes the idle ones.
    fn close_spare(&self);

    /// Whether some are open.
    fn has_spare(&self) -> bool;
}

/// A bound on descriptors that can be closed and opened anew.
pub struct SpareDescriptors {
    max: usize,
    open: AtomicUsize,
    /// Files that have opened a descriptor, oldest first. Some files have closed theirs since, some are listed twice.
    files: Mutex<VecDeque<Weak<dyn SpareOwner>>>,
}

impl SpareDescriptors {
    /// At most `max`, beside those in use.
    pub fn new(max: usize) -> Arc<Self> {
        let pool = Arc::new(Self { max, open: AtomicUsize::new(0), files: Mutex::default() });
        let added: Weak<Self> = Arc::downgrade(&pool);
        add_pool(added);
        pool
    }

    /// Count of spare descriptors that are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Closes all descriptors that no request uses.
    pub fn close_all(&self) {
        self.close_until(0);
    }

    /// Closes descriptors until no more than `most` remain, or until every file was tried once.
    fn close_until(&self, most: usize) {
        let mut left = self.files().len();
        while self.open() > most && left > 0 {
            left -= 1;
            let Some(file) = self.files().pop_front() else { return };
            let Some(file) = file.upgrade() else { continue };
            file.close_spare();
            if file.has_spare() {
                self.files().push_back(Arc::downgrade(&file));
            }
        }
    }

    fn files(&self) -> MutexGuard<'_, VecDeque<Weak<dyn SpareOwner>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SparePool for SpareDescriptors {
    fn close_idle(&self) {
        self.close_all();
    }
}

/// A file's part in the pool.
pub(super) struct SpareMember {
    pool: Arc<SpareDescriptors>,
    file: Weak<dyn SpareOwner>,
}

impl SpareMember {
    pub(super) fn new(pool: &Arc<SpareDescriptors>, file: Weak<dyn SpareOwner>) -> Self {
        Self { pool: Arc::clone(pool), file }
    }

    /// Closes a descriptor for one that the file is about to open.
    pub(super) fn close_for_next(&self) {
        self.pool.close_until(self.pool.max.saturating_sub(1));
    }

    pub(super) fn opened(&self) {
        self.pool.open.fetch_add(1, Ordering::Relaxed);
        let mut files = self.pool.files();
        // Few descriptors mean that none are closed; files that have closed their own must not pile up in the list.
        if files.len() > 4 * self.pool.max.max(64) {
            files.retain(|file| file.upgrade().is_some_and(|file| file.has_spare()));
        }
        files.push_back(self.file.clone());
    }

    pub(super) fn closed(&self, count: usize) {
        self.pool.open.fetch_sub(count, Ordering::Relaxed);
    }
}
