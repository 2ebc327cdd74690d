//! The state that all handles of a cache share.
//!
//! Owns: one of each part, and the path of a call to the engine: past the gate, blocking or not; the thread for ends
//! that no caller can wait for.
//! Does not own: the parts; the work of a call (`file`), the beginning (`builder`) and the end (`ending`).
//! Invariants: every call that may wait goes past the gate. Tasks of the cache's own hold only a weak reference to it.
//! The thread for ends starts with the cache, since the host may refuse a thread later, and loses no job.

use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use afflux_engine::{Engine, Platform};
use afflux_linux_device::{DeferredWakes, LinuxPlatform, Reactors, WorkerPool, contain};

use crate::coherence::{EngineSnapshot, Stamp};
use crate::devices::{CacheDevice, CacheDevices};
use crate::error::{Error, Hook, Unwritten};
use crate::files::{CachedFile, Files};
use crate::gate::Gate;

pub(crate) struct Core {
    pub(crate) engine: Arc<Engine<LinuxPlatform>>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) devices: CacheDevices,
    pub(crate) files: Files,
    /// For calls to the host that block while the device is not known yet.
    pub(crate) work: WorkerPool,
    /// None after the end.
    pub(crate) reactors: Mutex<Option<Reactors>>,
    pub(crate) ended: Mutex<Option<Result<(), Unwritten>>>,
    pub(crate) end_thread: EndThread,
    pub(crate) drain_time: Duration,
    pub(crate) on_unwritten: Option<Hook>,
}

impl Core {
    pub(crate) fn platform(&self) -> &LinuxPlatform {
        self.engine.platform()
    }

    /// Whether the end of the cache would wait for this thread: it is one of the cache's own, or in a call that waits.
    pub(crate) fn needs_this_thread(&self) -> bool {
        let is_of = |device: &Arc<CacheDevice>| device.host.is_own_thread() || device.calls.is_own_thread();
        let carries_out = || self.devices.all().iter().any(is_of);
        self.platform().is_driving_this_thread() || self.work.is_own_thread() || carries_out()
    }

    /// Runs work on a file that a task of the caller awaits.
    pub(crate) async fn pass<T>(
        &self,
        stripe: u64,
        work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        self.platform().for_foreign_task(pin!(self.gate.pass(stripe, work))).await
    }

    /// Runs work on a file that may wait, on this thread.
    pub(crate) fn block<T>(
        &self,
        stripe: u64,
        work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        self.enter(stripe, || self.wait(stripe, work))
    }

    /// Runs work on a file that most often waits in the host alone, on this thread.
    pub(crate) fn block_here<T>(
        &self,
        stripe: u64,
        mut work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        self.enter(stripe, || match self.platform().poll_here(work.as_mut()) {
            Poll::Ready(result) => result,
            Poll::Pending => self.wait(stripe, work),
        })
    }

    /// Waits inside a call, on this thread.
    fn wait<T>(&self, stripe: u64, work: Pin<&mut impl Future<Output = Result<T, Error>>>) -> Result<T, Error> {
        self.platform().try_block_on(self.gate.pass(stripe, work)).unwrap_or(Err(Error::WaitInside))
    }

    /// Reads on this thread, which may wait in the host. The engine's own error is the inner one.
    pub(crate) fn read_here(
        &self,
        stripe: u64,
        pages: &afflux_engine::File,
        offset: u64,
        into: &mut [u8],
    ) -> Result<Result<usize, afflux_engine::Error>, Error> {
        if self.platform().is_driving_this_thread() {
            return Err(Error::WaitInside);
        }
        self.enter(stripe, || {
            self.engine.read_here(pages, offset, into, |work| self.wait(stripe, pin!(async { Ok(work.await) })))
        })
    }

    /// Does a call that may wait on this thread, if the gate is open.
    fn enter<T>(&self, stripe: u64, call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        // Declared first and dropped last: a waker may close the cache, which waits for the calls inside.
        let _held = DeferredWakes::new();
        // This covers the whole call. At its end the requests of this thread's ring have completed, unless the thread
        // holds them in flight (`ThreadReactor`).
        let inside = self.gate.enter(stripe);
        let result = match &inside {
            Ok(_) => call(),
            Err(error) => Err(error.clone()),
        };
        if inside.is_err() && !self.gate.is_forked() {
            self.platform().forget_this_thread();
        }
        result
    }

    /// Has the host open the descriptor that writeback needs while the file has `size` bytes. A writer calls this
    /// before the write, and again after it: a sync of earlier bytes may have given the descriptor up in between.
    pub(crate) async fn ensure_writable(&self, file: &Arc<CachedFile>, size: u64) -> Result<(), Error> {
        if file.device.host.can_write(&file.host, size) || file.host.try_keep_writable() {
            return Ok(());
        }
        let opened = if self.platform().may_wait_on_this_thread() {
            file.host.open_writable()
        } else {
            let own = Arc::clone(file);
            file.device.calls.run(move || own.host.open_writable()).await
        };
        opened.map_err(|error| self.refused(error.raw_os_error().unwrap_or_default(), &file.path()))
    }

    /// Makes all earlier writes to the file durable.
    pub(crate) async fn sync(&self, file: &CachedFile) -> Result<(), Error> {
        let mut sync = SyncOf::begins(file);
        self.engine.sync(&file.file, 0..u64::MAX).await.map_err(|error| file.error(error))?;
        sync.succeeded();
        Ok(())
    }

    /// Checks whether others changed the file. `stamp` is the host's current state.
    pub(crate) async fn take_note(&self, file: &CachedFile, before: &EngineSnapshot, stamp: Stamp) {
        if let Some(foreign) = file.seen(before, stamp) {
            self.engine.try_invalidate(&file.file, foreign.size, foreign.seen).await;
        }
    }
}

/// A running sync of a whole file. If it is dropped without success, even half way, the file is as unsynced as before.
pub(crate) struct SyncOf<'a> {
    pub(crate) file: &'a CachedFile,
    is_undone: bool,
}

impl<'a> SyncOf<'a> {
    pub(crate) fn begins(file: &'a CachedFile) -> Self {
        // Writes from here on set the flag again.
        Self { file, is_undone: file.unsynced.swap(false, Ordering::SeqCst) }
    }

    pub(crate) fn succeeded(&mut self) {
        self.is_undone = !self.file.file.is_clean();
        if !self.is_undone {
            self.file.unkeep_descriptor();
        }
    }
}

impl Drop for SyncOf<'_> {
    fn drop(&mut self) {
        if self.is_undone {
            self.file.note_written();
        }
    }
}

pub(crate) struct EndThread(Mutex<Option<RunningEndThread>>);

struct RunningEndThread {
    jobs: Sender<EndJob>,
    thread: JoinHandle<()>,
    /// Closed when the thread has ended its last job.
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
