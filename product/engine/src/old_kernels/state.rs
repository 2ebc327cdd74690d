//! What devices and CPUs keep for a kernel's law.
//!
//! Owns: the allowance of a CPU. Does not own: its use (`writers`).
//! Invariants: nothing here changes under a policy of Afflux.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state that all devices share.
#[derive(Default)]
pub(crate) struct OldKernelState {
    /// Pages that all payers of a CPU may dirty before a decision about one of them; 0 until the machine is known.
    cpu_pages: AtomicU64,
}

impl OldKernelState {
    pub(super) fn cpu_pages(&self) -> u64 {
        self.cpu_pages.load(Ordering::Relaxed)
    }

    pub(super) fn set_cpu_pages(&self, pages: u64) {
        if pages != self.cpu_pages() {
            self.cpu_pages.store(pages, Ordering::Relaxed);
        }
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
