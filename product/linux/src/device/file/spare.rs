//! The descriptors that files of a pool have opened beside the one each was given.
//!
//! Owns: how many there are, how many there may be, which files have some.
//! Does not own: the descriptors (each file its own).
//! Invariants: above the bound, whoever opens another closes others' first, those of the files first that opened theirs
//! longest ago; one that a request uses stays, so the bound is passed by what is in flight at most.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::HostFile;

/// A bound on descriptors that can be closed and opened anew.
pub struct SpareDescriptors {
    max: usize,
    open: AtomicUsize,
    /// Files that opened one, in that order; some have closed it since, some stand here twice.
    files: Mutex<VecDeque<Weak<HostFile>>>,
}

impl SpareDescriptors {
    /// At most `max`, beside those in use.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, open: AtomicUsize::new(0), files: Mutex::default() })
    }

    /// How many there are.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Closes all that no request uses.
    pub fn close_all(&self) {
        self.close_until(0);
    }

    /// Closes files' until there are no more than `most`, or all were looked at once.
    fn close_until(&self, most: usize) {
        let mut left = self.files().len();
        while self.open() > most && left > 0 {
            left -= 1;
            let Some(file) = self.files().pop_front() else { return };
            let Some(file) = file.upgrade() else { continue };
            file.close_spare();
            if file.lock().spare_count() > 0 {
                self.files().push_back(Arc::downgrade(&file));
            }
        }
    }

    fn files(&self) -> MutexGuard<'_, VecDeque<Weak<HostFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file's part in it.
pub(super) struct Spare {
    pool: Arc<SpareDescriptors>,
    file: Weak<HostFile>,
}

impl Spare {
    pub(super) fn new(pool: &Arc<SpareDescriptors>, file: Weak<HostFile>) -> Self {
        Self { pool: Arc::clone(pool), file }
    }

    /// Another is about to be opened.
    pub(super) fn make_room(&self) {
        self.pool.close_until(self.pool.max.saturating_sub(1));
    }

    /// The host has no more.
    pub(super) fn close_all(&self) {
        self.pool.close_all();
    }

    pub(super) fn opened(&self) {
        self.pool.open.fetch_add(1, Ordering::Relaxed);
        let mut files = self.pool.files();
        // Nobody closes any while there are few: what has closed its own must not pile up.
        if files.len() > 4 * self.pool.max.max(64) {
            files.retain(|file| file.upgrade().is_some_and(|file| file.lock().spare_count() > 0));
        }
        files.push_back(self.file.clone());
    }

    pub(super) fn closed(&self, count: usize) {
        self.pool.open.fetch_sub(count, Ordering::Relaxed);
    }
}
