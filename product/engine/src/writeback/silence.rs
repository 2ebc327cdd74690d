//! The look for a device that completes nothing.
//!
//! Owns: one task a device, where the policy says how long is too long; how much of a silence was watched.
//! Does not own: how long that is (`policy`), what follows (`devices::silence`).
//! Invariants: only time that was watched counts. A clock that jumps, or a process that was stopped, makes no device
//! hang: what completed meanwhile may not have been told yet. While nothing is in flight nothing wakes up.

use std::sync::Arc;

use crate::base::Base;
use crate::devices::state::DeviceState;
use crate::platform::{Nanos, Platform};
use crate::policy::Silence;
use crate::trace::Event;

/// Between two looks while something is in flight.
const LOOK_NS: u64 = 500 * Nanos::MILLISECOND;

/// What was watched of a silence.
#[derive(Default)]
struct Watch {
    looked: Nanos,
    since: Option<Nanos>,
    watched_ns: u64,
}

impl Watch {
    fn begins(now: Nanos) -> Self {
        Self { looked: now, ..Self::default() }
    }

    /// The device has been silent since then, if it is; for how much of that it was watched.
    fn look(&mut self, now: Nanos, since: Option<Nanos>) -> u64 {
        let passed_ns = now.since(std::mem::replace(&mut self.looked, now));
        if self.since != since {
            (self.since, self.watched_ns) = (since, 0);
        }
        if let Some(since) = since
            && passed_ns <= 2 * LOOK_NS
        {
            self.watched_ns += passed_ns.min(now.since(since));
        }
        self.watched_ns
    }
}

/// Watches the device for ever.
pub(super) async fn watch<P: Platform>(base: Base<P>, device: Arc<DeviceState>) {
    loop {
        if device.unwatch() {
            device.silence.look.wait_or(std::future::pending()).await;
        }
        let (mut watch, mut said) = (Watch::begins(base.now()), None);
        while said.is_some() || device.silent_since().is_some() {
            device.silence.look.wait_or(base.sleep_until(base.now().after(LOOK_NS))).await;
            look(&base, &device, &mut watch, &mut said);
        }
    }
}

/// `said`: since when it has hung, and whether it refuses, as was told last.
fn look<P: Platform>(base: &Base<P>, device: &Arc<DeviceState>, watch: &mut Watch, said: &mut Option<(Nanos, bool)>) {
    let (now, since) = (base.now(), device.silent_since());
    let watched_ns = watch.look(now, since);
    let Silence { stalled_ns, refused_ns } = match watched_ns {
        0..LOOK_NS => Silence::UNNOTICED,
        _ => base.ask(device, |policy, view, own, _| policy.silence(view, own)),
    };
    let hangs =
        since.filter(|_| watched_ns >= stalled_ns.min(refused_ns)).map(|since| (since, watched_ns >= refused_ns));
    let hangs = hangs.filter(|(since, refuses)| device.hangs(*since, *refuses));
    if let Some((since, _)) = said.filter(|(before, _)| hangs.is_none_or(|(since, _)| since != *before)) {
        base.trace_device(Some(device.id), || Event::DeviceGoesOn { ns: now.since(since) });
        *said = None;
    }
    if let Some((since, refuses)) = hangs.filter(|hangs| *said != Some(*hangs)) {
        base.trace_device(Some(device.id), || Event::DeviceHangs { ns: now.since(since), refuses });
    }
    *said = hangs;
}

#[cfg(test)]
mod tests;
