//! The buffers of messages.
//!
//! Owns: a thread's buffer, the messages that calls take along, the spare buffers.
//! Does not own: when a call waits (`session`).
//! Invariants: a short message is copied, so that its call holds little. At most [`SPARES_MAX`] buffers wait for use.
//! Any other buffer holds a large message that waits, and the machine bounds their bytes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_frontend::MESSAGE_COPIED_MAX;

const SPARES_MAX: usize = 8;

/// Buffers of one size.
pub(super) struct Buffers {
    bytes: usize,
    spares: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { bytes, spares: Mutex::default() })
    }

    pub(super) fn take(&self) -> Vec<u8> {
        // Not zeros: the kernel maps no page for a process that is being killed, and would fail the request (`device`).
        self.lock().pop().unwrap_or_else(|| vec![1; self.bytes])
    }

    /// The first `len` bytes of a thread's buffer, for a call that outlives the thread's turn.
    pub(super) fn message(self: &Arc<Self>, buffer: &mut Vec<u8>, len: usize) -> PooledMessage {
        if len <= MESSAGE_COPIED_MAX {
            return PooledMessage { buffer: buffer[..len].to_vec(), len, of: None };
        }
        let full = std::mem::replace(buffer, self.take());
        PooledMessage { buffer: full, len, of: Some(Arc::clone(self)) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message that a call keeps.
pub(super) struct PooledMessage {
    buffer: Vec<u8>,
    len: usize,
    of: Option<Arc<Buffers>>,
}

impl AsRef<[u8]> for PooledMessage {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl Drop for PooledMessage {
    fn drop(&mut self) {
        let Some(of) = self.of.take() else { return };
        let mut spares = of.lock();
        if spares.len() < SPARES_MAX {
            spares.push(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests;
