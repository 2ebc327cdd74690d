//! Ctrl-C, SIGTERM and SIGHUP.
//!
//! Owns: the thread that waits for them; what the first and the second mean.
//! Does not own: draining, and what is said at the end.
//! Invariants: the first asks for an orderly end, the second ends the process whatever hangs. A
//! terminal that closes asks for an orderly end too, however often it says so, unless it is ignored
//! (`nohup`).

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

/// The first signal arrives in the channel; the second runs `give_up`, which should not return.
pub(crate) fn watch(give_up: impl FnOnce() + Send + 'static) -> io::Result<Receiver<()>> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !hangup_is_ignored() {
        signals.add_signal(SIGHUP)?;
    }
    // A write past the limit on file sizes is then an error of that file, not the end of the server.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let (told, first) = mpsc::channel();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut arriving = signals.forever();
        if arriving.next().is_some() {
            let _ = told.send(());
        }
        if arriving.any(|signal| signal != SIGHUP) {
            give_up();
        }
    })?;
    Ok(first)
}

/// Whether whoever started us wants the server to outlive the terminal.
fn hangup_is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}
