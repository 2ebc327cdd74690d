//! The end of a cache.
//!
//! Owns: the order in which everything ends, the report of unwritten bytes.
//! Does not own: the gate, the engine, threads, descriptors: each ends itself on request.
//! Invariants: lost bytes are reported once. First the gate closes, then everything is written, then the threads end.
//! So nothing is written after the end. The end takes no longer than its time plus a grace for requests that the kernel
//! has in flight. A forked child ends nothing, since it has none of the threads.

use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use afflux_engine::Platform;
use afflux_linux_device::{DeferredWakes, RevokedDescriptors};

use crate::core::Core;
use crate::error::{Error, Unwritten, UnwrittenFile};
use crate::files::HostFileKey;

/// Time for requests that the kernel has in flight after the time for writing.
const GRACE: Duration = Duration::from_secs(2);

/// Holds a cache alive: all its handles share it, and dropping the last one ends the cache.
pub(crate) struct Life(pub(crate) Arc<Core>);

impl Drop for Life {
    fn drop(&mut self) {
        if self.0.gate.is_forked() {
            // The threads are the parent's, and locks may be held that nobody here releases.
            std::mem::forget(Arc::clone(&self.0));
            return;
        }
        if !self.0.needs_this_thread() {
            return self.0.end_with_report();
        }
        // A waker, or an open that nobody waits for, dropped the last handle: the thread cannot wait for its own end.
        let core = Arc::clone(&self.0);
        self.0.end_thread.run(move || core.end_with_report());
    }
}

impl Core {
    /// Ends the cache, and reports unwritten bytes to the hook, or without one to people (standard error). Another call
    /// that has ended it returned or reported them.
    pub(crate) fn end_with_report(&self) {
        let (Err(unwritten), true) = self.end_or_wait() else { return };
        match &self.on_unwritten {
            Some(hook) => hook.notify(&unwritten),
            #[allow(clippy::print_stderr, reason = "there is no caller to return it to")]
            None => eprintln!("afflux: {unwritten}"),
        }
    }

    /// Ends the cache. A second call waits for the first, and returns the same.
    pub(crate) fn end(&self) -> Result<(), Unwritten> {
        self.end_or_wait().0
    }

    /// The outcome of the end, and whether this call ended the cache.
    fn end_or_wait(&self) -> (Result<(), Unwritten>, bool) {
        // Waiting calls leave now. Their wakers run before a lock is held, since a waker may also end the cache.
        let held = DeferredWakes::new();
        self.gate.close();
        drop(held);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = &*ended {
            return (ended.clone(), false);
        }
        let deadline = Instant::now() + self.drain_time;
        self.gate.is_empty_by(deadline);
        let drained = self.drain_until(deadline);
        let all_ended = self.try_stop_threads(deadline.saturating_duration_since(Instant::now()).max(GRACE));
        let outcome = self.outcome(&drained, !all_ended);
        close_within(self.files.forget(), GRACE);
        self.platform().forget_this_thread();
        *ended = Some(outcome.clone());
        drop(ended);
        self.end_thread.end(GRACE);
        (outcome, true)
    }

    /// Writes everything. Returns the files of each device that has answered, with the reason if one could not be
    /// written. A poisoned cache writes nothing, since its pages may be wrong.
    fn drain_until(&self, deadline: Instant) -> HashMap<HostFileKey, Result<(), String>> {
        let mut results = HashMap::new();
        if self.gate.is_poisoned() {
            return results;
        }
        let files = self.files.all();
        let (told, drained) = channel();
        for device in self.devices.all() {
            let (engine, told) = (Arc::clone(&self.engine), told.clone());
            self.platform().spawn("drain", async move {
                let failed = engine.drain(device.id).await;
                let _ = told.send((device.id, failed));
            });
        }
        drop(told);
        loop {
            match drained.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((device, failed)) => {
                    for file in files.iter().filter(|file| file.file.device() == device) {
                        let error = failed.iter().find(|(one, _)| one.is_same(&file.file));
                        results.insert(file.key, error.map_or(Ok(()), |(_, error)| Err(error.to_string())));
                    }
                }
                Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => return results,
            }
        }
    }

    /// Whether all have ended within `patience`.
    fn try_stop_threads(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let left = || deadline.saturating_duration_since(Instant::now());
        let reactors = self.reactors.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut all_ended = reactors.is_none_or(|reactors| reactors.try_stop_within(patience));
        for device in self.devices.all() {
            all_ended &= device.host.try_stop_within(left());
        }
        // These only check files and open them, which changes nothing.
        let _ = self.work.try_stop_within(left());
        for device in self.devices.all() {
            let _ = device.calls.try_stop_within(left());
        }
        all_ended
    }

    /// The report. No write enters after the gate has closed, so a drained file is durable by the engine's word alone:
    /// a sync that the gate sent away may note only now that it has not ended.
    fn outcome(
        &self,
        drained: &HashMap<HostFileKey, Result<(), String>>,
        still_in_flight: bool,
    ) -> Result<(), Unwritten> {
        let panic = match self.gate.check() {
            Err(Error::Poisoned { panic }) => Some(panic),
            _ => None,
        };
        let files = self.files.all();
        let mut files: Vec<_> = files
            .iter()
            .filter(|file| match drained.get(&file.key) {
                Some(result) => result.is_err() || !file.is_flushed(),
                None => !file.is_durable(),
            })
            .map(|file| UnwrittenFile {
                path: file.path(),
                bytes: file.file.dirty_bytes(),
                error: match drained.get(&file.key) {
                    Some(Err(error)) => Some(error.clone()),
                    _ => file.file.write_error().map(|error| error.to_string()),
                },
            })
            .collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        if files.is_empty() && !still_in_flight {
            return Ok(());
        }
        Err(Unwritten { files, panic, still_in_flight, time: self.drain_time })
    }
}

/// Closes descriptors, and waits at most `patience`: a mount that hangs holds a thread that closes its files. The
/// remaining descriptors are closed when the mount goes on.
fn close_within(descriptors: Vec<RevokedDescriptors>, patience: Duration) {
    if descriptors.is_empty() {
        return;
    }
    let (closed, all_closed) = channel::<()>();
    let close = move || {
        drop(descriptors);
        drop(closed);
    };
    // If the thread cannot start, the closure is dropped here, and the descriptors with it.
    if std::thread::Builder::new().name("afflux-close".to_owned()).spawn(close).is_ok() {
        let _ = all_closed.recv_timeout(patience);
    }
}

#[cfg(test)]
mod tests;
