//! The threads of devices: one for each, which writes.
//!
//! Such a thread may be held in a call of the host. Then only its device's tasks wait.
//!
//! Owns: the threads, their reactors' addresses, the end of new ones.
//! Does not own: the reactors, the tasks.
//! Invariants: after the end no thread is started.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::reactor::Remote;

/// The threads of a platform's devices.
pub(super) struct DeviceThreads(Mutex<State>);

struct State {
    /// Each thread drops its copy at its end. None after the end.
    lives: Option<Sender<()>>,
    remotes: Vec<Arc<Remote>>,
    threads: Vec<JoinHandle<()>>,
}

impl DeviceThreads {
    pub(super) fn new(lives: Sender<()>) -> Self {
        Self(Mutex::new(State { lives: Some(lives), remotes: Vec::new(), threads: Vec::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread with `start`. None after the end, or if the host gives no thread.
    pub(super) fn add(
        &self,
        start: impl FnOnce(Arc<Remote>, Sender<()>) -> std::io::Result<JoinHandle<()>>,
    ) -> Option<Arc<Remote>> {
        let mut state = self.lock();
        let remote = Remote::new();
        let thread = start(Arc::clone(&remote), state.lives.clone()?).ok()?;
        state.threads.push(thread);
        state.remotes.push(Arc::clone(&remote));
        Some(remote)
    }

    /// No thread is started from now on. Returns those that were, for the caller to stop and to join.
    pub(super) fn end(&self) -> (Vec<Arc<Remote>>, Vec<JoinHandle<()>>) {
        let mut state = self.lock();
        state.lives = None;
        (std::mem::take(&mut state.remotes), std::mem::take(&mut state.threads))
    }
}
