//! Looks for a device that completes nothing, or keeps some requests.
//!
//! Owns: one task a device, if the policy sets time limits; how much of a silence was watched.
//! Does not own: the time limits (`policy`), the consequences (`devices::hang`), the requests to set aside (`overdue`).
//! Invariants: only watched time counts. A clock that jumps, or a process that was stopped, makes no device hang: its
//! completions may not have been reported yet. While nothing is in flight nothing wakes up.

use std::sync::Arc;

use afflux_device::platform::{Nanos, Platform};
use afflux_device::policy::HangLimits;

use super::overdue::OverdueWatch;
use crate::base::Base;
use crate::devices::DeviceState;
use crate::trace::EngineEvent;

/// Time between two looks while requests are in flight.
const LOOK_NS: u64 = 500 * Nanos::MILLISECOND;

/// The watched part of a silence.
#[derive(Default)]
struct HangWatch {
    looked: Nanos,
    since: Option<Nanos>,
    watched_ns: u64,
    /// The watched part of the time between the last two looks.
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
        if device.figures.try_unwatch() {
            device.hang().look().wait_or(std::future::pending()).await;
        }
        let (mut watch, mut said) = (HangWatch::begins(base.now()), None);
        let mut overdue = OverdueWatch::begins(&device);
        while said.is_some() || device.figures.stalled_since().is_some() {
            device.hang().look().wait_or(base.sleep_until(base.now().after(LOOK_NS))).await;
            look(&base, &device, (&mut watch, &mut overdue), &mut said);
        }
    }
}

/// `said`: the last report: since when it has hung, and whether it refuses.
fn look<P: Platform>(
    base: &Base<P>,
    device: &Arc<DeviceState>,
    (watch, overdue): (&mut HangWatch, &mut OverdueWatch),
    said: &mut Option<(Nanos, bool)>,
) {
    let (now, since) = (base.now(), device.figures.stalled_since());
    let watched_ns = watch.look(now, since);
    let oldest_ns = overdue.look(device, watch.passed_ns);
    let HangLimits { stalled_ns, refused_ns } = match watched_ns.max(oldest_ns) {
        0..LOOK_NS => HangLimits::UNNOTICED,
        _ => base.ask(device, |policy, view, own, _| policy.hang_limits(view, own)),
    };
    let hangs =
        since.filter(|_| watched_ns >= stalled_ns.min(refused_ns)).map(|since| (since, watched_ns >= refused_ns));
    let hangs = hangs.filter(|(since, refuses)| device.figures.try_mark_hanging(*since, *refuses));
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
        overdue.set_aside(base, device, overdue_ns);
    }
}

#[cfg(test)]
mod tests;
