//! Ctrl-C and SIGTERM during a run.
//!
//! Owns: what the first and the second mean.
//! Does not own: what is shown of a run that is cut.
//! Invariants: the first asks for an end at the next sample, the second ends the process at once, whatever it is
//! in the middle of: nothing that a run does is worth waiting for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_default};

use afflux_report::failure::{Failure, Outcome};

pub(super) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// From now on signals are looked for.
    pub(super) fn watch() -> Outcome<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: a signal meets the flag before it sets it.
            register_conditional_default(signal, Arc::clone(&asked))
                .and_then(|_| register(signal, Arc::clone(&asked)))
                .map_err(|error| Failure::failed(format!("signals cannot be caught: {error}")))?;
        }
        Ok(Self(asked))
    }

    /// Whether the first has come.
    pub(super) fn is_asked_for(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
