//! The objects of a store, and changes under way to it.
//!
//! Owns: names and bytes; changes that were sent and have neither taken effect nor failed.
//! Does not own: the time of an effect (`store`).
//! Invariants: they outlive the world of a client, as a store outlives a machine. A change takes effect at most once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_object::PutOutcome;
use bytes::Bytes;

/// A change under way.
#[derive(Clone, Debug)]
pub(super) enum ObjectChange {
    Create(String, Bytes),
    Delete(String),
}

#[derive(Debug, Default)]
struct Inside {
    objects: BTreeMap<String, Bytes>,
    under_way: BTreeMap<u64, ObjectChange>,
    sent: u64,
}

/// The objects. A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct ObjectContents(Arc<Mutex<Inside>>);

impl ObjectContents {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of an object.
    pub fn get(&self, name: &str) -> Option<Bytes> {
        self.lock().objects.get(name).cloned()
    }

    /// The names with a prefix, in order.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        self.lock().objects.keys().filter(|name| name.starts_with(prefix)).cloned().collect()
    }

    /// Sends a change; it is under way until it takes effect.
    pub(super) fn send(&self, change: ObjectChange) -> u64 {
        let mut inside = self.lock();
        inside.sent += 1;
        let number = inside.sent;
        inside.under_way.insert(number, change);
        number
    }

    /// The change takes effect now, unless it has done so.
    pub(super) fn take_effect(&self, number: u64) -> Option<PutOutcome> {
        let mut inside = self.lock();
        match inside.under_way.remove(&number)? {
            ObjectChange::Create(name, _) if inside.objects.contains_key(&name) => Some(PutOutcome::Present),
            ObjectChange::Create(name, bytes) => {
                inside.objects.insert(name, bytes);
                Some(PutOutcome::New)
            }
            ObjectChange::Delete(name) => {
                inside.objects.remove(&name);
                Some(PutOutcome::New)
            }
        }
    }

    /// As [`Self::take_effect`], for a change whose sender gets no answer.
    pub(super) fn apply(&self, number: u64) {
        let _ = self.take_effect(number);
    }

    /// The change never takes effect.
    pub(super) fn lose(&self, number: u64) {
        self.lock().under_way.remove(&number);
    }

    /// Changes whose sender's world has ended.
    pub(super) fn under_way(&self) -> Vec<u64> {
        self.lock().under_way.keys().copied().collect()
    }
}
