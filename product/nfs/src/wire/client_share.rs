//! The memory that all connections of one client hold together.
//!
//! Owns: the sum, one for each party with connections; the tasks to wake when it falls.
//! Does not own: each connection's memory, and the bound (`connection`).
//! Invariants: a connection's part is given back when the connection ends. The list has no more entries than there are
//! connections now and connections that ended since the last one came.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use afflux_frontend::Party;

/// The clients with connections.
#[derive(Default)]
pub(crate) struct Clients(Mutex<BTreeMap<Party, Weak<ClientMemory>>>);

/// The memory of one client's connections.
#[derive(Default)]
struct ClientMemory {
    bytes: AtomicU64,
    /// Connections that wait until the sum falls.
    waiting: Mutex<Vec<Waker>>,
}

/// One connection's part of it.
pub(crate) struct ClientShare {
    client: Arc<ClientMemory>,
    own: u64,
}

impl Clients {
    /// The part of a new connection of this party.
    pub(crate) fn share(&self, party: Party) -> ClientShare {
        let mut clients = lock(&self.0);
        clients.retain(|_, client| client.strong_count() > 0);
        let known = clients.get(&party).and_then(Weak::upgrade);
        let client = known.unwrap_or_default();
        clients.insert(party, Arc::downgrade(&client));
        ClientShare { client, own: 0 }
    }
}

impl ClientShare {
    /// Sets the number of bytes that the connection holds.
    pub(crate) fn hold(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.own, bytes);
        if bytes > before {
            self.client.bytes.fetch_add(bytes - before, Ordering::SeqCst);
        } else if bytes < before {
            self.client.bytes.fetch_sub(before - bytes, Ordering::SeqCst);
            self.wake();
        }
    }

    /// The bytes of the client's other connections.
    pub(crate) fn others(&self) -> u64 {
        self.client.bytes.load(Ordering::SeqCst).saturating_sub(self.own)
    }

    /// Has a task woken when another connection of the client holds less. The caller must check again after this call.
    pub(crate) fn wake_when_less(&self, waker: &Waker) {
        let mut waiting = lock(&self.client.waiting);
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    fn wake(&self) {
        let waiting = std::mem::take(&mut *lock(&self.client.waiting));
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Drop for ClientShare {
    fn drop(&mut self) {
        self.hold(0);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
