//! What a service manager (systemd, podman) is told.
//!
//! Owns: the messages of sd_notify(3), and for how long each progress of a stop is good.
//! Does not own: stopping and reloading (`serve`), what signals mean there (`serve::signals`).
//! Invariants: without a service manager nothing is said, and nothing fails. A stop is given more time only when
//! something was written since the last time, so that a disk that hangs cannot hold it up for ever.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

use crate::control::messages::Progress;
use afflux_report::units;

/// For so long a stop may go on after something was written.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two messages about a stop.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Whether somebody wants to be told.
pub(crate) fn is_there() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some_and(|socket| !socket.is_empty())
}

/// It runs, and does this.
pub(crate) fn tell_ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// It reads its configuration again; [`tell_ready`] ends that.
pub(crate) fn tell_reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// It has begun to stop.
pub(crate) fn tell_stopping() {
    tell(&[NotifyState::Stopping]);
}

/// How far a stop is, as far as that was told.
#[derive(Default)]
pub(crate) struct Stopping {
    told: Option<(Instant, u64)>,
}

impl Stopping {
    /// Tells how far it is, and asks for more time if that is more than last time.
    pub(crate) fn show(&mut self, progress: Progress) {
        let Some(got_on) = self.next(Instant::now(), progress.written_bytes) else { return };
        let status = format!("Stopping: {} to write", units::data(progress.left_bytes));
        let mut states = vec![NotifyState::Status(&status)];
        if got_on {
            states.push(NotifyState::ExtendTimeoutUsec(PATIENCE.as_micros() as u32));
        }
        tell(&states);
    }

    /// Whether there is something to tell, and then whether something was written since the last time.
    fn next(&mut self, now: Instant, written_bytes: u64) -> Option<bool> {
        if self.told.is_some_and(|(at, _)| now.duration_since(at) < TELL_EVERY) {
            return None;
        }
        let got_on = self.told.is_none_or(|(_, before)| written_bytes != before);
        self.told = Some((now, written_bytes));
        Some(got_on)
    }
}

/// That it cannot be told is no reason to do anything else.
fn tell(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}

#[cfg(test)]
mod tests;
