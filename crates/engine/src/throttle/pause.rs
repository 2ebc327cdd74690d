//! A writer's pause, noted from its beginning to its end.
//!
//! Owns: what a pause is noted as. Does not own: the tally (`policy::pauses`), the waiting.
//! Invariants: noted once, when it ends or its writer goes away.

use crate::counters::Counter;
use crate::devices::state::DeviceState;
use crate::platform::{Nanos, Platform};
use crate::policy::PauseCause;

/// A pause under way.
pub(super) struct NotedPause<'a, P: Platform> {
    platform: &'a P,
    device: &'a DeviceState,
    cause: PauseCause,
    asked_ns: u64,
    pub(super) began: Nanos,
}

impl<'a, P: Platform> NotedPause<'a, P> {
    /// It is to last `asked_ns` at most.
    pub(super) fn begins(platform: &'a P, device: &'a DeviceState, cause: PauseCause, asked_ns: u64) -> Self {
        platform.local().count(Counter::ThrottlePauses, 1);
        device.pauses.begins(cause);
        Self { platform, device, cause, asked_ns, began: platform.now() }
    }
}

impl<P: Platform> Drop for NotedPause<'_, P> {
    fn drop(&mut self) {
        let ns = self.platform.now().since(self.began);
        self.platform.local().count(Counter::ThrottleNs, ns);
        self.device.pauses.ends(self.cause, ns, self.asked_ns);
    }
}
