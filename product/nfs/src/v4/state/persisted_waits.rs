//! Owners that wait for a lock, as a later server finds them.
//!
//! Owns: the numbers of their records, the end of a record.
//! Does not own: the queue (the volume), the notice (`back_channel`), the form of a record (`persisted`).
//! Invariants: a wait is persisted from the refusal of its LOCK until its owner has left the queue and the client has
//! answered the notice. A later server finds waits in their order. A wait beyond its party's quota is not
//! persisted: after a kill its client asks when its own patience ends.

use std::sync::{Arc, Mutex, PoisonError};

use afflux_frontend::{Party, PersistedItem};

use super::persisted::{Memory, Record, wait_bytes};

/// The record of a wait, which is removed with the last user of this.
pub(crate) struct PersistedWait {
    memory: Memory,
    party: Party,
    item: Mutex<PersistedItem>,
}

impl Drop for PersistedWait {
    fn drop(&mut self) {
        let item = self.item.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.memory.remove(item, self.party);
    }
}

/// The numbers of waits.
pub(crate) struct PersistedWaits {
    memory: Memory,
    next: u32,
}

impl PersistedWaits {
    /// None yet.
    pub(crate) fn new(memory: &Memory) -> Self {
        Self { memory: Memory::clone(memory), next: 0 }
    }

    /// A wait of a party that is not persisted yet.
    pub(crate) fn begin(&self, party: Party) -> Arc<PersistedWait> {
        self.with(party, PersistedItem::default())
    }

    /// Persists a wait, if its party has space.
    pub(crate) fn keep(&mut self, wait: &PersistedWait, record: &Record<'_>) {
        let Record::Wait { owner, .. } = record else { return };
        let mut item = wait.item.lock().unwrap_or_else(PoisonError::into_inner);
        if self.memory.is_persistent() && self.memory.check_quota(&item, wait.party, wait_bytes(owner)).is_ok() {
            self.memory.put(self.next, &mut item, wait.party, record);
            self.next = self.next.wrapping_add(1);
        }
    }

    /// A wait of an earlier server, under its number.
    pub(crate) fn restore(&mut self, number: u32, party: Party, item: PersistedItem) -> Arc<PersistedWait> {
        self.memory.found(&item, party);
        self.next = self.next.max(number.wrapping_add(1));
        self.with(party, item)
    }

    fn with(&self, party: Party, item: PersistedItem) -> Arc<PersistedWait> {
        Arc::new(PersistedWait { memory: Memory::clone(&self.memory), party, item: Mutex::new(item) })
    }
}
