//! How long the completions that this thread reports may have been unseen.
//!
//! A computing thread does not look for completions. A thread that waits in the kernel does, but it may be woken late
//! because other threads have its CPU. The kernel counts that as the thread's run delay (/proc/thread-self/schedstat,
//! the second number).
//!
//! Owns: the answer for the completions of one look. Does not own: looking (`reactor`), the calls of worker threads.
//! Invariants: the run delay is read at most once a look, and not at all if nothing asks for it. A thread that the
//! kernel wakes promptly reads it for one look in sixteen, since a reading takes 2 µs. A host without the file has no
//! delays.

use std::cell::{Cell, OnceCell};
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::pread;

/// The look whose completions are reported now.
#[derive(Clone, Copy)]
enum Look {
    /// No look, or completions of a call that has ended at once.
    None,
    /// Not asked for yet; the thread had not looked for this long before.
    Away(u64),
    /// The answer.
    Told(u64),
}

/// The longest mean delay of a prompt thread. It is small beside the fastest disk's read.
const PROMPT_NS: u64 = 10_000;
/// Looks of a prompt thread that are taken for prompt before the thread reads its delay again.
const TAKEN_FOR_PROMPT: u64 = 15;

/// What a thread knows of its run delay.
#[derive(Clone, Copy)]
struct Known {
    /// The delay as last read.
    delay_ns: u64,
    /// Looks since then.
    looks: u64,
    /// Whether the mean delay of the looks before was prompt.
    prompt: bool,
}

impl Known {
    /// Whether the next look is taken for prompt.
    fn next_is_prompt(&mut self) -> bool {
        self.looks += 1;
        self.prompt && self.looks <= TAKEN_FOR_PROMPT
    }

    /// How long the looks since the last reading may have been late, now that the delay has this value.
    fn late_ns(&mut self, delay_ns: u64) -> u64 {
        let late_ns = delay_ns.saturating_sub(self.delay_ns);
        *self = Self { delay_ns, looks: 0, prompt: late_ns <= self.looks * PROMPT_NS };
        if self.prompt { 0 } else { late_ns }
    }
}

thread_local! {
    static LOOK: Cell<Look> = const { Cell::new(Look::None) };
    static KNOWN: Cell<Known> = const { Cell::new(Known { delay_ns: 0, looks: 0, prompt: false }) };
    static SCHEDSTAT: OnceCell<Option<OwnedFd>> = const { OnceCell::new() };
}

/// While this lives, the thread reports the completions of one look.
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
        Look::Told(ns) => ns,
        Look::Away(away_ns) => {
            let mut known = KNOWN.get();
            let late_ns = if known.next_is_prompt() { 0 } else { known.late_ns(run_delay_ns()) };
            KNOWN.set(known);
            LOOK.set(Look::Told(away_ns + late_ns));
            away_ns + late_ns
        }
    }
}

/// The total time that this thread was ready and had no CPU.
fn run_delay_ns() -> u64 {
    let delay_ns = SCHEDSTAT.try_with(|file| {
        let open = || openat(CWD, c"/proc/thread-self/schedstat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok();
        let mut text = [0; 96];
        let count = pread(file.get_or_init(open).as_ref()?, &mut text, 0).ok()?;
        second_number(text.get(..count)?)
    });
    delay_ns.ok().flatten().unwrap_or(0)
}

fn second_number(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
