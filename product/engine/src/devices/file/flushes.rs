//! The flushes that a file's changes need.
//!
//! Owns: whether a flush is owed, whether the last one failed, whether pages are gone that a flush has to cover.
//! Does not own: the flushing (`writeback::sync`), the device's list of files with a flush owed (`worklist`).
//! Invariants: a change that ends during a flush owes another.

use afflux_device::error::DeviceError;

pub(crate) struct Flushes {
    owed: bool,
    /// Pages were written and evicted before a flush followed.
    evicted: bool,
    failed: bool,
    redirtying: bool,
    /// How many have failed, and how the last did.
    failures: (u64, Option<DeviceError>),
}

impl Flushes {
    /// Earlier changes to the host's file are unknown, so the first sync flushes.
    pub(super) fn new() -> Self {
        Self { owed: true, evicted: false, failed: false, redirtying: false, failures: (0, None) }
    }

    /// Whether the file was written or resized since the last flush of the device for it.
    pub(crate) fn is_owed(&self) -> bool {
        self.owed
    }

    pub(super) fn owe(&mut self) {
        self.owed = true;
    }

    /// A failed flush has to be retried even if nothing else is new.
    pub(crate) fn owe_again(&mut self) {
        self.owed |= self.failed;
    }

    /// A flush begins if one is owed; returns whether it does.
    pub(crate) fn try_begin(&mut self) -> bool {
        std::mem::take(&mut self.owed)
    }

    /// The last flush failed: the writes it covered may not be durable. Pages that it covered are made dirty again.
    pub(crate) fn fails(&mut self) {
        (self.failed, self.redirtying) = (true, true);
    }

    /// The pages that the failed flush covered are dirty again; returns whether some of them were gone.
    pub(crate) fn take_evicted(&mut self) -> bool {
        self.redirtying = false;
        std::mem::take(&mut self.evicted)
    }

    /// Whether pages that the failed flush covered are being made dirty again: until then they stay.
    pub(crate) fn is_redirtying(&self) -> bool {
        self.redirtying
    }

    /// The device has answered a flush with an error.
    pub(crate) fn note_failure(&mut self, error: DeviceError) {
        self.failures = (self.failures.0 + 1, Some(error));
    }

    /// How many have failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.0
    }

    /// The error of the last that failed, if more have than `before`.
    pub(crate) fn failure_since(&self, before: u64) -> Option<DeviceError> {
        self.failures.1.filter(|_| self.failures.0 > before)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    pub(crate) fn forget_failure(&mut self) {
        self.failed = false;
    }

    /// A clean page was evicted; `unflushed`: a flush has to cover it.
    pub(crate) fn note_evicted(&mut self, unflushed: bool) {
        self.evicted |= unflushed;
    }

    pub(crate) fn evicted_are_durable(&mut self) {
        self.evicted = false;
    }
}
