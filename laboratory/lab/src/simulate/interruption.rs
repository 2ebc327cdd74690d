//! Ctrl-C and SIGTERM during a run.
//!
//! Owns: the meaning of the first and the second.
//! Does not own: the output of a run that is cut.
//! Invariants: the first asks for an end at the next sample, the second ends the process at once, since a run does
//! nothing worth waiting for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_default};

use afflux_report::failure::{Failure, Outcome};

pub(super) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// Watches for signals from now on.
    pub(super) fn watch() -> Outcome<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: a signal checks the flag before it sets it.
            register_conditional_default(signal, Arc::clone(&asked))
                .and_then(|_| register(signal, Arc::clone(&asked)))
                .map_err(|error| Failure::failed(format!("signals cannot be caught: {error}")))?;
        }
        Ok(Self(asked))
    }

    /// Whether the first signal has come.
    pub(super) fn is_asked_for(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
