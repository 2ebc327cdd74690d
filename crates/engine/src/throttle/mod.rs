//! Throttling: how long a writer waits, by which law.
//!
//! Owns: which law is in force and what it remembers of all devices together; the seam that laws
//! stand behind (`law`), the snapshot (`view`), the calls (`balance`), the tally of pauses (`pauses`).
//! Does not own: the laws of kernels (`linux-policies`), the charge for dirty pages (`dirty`).
//! Invariants: a law is asked when a writer's allowance is used up, never on a hit; whatever it says,
//! dirty pages leave frames to readers.

pub(crate) mod balance;
mod law;
pub(crate) mod pauses;
mod view;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::cache::wait::lock;
use crate::rare::Looks;
use crate::writeback::driver::FlushDriver;
pub(crate) use law::Kept;
pub use law::{AnyLaw, Decision, EXCEEDED_PAGES, Law, LimitPages, Memory, Pace, Pause, PauseCause, Then, WokenBy};
pub use pauses::PauseStatus;
pub use view::{DeviceCounts, Global, GlobalCounts, KnobValues, Reads, TaskCounts, View};

/// How writers are throttled.
#[derive(Clone, Default)]
pub enum Throttle {
    /// Each device has an equal part of the dirty limit; a writer over it waits in order of asking.
    #[default]
    EqualParts,
    /// A law decides.
    Law(Arc<dyn AnyLaw>),
}

/// Who does background writeback.
#[derive(Clone, Default)]
pub enum Driver {
    /// One flusher a device.
    #[default]
    FlusherEach,
    /// Somebody else, over the same primitives. The devices' flushers still serve syncs, second
    /// tries, drains and those who are short of frames.
    Own(Arc<dyn FlushDriver>),
}

/// What an engine is made with; for one engine only, since a driver keeps state.
#[derive(Clone, Default)]
pub struct Policies {
    /// How writers are throttled.
    pub throttle: Throttle,
    /// Who does background writeback.
    pub driver: Driver,
}

/// The law in force, with what it remembers of all devices together.
pub(crate) struct Ruling {
    pub(crate) law: Arc<dyn AnyLaw>,
    shared: Mutex<Kept>,
    /// [`Pace::cpu_pages`].
    cpu_pages: AtomicU64,
    pub(crate) looks: Looks,
}

impl Ruling {
    pub(crate) fn new(law: Arc<dyn AnyLaw>) -> Self {
        let shared = Mutex::new(law.new_shared());
        // Before anything is known of the machine the first pages of a CPU are asked about.
        Self { law, shared, cpu_pages: AtomicU64::new(0), looks: Looks::new() }
    }

    /// Asks the law something about a device.
    pub(crate) fn ask<T>(
        &self,
        device: &Mutex<Kept>,
        question: impl FnOnce(&dyn AnyLaw, &mut Kept, &mut Kept) -> T,
    ) -> T {
        self.looks.note();
        let mut device = lock(device);
        let mut shared = lock(&self.shared);
        question(&*self.law, &mut device, &mut shared)
    }

    fn cpu_pages(&self) -> u64 {
        self.cpu_pages.load(Ordering::Relaxed)
    }

    fn set_cpu_pages(&self, pages: u64) {
        if pages != self.cpu_pages() {
            self.cpu_pages.store(pages, Ordering::Relaxed);
        }
    }
}
