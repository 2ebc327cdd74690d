//! Reports events as they happen, for a limited time.
//!
//! Owns: when to look for events, and which of them the time covers.
//! Does not own: the events and their form (`running`).
//! Invariants: every event up to the end is reported or counted as lost, and none after it. A listener hears something
//! at least once a second.

#[cfg(test)]
mod tests;

use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// Most events that are taken at a time, and so are in one reply.
const TAKEN_MAX: usize = 1024;

/// Between two looks for events.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Longest silence; a message shows whether the listener is gone.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Takes events and reports them until the time is over. `take` returns at most that many events, and the number of
/// events lost before them. `at_ns` returns the time of an event by the clock `now`.
pub(crate) fn stream_events<T>(
    now: &dyn Fn() -> u64,
    lasting_ns: Option<u64>,
    take: &mut dyn FnMut(usize) -> (Vec<T>, u64),
    at_ns: &dyn Fn(&T) -> u64,
    tell: &mut dyn FnMut(Vec<T>, u64) -> io::Result<()>,
) -> io::Result<()> {
    let end_ns = lasting_ns.map_or(u64::MAX, |ns| now().saturating_add(ns));
    let mut told_at = None::<Instant>;
    loop {
        // The clock is read before the look, so that the look finds every event up to the end.
        let now_ns = now();
        let (mut events, lost) = take(TAKEN_MAX);
        let is_all = events.len() < TAKEN_MAX || events.last().is_none_or(|last| at_ns(last) > end_ns);
        events.retain(|event| at_ns(event) <= end_ns);
        if lost > 0 || !events.is_empty() || told_at.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            tell(events, lost)?;
            told_at = Some(Instant::now());
        }
        if is_all && now_ns >= end_ns {
            return Ok(());
        }
        if is_all {
            thread::sleep(LOOK_EVERY.min(Duration::from_nanos(end_ns - now_ns)));
        }
    }
}
