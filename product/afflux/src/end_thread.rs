//! A thread for ends of a cache that no caller can wait for.
//!
//! Owns: the thread.
//! Does not own: the end (`ending`).
//! Invariants: the thread starts with the cache, since the host may refuse a thread later. It ends with the cache. A
//! job is never lost.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use afflux_linux_device::contain;

pub(crate) struct EndThread(Mutex<Option<RunningEndThread>>);

struct RunningEndThread {
    jobs: Sender<EndJob>,
    thread: JoinHandle<()>,
    /// Closed when the thread has no job left.
    is_over: Receiver<()>,
}

type EndJob = Box<dyn FnOnce() + Send>;

impl EndThread {
    pub(crate) fn start() -> std::io::Result<Self> {
        let ((jobs, given), (over, is_over)) = (channel::<EndJob>(), channel());
        let work = move || {
            given.into_iter().for_each(contain);
            drop(over);
        };
        let thread = std::thread::Builder::new().name("afflux-end".to_owned()).spawn(work)?;
        Ok(Self(Mutex::new(Some(RunningEndThread { jobs, thread, is_over }))))
    }

    /// Runs the job on the thread. After the end there is nothing to wait for, and the job runs here.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|running| running.jobs.clone());
        let job: EndJob = Box::new(job);
        match jobs {
            Some(jobs) => jobs.send(job).unwrap_or_else(|SendError(job)| job()),
            None => job(),
        }
    }

    /// Ends the thread, and waits for it at most `patience`.
    pub(crate) fn end(&self, patience: Duration) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(RunningEndThread { jobs, thread, is_over }) = running else { return };
        drop(jobs);
        if thread.thread().id() != std::thread::current().id()
            && is_over.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected)
        {
            let _ = thread.join();
        }
    }
}
