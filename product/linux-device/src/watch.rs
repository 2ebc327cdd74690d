//! How long the completions that this thread reports may have been unseen.
//!
//! A computing thread does not check for completions. A thread that waits in the kernel does, but it may be woken late
//! because other threads have its CPU. The kernel counts that as the thread's run delay (/proc/thread-self/schedstat,
//! the second number).
//!
//! Owns: the answer for the completions of one check. Does not own: checking (`reactor`), the calls of worker threads.
//! Invariants: the run delay is read at most once in [`READ_NS`], and not at all if nothing asks for it. A host without
//! the file has no delays.

use std::cell::{Cell, OnceCell};
use std::os::fd::OwnedFd;

use afflux_engine::Nanos;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::pread;

use crate::clock;

/// Time between two readings of the run delay. A reading takes 2 µs, an eighth of a small read's processor time. A slow
/// device's completions are farther apart, so each of them has a reading of its own.
const READ_NS: u64 = 10 * Nanos::MILLISECOND;

/// The check whose completions are reported now.
#[derive(Clone, Copy)]
enum Look {
    /// No check, or completions of a call that has ended at once.
    None,
    /// Not asked for yet; the thread had not looked for this long before.
    Away(u64),
    Reported(u64),
}

thread_local! {
    static LOOK: Cell<Look> = const { Cell::new(Look::None) };
    static DELAYS: Cell<RunDelays> = const { Cell::new(RunDelays { total_ns: 0, read: Nanos(0), looks: 0, mean_ns: 0 }) };
    static SCHEDSTAT: OnceCell<Option<OwnedFd>> = const { OnceCell::new() };
}

/// The run delay of this thread, as far as it was read.
#[derive(Clone, Copy)]
struct RunDelays {
    /// At the last reading.
    total_ns: u64,
    /// When that was.
    read: Nanos,
    /// Checks since then that were asked about.
    looks: u64,
    /// The delay of a check between the last two readings.
    mean_ns: u64,
}

impl RunDelays {
    /// The delay of a check at `now`; `total_ns` reads the run delay.
    fn of_look(&mut self, now: Nanos, total_ns: impl FnOnce() -> u64) -> u64 {
        self.looks += 1;
        if now.since(self.read) >= READ_NS {
            let total_ns = total_ns();
            let mean_ns = total_ns.saturating_sub(self.total_ns) / self.looks;
            *self = Self { total_ns, read: now, looks: 0, mean_ns };
        }
        self.mean_ns
    }
}

/// While this lives, the thread reports the completions of one check.
pub(crate) struct ReportedLook;

impl ReportedLook {
    /// The thread had not looked for `away_ns` before it found them.
    pub(crate) fn after(away_ns: u64) -> Self {
        LOOK.set(Look::Away(away_ns));
        Self
    }
}

impl Drop for ReportedLook {
    fn drop(&mut self) {
        LOOK.set(Look::None);
    }
}

/// How long completions may have been unseen until now.
pub(crate) fn unwatched_ns() -> u64 {
    match LOOK.get() {
        Look::None => 0,
        Look::Reported(ns) => ns,
        Look::Away(away_ns) => {
            let mut delays = DELAYS.get();
            let ns = away_ns + delays.of_look(clock::monotonic(), run_delay_ns);
            DELAYS.set(delays);
            LOOK.set(Look::Reported(ns));
            ns
        }
    }
}

/// The total time that this thread was ready and had no CPU.
fn run_delay_ns() -> u64 {
    let delay_ns = SCHEDSTAT.try_with(|file| {
        let open = || openat(CWD, c"/proc/thread-self/schedstat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok();
        let mut text = [0; 96];
        let count = pread(file.get_or_init(open).as_ref()?, &mut text, 0).ok()?;
        second_field(text.get(..count)?)
    });
    delay_ns.ok().flatten().unwrap_or(0)
}

fn second_field(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
