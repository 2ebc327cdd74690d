//! Reports an experiment's progress in a line now and then.
//!
//! Owns: the thread that prints the lines, and when.
//! Does not own: the words, and their destination.
//! Invariants: a line comes whenever the interval has passed, even during a longer step; a run that ends within the
//! interval prints none.

#[cfg(test)]
mod tests;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use afflux_report::units;

/// Reports the progress of a run until it is dropped.
pub(super) struct Lines {
    steps: Option<Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    pub(super) fn start(every: Duration, say: impl Fn(String) + Send + 'static) -> Self {
        let (steps, told) = channel();
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(move || run(&told, every, &say));
        Self { steps: Some(steps), thread: thread.ok() }
    }

    /// Names the step that has begun.
    pub(super) fn now(&self, step: String) {
        if let Some(steps) = &self.steps {
            let _ = steps.send(step);
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.steps = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(told: &Receiver<String>, every: Duration, say: &dyn Fn(String)) {
    let begun = Instant::now();
    let (mut due, mut step) = (every, String::from("begun"));
    loop {
        match told.recv_timeout(due.saturating_sub(begun.elapsed())) {
            Ok(next) => step = next,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                say(format!("running for {}: {step}", units::time(begun.elapsed())));
                due = begun.elapsed() + every;
            }
        }
    }
}
