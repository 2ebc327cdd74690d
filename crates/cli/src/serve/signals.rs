//! Ctrl-C and SIGTERM.
//!
//! Owns: the thread that waits for them; what the first and the second mean.
//! Does not own: draining, and what is said at the end.
//! Invariants: the first asks for an orderly end, the second ends the process whatever hangs.

use std::io;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The first signal arrives in the channel; the second runs `give_up`, which should not return.
pub(crate) fn watch(give_up: impl FnOnce() + Send + 'static) -> io::Result<Receiver<()>> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (told, first) = mpsc::channel();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut arriving = signals.forever();
        if arriving.next().is_some() {
            let _ = told.send(());
        }
        if arriving.next().is_some() {
            give_up();
        }
    })?;
    Ok(first)
}
