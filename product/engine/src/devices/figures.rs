//! How a device is used, as its requests begin and end.
//!
//! Owns: the usage and its lock, the learned law of readahead, what openings of files may read ahead, whether the
//! device hangs.
//! Does not own: the figures themselves (`usage`), the counts of pages (`charges`), decisions based on them.
//! Invariants: every request that begins ends. An end takes a hang back. A request set aside is not in flight here.

use std::sync::{Mutex, MutexGuard};

use afflux_device::platform::Nanos;
use afflux_device::policy::AtEnd;
use afflux_pages::sync::OwnLines;
use afflux_pages::wait::lock;

use super::busy::TransferKind;
use super::hang::HangState;
use super::usage::{FilePosition, Usage};
use crate::readahead::openings::Openings;
use crate::readahead::window_sizes::{SharedWindowSizes, WindowSizes};

pub(crate) struct Figures {
    usage: OwnLines<Mutex<Usage>>,
    /// How far to read ahead, given the cost of reads.
    read_windows: SharedWindowSizes,
    pub openings: Openings,
    pub(super) hang: HangState,
}

impl Figures {
    pub(super) fn new(is_store: bool) -> Self {
        let usage = Usage::new(is_store);
        let read_windows = SharedWindowSizes::new(usage.window_sizes());
        Self { usage: OwnLines(Mutex::new(usage)), read_windows, openings: Openings::new(), hang: HangState::new() }
    }

    pub(super) fn usage(&self) -> MutexGuard<'_, Usage> {
        lock(&self.usage)
    }

    pub(crate) fn read_windows(&self) -> WindowSizes {
        self.read_windows.get()
    }

    pub(crate) fn request_begins(&self, kind: TransferKind, bytes: u64, now: Nanos) {
        self.usage().begins(kind, bytes, now);
        self.hang.begins();
    }

    /// A call that moves no bytes has ended.
    pub(crate) fn request_ends(&self, kind: TransferKind, bytes: u64, moved: bool, now: Nanos) {
        self.transfer_ends(kind, bytes, moved, (now, now));
    }

    /// A transfer that was submitted at an instant has ended at another.
    pub(crate) fn transfer_ends(&self, kind: TransferKind, bytes: u64, moved: bool, from_to: (Nanos, Nanos)) -> AtEnd {
        let at_end = self.usage().ends(kind, bytes, moved, from_to);
        self.hang.ends();
        at_end
    }

    /// A transfer submitted at an instant is set aside: from now on it does not count as in flight.
    pub(super) fn set_aside(&self, kind: TransferKind, bytes: u64, from_to: (Nanos, Nanos)) {
        self.usage().set_aside(kind, bytes, from_to);
    }

    /// A transfer that was set aside has ended, and moved `bytes` bytes; 0 if it failed.
    pub(crate) fn aside_ends(&self, kind: TransferKind, bytes: u64, now: Nanos) {
        self.usage().aside_ends(kind, bytes, now);
        self.hang.ends();
    }

    /// Since when the device has completed nothing; `None` if nothing is in flight.
    pub(crate) fn stalled_since(&self) -> Option<Nanos> {
        self.usage().clocks.stalled_since()
    }

    /// Stops the watch until a request is in flight; false if one is.
    pub(crate) fn try_unwatch(&self) -> bool {
        self.hang.set_watched(false);
        let idle = self.stalled_since().is_none();
        if !idle {
            self.hang.set_watched(true);
        }
        idle
    }

    /// The device hangs since `since`, and refuses its writers or does not; false if it has gone on.
    pub(crate) fn try_mark_hanging(&self, since: Nanos, refuses: bool) -> bool {
        let hangs = {
            // A request that ends meanwhile resets this afterwards.
            let usage = self.usage();
            let hangs = usage.clocks.stalled_since() == Some(since);
            if hangs {
                self.hang.set(true, refuses);
            }
            hangs
        };
        if hangs && refuses {
            self.hang.wake_waiters();
        }
        hangs
    }

    /// A read from `first` up to a place is about to be submitted. Returns its number of runs: 0 if the device's last
    /// read ended there.
    pub(crate) fn read_begins(&self, first: u64, end: FilePosition, now: Nanos) -> u64 {
        let runs = self.usage().read_begins(first, end, now);
        self.hang.begins();
        runs
    }

    /// A read of `runs` runs has ended, between these two instants, and moved `bytes` bytes; 0 if it failed.
    pub(crate) fn read_ends(&self, runs: u64, bytes: u64, from_to: (Nanos, Nanos)) -> AtEnd {
        let (law, at_end) = self.usage().read_ends((runs, bytes), from_to);
        if let Some(law) = law {
            self.read_windows.set(law);
        }
        self.hang.ends();
        at_end
    }

    /// A write up to a place is about to be submitted; returns whether the write before it ended at `first`.
    pub(crate) fn try_continue_write(&self, first: u64, (file, end): FilePosition) -> bool {
        self.usage().try_continue_write(file, first, end)
    }

    /// An idle write up to a place is about to be submitted; returns whether the one before it ended at `first`.
    pub(crate) fn try_continue_idle_write(&self, first: u64, (file, end): FilePosition) -> bool {
        self.usage().try_continue_idle_write(file, first, end)
    }
}
