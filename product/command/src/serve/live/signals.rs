//! Ctrl-C, SIGTERM and SIGHUP.
//!
//! Owns: the thread that waits for them; the meaning of the first and the second.
//! Does not own: draining, and the report at the end.
//! Invariants: the first asks for an orderly end, the second ends the process even if a device hangs. A terminal that
//! closes (SIGHUP) also asks for an orderly end, however often the signal comes, unless it is ignored (`nohup`). A
//! service has no terminal: there SIGHUP asks for a reload of the configuration.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

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
