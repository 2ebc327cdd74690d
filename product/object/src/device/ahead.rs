//! The turn of reads ahead at the store.
//!
//! Calls that begin together share the bandwidth, so they also end together. If their reader alone began the next ones,
//! the store would idle for a round trip after each such end. Therefore more is read ahead than is in flight, and each
//! piece that comes makes room for the next call. So calls begin as evenly as bytes come.
//!
//! Owns: how many bytes are read ahead at once, and the order of those that wait.
//! Does not own: how far ahead of a reader is read (the engine).
//! Invariants: reads ahead begin in their order. A read for which a caller waits does not come here. A read that waits
//! is not given up: its place would be lost.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot::{self, Receiver, Sender};

use crate::seams::Arrivals;

/// The most bytes in flight: two of the three windows that are ahead of a stream.
const BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct ReadsAhead(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    bytes: u64,
    waiting: VecDeque<(u64, Sender<()>)>,
}

/// A read ahead in flight.
pub(super) struct AheadRead(Arc<Remainder>);

struct Remainder {
    reads: Arc<ReadsAhead>,
    /// Bytes that have not come.
    bytes: AtomicU64,
}

impl AheadRead {
    /// Bytes that come make room for others at once.
    pub(super) fn arrivals(&self) -> Arrivals {
        let left = Arc::clone(&self.0);
        Arrivals::to(move |bytes| left.come(bytes))
    }
}

impl Remainder {
    /// A repeated GET brings bytes again, which make no room.
    fn come(&self, bytes: u64) {
        let less = |left: u64| Some(left - left.min(bytes));
        if let Ok(left) = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            self.reads.end(left.min(bytes));
        }
    }
}

impl Drop for AheadRead {
    fn drop(&mut self) {
        self.0.come(u64::MAX);
    }
}

impl ReadsAhead {
    /// Waits for the turn of a read of so many bytes.
    pub(super) async fn begin(self: &Arc<Self>, bytes: u64) -> AheadRead {
        if let Some(told) = self.begins(bytes) {
            // The sender lives until the turn comes.
            let _ = told.await;
        }
        AheadRead(Arc::new(Remainder { reads: Arc::clone(self), bytes: AtomicU64::new(bytes) }))
    }

    /// Begins a read if there is room and no other waits. Otherwise it waits to be told.
    fn begins(&self, bytes: u64) -> Option<Receiver<()>> {
        let mut state = self.state();
        if state.waiting.is_empty() && state.try_take(bytes) {
            return None;
        }
        let (sender, told) = oneshot::channel();
        state.waiting.push_back((bytes, sender));
        Some(told)
    }

    /// So many bytes are no longer in flight. The next reads begin.
    fn end(&self, bytes: u64) {
        let mut state = self.state();
        state.bytes -= bytes;
        while let Some(&(next, _)) = state.waiting.front()
            && state.try_take(next)
        {
            if let Some((_, sender)) = state.waiting.pop_front() {
                let _ = sender.send(());
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes room for a read. A read alone always has it.
    fn try_take(&mut self, bytes: u64) -> bool {
        let fits = self.bytes == 0 || self.bytes + bytes <= BYTES_MAX;
        if fits {
            self.bytes += bytes;
        }
        fits
    }
}
