//! What devices and CPUs keep for a kernel's law.
//!
//! Owns: the allowance of a CPU, the end of congestion. Does not own: their use (`writers`, `flush`).
//! Invariants: nothing here changes under a policy of Afflux.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sync::OwnLines;
use crate::wait::WaitQueue;

/// The state that all devices share.
pub(crate) struct OldKernelState {
    /// Pages that all payers of a CPU may dirty before a decision about one of them; 0 until the machine is known.
    cpu_pages: AtomicU64,
    /// How often a congested queue has cleared.
    congestion_ends: OwnLines<AtomicU64>,
    congestion_queue: WaitQueue,
}

impl OldKernelState {
    pub(crate) fn new() -> Self {
        Self {
            cpu_pages: AtomicU64::new(0),
            congestion_ends: OwnLines(AtomicU64::new(0)),
            congestion_queue: WaitQueue::new(),
        }
    }

    pub(super) fn cpu_pages(&self) -> u64 {
        self.cpu_pages.load(Ordering::Relaxed)
    }

    pub(super) fn set_cpu_pages(&self, pages: u64) {
        if pages != self.cpu_pages() {
            self.cpu_pages.store(pages, Ordering::Relaxed);
        }
    }

    /// Waits until a device's queue next stops being congested.
    pub(super) async fn congestion_clears(&self) {
        let ends = self.congestion_ends.load(Ordering::Acquire);
        self.congestion_queue.until(|| (self.congestion_ends.load(Ordering::Acquire) != ends).then_some(())).await;
    }

    /// A device's queue has stopped being congested.
    pub(crate) fn congestion_cleared(&self) {
        self.congestion_ends.fetch_add(1, Ordering::AcqRel);
        self.congestion_queue.wake_all();
    }
}

/// Pages dirtied on a CPU since a law was last asked there.
#[derive(Default)]
pub(crate) struct CpuAccount(Cell<u64>);

impl CpuAccount {
    /// Notes pages dirtied on this CPU; returns their number since [`CpuAccount::pay`].
    pub(super) fn owe(&self, pages: u64) -> u64 {
        self.0.update(|unpaid| unpaid.saturating_add(pages));
        self.0.get()
    }

    pub(super) fn pay(&self) {
        self.0.set(0);
    }
}
