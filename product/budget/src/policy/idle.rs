//! Writing behind: files written while a device would idle, and how rewriting is distinguished from writing.
//!
//! A file that has been left alone for q is written. If the writes turn out useless, because the pages are overwritten
//! soon after, or would have been, q doubles. If they were useful, or nobody writes to the file any more, q halves. A
//! file with a q of at least a second is *hot*: then the background passes it over, too, until the backlog reaches the
//! point where pauses begin. The flusher also checks files while it writes others, so that a device that never idles
//! has hot files like any other.
//!
//! Owns: q and its bounds, when a device is idle, the size of requests. Does not own: observing and looking at files
//! (the engine).
//! Invariants: pure. Readers, callers that wait for a flush, and throttled writers come first: for a moment after each,
//! the policy waits for the next. Hot files are not passed over if that would prevent others from writing.

use afflux_device::platform::Nanos;
use afflux_device::policy::{DirtyFiles, FlushSlice, Idle, IdleWriteRule, Next, Rewrites, View};

use super::rates::Rates;
use crate::{Cost, Knobs, MILLISECOND};

/// Shortest and first q.
const QUIET_NS_MIN: u64 = 200 * MILLISECOND;
/// Longest q, where data never expires.
const QUIET_NS_MAX: u64 = 30_000 * MILLISECOND;
/// From this q on a file is hot.
const HOT_NS: u64 = 1_000 * MILLISECOND;
/// q doubles above one useless page write in this many, and halves below one in [`RARE_PART`].
const OFTEN_PART: u64 = 8;
const RARE_PART: u64 = 32;
/// A verdict on writes needs a second, or so many useless page writes.
const JUDGED_NS: u64 = 1_000 * MILLISECOND;
const JUDGED_PAGES: u64 = 16;
/// A file without writes for so many q is no longer judged by its past.
const FORGOTTEN_QUIETS: u64 = 8;
/// Time after a read or a flush in which the next one is waited for.
const REST_NS: u64 = 20 * MILLISECOND;
/// A request is worth the time of so many runs; the next request follows without a seek.
const REQUEST_RUNS: Cost = 4;
/// Least time of a request.
const REQUEST_NS_MIN: Cost = 2 * MILLISECOND;

/// The flusher's next step while nothing is due.
pub(super) fn next(view: &View, files: &dyn DirtyFiles, knobs: &Knobs) -> Next {
    let (device, now) = (view.device(), view.now);
    let Some(look_at) = files.look_at().filter(|_| knobs.idle) else { return Next::WaitUntil(Nanos::NEVER) };
    if look_at > now {
        return Next::WaitUntil(look_at);
    }
    if device.payers_waiting > 0 {
        return Next::WaitUntil(now.after(QUIET_NS_MIN));
    }
    let waited_for = device.reads_in_flight > 0 || device.calls_in_flight > 0;
    let rests_until = device.waited_for_at.map_or(Nanos(0), |at| at.after(REST_NS));
    match (waited_for, rests_until) {
        (true, _) => Next::WaitUntil(now.after(REST_NS)),
        (false, until) if until > now => Next::WaitUntil(until),
        _ => Next::FlushSlice(FlushSlice::Idle { now: view.now }),
    }
}

/// How an idle file is written.
pub(super) fn terms(rates: &Rates, request_bytes: u64) -> Idle {
    let most_ns = rates.in_flight_ns / 4;
    let ns = rates.alone.run_ns.saturating_mul(REQUEST_RUNS).clamp(REQUEST_NS_MIN.min(most_ns), most_ns);
    Idle { look_ns: QUIET_NS_MIN / 4, request_bytes: rates.bytes_in(ns).min(request_bytes) }
}

/// q of a file, and whether it is hot.
pub(super) fn idle_write_rule(view: &View, before: IdleWriteRule, seen: &Rewrites) -> Option<IdleWriteRule> {
    let most_ns = view.knobs.expire_ns.clamp(QUIET_NS_MIN, QUIET_NS_MAX);
    let within = |ns: u64| {
        let ns = ns.clamp(QUIET_NS_MIN, most_ns);
        IdleWriteRule { ns, hot: ns >= HOT_NS }
    };
    let Rewrites { fresh, again, over_ns } = *seen;
    if before.ns == 0 {
        return Some(within(0));
    }
    if fresh + again == 0 {
        let forgotten = over_ns / FORGOTTEN_QUIETS >= before.ns;
        return forgotten.then(|| within(before.ns / 2));
    }
    if again.saturating_mul(OFTEN_PART) > fresh {
        let judged = over_ns >= JUDGED_NS || again >= JUDGED_PAGES;
        return judged.then(|| within(before.ns.saturating_mul(2)));
    }
    if over_ns < JUDGED_NS {
        return None;
    }
    Some(if again.saturating_mul(RARE_PART) < fresh { within(before.ns / 2) } else { before })
}

#[cfg(test)]
mod tests;
