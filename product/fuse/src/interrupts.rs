//! Calls that wait and can be interrupted.
//!
//! Owns: the list of them, by the request's number.
//! Does not own: when a call is interrupted (`answering`).
//! Invariants: a call is in the list while its future lives, and is taken out by its end or its drop.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::{AbortHandle, Abortable, Aborted};

#[derive(Default)]
pub(crate) struct Interrupts(Mutex<BTreeMap<u64, AbortHandle>>);

impl Interrupts {
    /// Runs a call, until it is interrupted.
    pub(crate) async fn run<T>(&self, unique: u64, call: impl Future<Output = T>) -> Result<T, Aborted> {
        let (handle, registration) = AbortHandle::new_pair();
        self.lock().insert(unique, handle);
        let _listed = Listed { interrupts: self, unique };
        Abortable::new(call, registration).await
    }

    /// Interrupts a call, if it still waits.
    pub(crate) fn interrupt(&self, unique: u64) {
        let call = self.lock().remove(&unique);
        if let Some(call) = call {
            call.abort();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Listed<'a> {
    interrupts: &'a Interrupts,
    unique: u64,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.interrupts.lock().remove(&self.unique);
    }
}
