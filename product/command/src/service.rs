//! Messages to a service manager (systemd, podman).
//!
//! Owns: the messages of sd_notify(3), and the extra time for each progress of a stop.
//! Does not own: stopping and reloading (`serve`), the meaning of signals there (`serve::live::signals`).
//! Invariants: without a service manager nothing is sent, and nothing fails. A stop gets more time only if it wrote
//! something since the last time, so that a disk that hangs cannot delay it for ever.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

use crate::control::messages::Progress;
use afflux_report::units;

/// A stop may go on for this long after each write.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two messages about a stop.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Whether there is a service manager.
pub(crate) fn is_there() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some_and(|socket| !socket.is_empty())
}

/// The service runs, with this status.
pub(crate) fn notify_ready(status: &str) {
    send_states(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The service reads its configuration again; [`notify_ready`] ends that.
pub(crate) fn notify_reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        send_states(&[NotifyState::Reloading, now]);
    }
}

/// The service has begun to stop.
pub(crate) fn notify_stopping() {
    send_states(&[NotifyState::Stopping]);
}

/// The progress of a stop that was last reported.
#[derive(Default)]
pub(crate) struct Stopping {
    reported: Option<Instant>,
    written_bytes: u64,
}

impl Stopping {
    /// Reports the progress, and asks for more time if more was written than at the last report.
    pub(crate) fn show(&mut self, progress: Progress) {
        let Some(got_on) = self.next(Instant::now(), progress.written_bytes) else { return };
        let status = format!("Stopping: {} to write", units::data(progress.left_bytes));
        let mut states = vec![NotifyState::Status(&status)];
        if got_on {
            states.push(NotifyState::ExtendTimeoutUsec(PATIENCE.as_micros() as u32));
        }
        send_states(&states);
    }

    /// Whether there is something to report, and if so, whether something was written since the last report.
    fn next(&mut self, now: Instant, written_bytes: u64) -> Option<bool> {
        if self.reported.is_some_and(|at| now.duration_since(at) < TELL_EVERY) {
            return None;
        }
        let got_on = written_bytes > self.written_bytes;
        (self.reported, self.written_bytes) = (Some(now), written_bytes);
        Some(got_on)
    }
}

/// A failure to report changes nothing.
fn send_states(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}

#[cfg(test)]
mod tests;
