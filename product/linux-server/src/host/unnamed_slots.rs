//! Slots of open files without a name in the service manager's store.
//!
//! Owns: the slots, their bound, the end of each.
//! Does not own: the files (`stored_unnamed`), the store.
//! Invariants: no more slots are taken than the bound says, but for those of an earlier server. The drop of a slot
//! has the manager drop the descriptor.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::descriptor_store::DescriptorStore;

/// Why a file without a name ends with this server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnstoredFile {
    /// The store has as many as it may have.
    #[error("{most} open files without a name are kept over a kill of the server, and further ones are not")]
    TooMany {
        /// Most files without a name at a time.
        most: usize,
    },
    /// The file cannot be opened for the manager, or the manager cannot be notified.
    #[error("an open file without a name is not kept over a kill of the server: {0}")]
    Failed(String),
}

/// Is called with the first file that is not stored.
type Told = Box<dyn FnOnce(UnstoredFile) + Send>;

/// The files in the store.
pub(super) struct UnnamedFiles {
    pub(super) most: usize,
    slots: Mutex<StoredFiles>,
}

#[derive(Default)]
struct StoredFiles {
    stored: BTreeSet<String>,
    /// Files of an earlier server that this one has not opened yet.
    inherited: BTreeSet<String>,
    told: Option<Told>,
    has_ended: bool,
}

/// A slot in the store. Its drop has the manager drop the descriptor.
pub(super) struct StoredUnnamed {
    pub(super) name: String,
    of: Arc<UnnamedFiles>,
}

impl UnnamedFiles {
    /// So many slots at most, and those that an earlier server has taken.
    pub(super) fn new(
        most: usize,
        inherited: BTreeSet<String>,
        told: impl FnOnce(UnstoredFile) + Send + 'static,
    ) -> Arc<Self> {
        let slots = StoredFiles { inherited, told: Some(Box::new(told)), ..StoredFiles::default() };
        Arc::new(Self { most, slots: Mutex::new(slots) })
    }

    /// Whether a file has a slot, or an earlier server gave it one.
    pub(super) fn has(&self, name: &str) -> bool {
        let slots = self.lock();
        slots.stored.contains(name) || slots.inherited.contains(name)
    }

    /// Takes the names of an earlier server's files that have no slot yet.
    pub(super) fn take_inherited(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.lock().inherited)
    }

    /// Takes all names. Nobody gets a slot any more.
    pub(super) fn end(&self) -> BTreeSet<String> {
        let mut slots = self.lock();
        slots.has_ended = true;
        let mut names = std::mem::take(&mut slots.stored);
        names.append(&mut slots.inherited);
        names
    }

    fn lock(&self) -> MutexGuard<'_, StoredFiles> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a file, and whether an earlier server has stored its descriptor. `None` if all are taken.
    pub(super) fn slot(self: &Arc<Self>, name: String) -> Option<(StoredUnnamed, bool)> {
        let mut slots = self.lock();
        let is_inherited = slots.inherited.remove(&name);
        let is_full = slots.stored.len() + slots.inherited.len() >= self.most;
        if slots.has_ended || is_full && !is_inherited {
            return None;
        }
        slots.stored.insert(name.clone());
        Some((StoredUnnamed { name, of: Arc::clone(self) }, is_inherited))
    }

    pub(super) fn tell(&self, why: UnstoredFile) {
        let told = self.lock().told.take();
        if let Some(told) = told {
            told(why);
        }
    }
}

impl Drop for StoredUnnamed {
    fn drop(&mut self) {
        if self.of.lock().stored.remove(&self.name) {
            // If the manager cannot be notified, the next server drops it.
            let _ = DescriptorStore::remove(&self.name);
        }
    }
}
