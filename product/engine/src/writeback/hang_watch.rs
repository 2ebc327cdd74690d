//! Checks for a device that completes nothing, and for requests that a device holds for too long, which are set aside.
//!
//! Requests are set aside only if another request or a writer waits. A device may complete nothing at all because it
//! hangs, or because all of its requests wait for such files. The next requests find out, and get less time than the
//! first ones.
//!
//! Owns: one task a device, if the policy sets time limits; how much of a silence was watched.
//! Does not own: the time limits (policies), the consequences (`devices::hang`), the effect on accounts
//! (`devices::file`), for how long each request was seen in its device (`devices::in_flight`).
//! Invariants: only watched time counts. A clock that jumps, or a process that was stopped, makes no device hang: its
//! completions may not have been reported yet. While nothing is in flight nothing wakes up. A check of requests
//! allocates nothing.

use std::sync::Arc;

use afflux_device::platform::{Nanos, Platform};
use afflux_device::policy::HangLimits;

use crate::base::Base;
use crate::devices::DeviceState;
use crate::devices::in_flight::RequestInFlight;
use crate::dirty;
use crate::trace::EngineEvent;

/// Time between two checks while requests are in flight.
const LOOK_NS: u64 = 500 * Nanos::MILLISECOND;

/// The watched part of a silence.
#[derive(Default)]
struct HangWatch {
    looked: Nanos,
    since: Option<Nanos>,
    watched_ns: u64,
    /// The watched part of the time between the last two checks.
    passed_ns: u64,
}

impl HangWatch {
    fn begins(now: Nanos) -> Self {
        Self { looked: now, ..Self::default() }
    }

    /// The device has been silent since `since`, if at all; returns how much of that was watched.
    fn look(&mut self, now: Nanos, since: Option<Nanos>) -> u64 {
        let passed_ns = now.since(std::mem::replace(&mut self.looked, now));
        if self.since != since {
            (self.since, self.watched_ns) = (since, 0);
        }
        self.passed_ns = if passed_ns <= 2 * LOOK_NS { passed_ns } else { 0 };
        if let Some(since) = since {
            self.watched_ns += self.passed_ns.min(now.since(since));
        }
        self.watched_ns
    }
}

pub(super) async fn watch<P: Platform>(base: Base<P>, device: Arc<DeviceState>) {
    loop {
        if device.in_flight.try_unwatch() {
            device.hang().look().wait_or(std::future::pending()).await;
        }
        let (mut watch, mut said) = (HangWatch::begins(base.now()), None);
        while said.is_some() || device.in_flight.stalled_since().is_some() {
            device.hang().look().wait_or(base.sleep_until(base.now().after(LOOK_NS))).await;
            look(&base, &device, &mut watch, &mut said);
        }
    }
}

/// `said`: the last report: since when it has hung, and whether it refuses.
fn look<P: Platform>(
    base: &Base<P>,
    device: &Arc<DeviceState>,
    watch: &mut HangWatch,
    said: &mut Option<(Nanos, bool)>,
) {
    let (now, since) = (base.now(), device.in_flight.stalled_since());
    let watched_ns = watch.look(now, since);
    let oldest_ns = device.in_flight.watched(watch.passed_ns);
    let HangLimits { stalled_ns, refused_ns } = match watched_ns.max(oldest_ns) {
        0..LOOK_NS => HangLimits::UNNOTICED,
        _ => base.ask(device, |policy, view, own, _| policy.hang_limits(view, own)),
    };
    let hangs =
        since.filter(|_| watched_ns >= stalled_ns.min(refused_ns)).map(|since| (since, watched_ns >= refused_ns));
    let hangs = hangs.filter(|(since, refuses)| device.in_flight.try_mark_hanging(*since, *refuses));
    if let Some((since, _)) = said.filter(|(before, _)| hangs.is_none_or(|(since, _)| since != *before)) {
        base.trace_device(Some(device.id()), || EngineEvent::DeviceGoesOn { ns: now.since(since) });
        *said = None;
    }
    if let Some((since, refuses)) = hangs.filter(|hangs| *said != Some(*hangs)) {
        base.trace_device(Some(device.id()), || EngineEvent::DeviceHangs { ns: now.since(since), refuses });
    }
    *said = hangs;
    let overdue_ns = if hangs.is_some() { LOOK_NS } else { stalled_ns };
    if oldest_ns >= overdue_ns {
        set_overdue_aside(base, device, overdue_ns);
    }
}

/// Sets the requests aside that were seen for `most_ns` and longer, if another request waits.
fn set_overdue_aside<P: Platform>(base: &Base<P>, device: &Arc<DeviceState>, most_ns: u64) {
    // A store's request is late because the store gets too many.
    if device.limits().is_store() || !device.is_waited_for() {
        return;
    }
    let (mut any, mut from) = (false, 0);
    while let Some((number, request)) = device.in_flight.overdue(from, most_ns) {
        any |= try_set_aside(base, device, number, &request);
        from = number + 1;
    }
    if any {
        let moment = base.moment_at(base.now());
        dirty::apply_failed(&base.devices, device, moment);
        base.devices.refresh_bounds(device, moment);
        if device.hang().is_stalled() {
            // One of them may find out whether only these files' writes do not end.
            device.admission().device_changed();
        }
    }
}

fn try_set_aside<P: Platform>(
    base: &Base<P>,
    device: &Arc<DeviceState>,
    number: u64,
    request: &RequestInFlight,
) -> bool {
    // The request may have ended since, and its file may be gone.
    let file = base.devices.files.get(request.file).filter(|file| Arc::ptr_eq(&file.device, device));
    let (Some(file), now) = (file, base.now()) else { return false };
    if !file.try_set_aside(number, now) {
        return false;
    }
    device.admission().file_changed(request.file);
    base.trace_file(now, &file, None, || EngineEvent::SetAside { ns: now.since(request.submitted) });
    true
}

#[cfg(test)]
mod tests;
