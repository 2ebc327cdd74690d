//! The service manager's side of a server (systemd, podman): the messages to it, and the signals Ctrl-C, SIGTERM and
//! SIGHUP.
//!
//! Owns: the messages of sd_notify(3), the extra time for each progress of a stop; the thread that waits for signals,
//! the meaning of the first and the second.
//! Does not own: stopping, draining and reloading (`serve`).
//! Invariants: without a service manager nothing is sent, and nothing fails. A stop gets more time only if it wrote
//! something since the last time, so that a disk that hangs cannot delay it for ever. The first signal asks for an
//! orderly end, the second ends the process even if a device hangs. A terminal that closes (SIGHUP) also asks for an
//! orderly end, however often the signal comes, unless it is ignored (`nohup`). A service has no terminal: there SIGHUP
//! asks for a reload of the configuration.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use afflux_report::units;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::control::messages::Progress;

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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hangup {
    /// The terminal is gone, and with it the user who started the server.
    Ends,
    /// The service manager asks for a reload of the configuration.
    Reloads,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SignalRequest {
    /// An orderly end.
    Stop,
    Reload,
}

/// Sends each request into the channel, an end last. A further signal runs `give_up`, which should not return. Others
/// may send requests into the channel, too.
pub(crate) fn watch(
    hangup: Hangup,
    give_up: impl FnOnce() + Send + 'static,
) -> io::Result<(Sender<SignalRequest>, Receiver<SignalRequest>)> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if hangup == Hangup::Reloads || !is_hangup_ignored() {
        signals.add_signal(SIGHUP)?;
    }
    // A write past the limit on file sizes is then an error of that file, instead of the end of the server.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let (told, first) = mpsc::channel();
    let others = told.clone();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut arriving = signals.forever();
        for signal in arriving.by_ref() {
            let reload = signal == SIGHUP && hangup == Hangup::Reloads;
            let _ = told.send(if reload { SignalRequest::Reload } else { SignalRequest::Stop });
            if !reload {
                break;
            }
        }
        if arriving.any(|signal| signal != SIGHUP) {
            give_up();
        }
    })?;
    Ok((others, first))
}

/// Whether the user wants the server to outlive the terminal.
fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}

#[cfg(test)]
mod tests;
