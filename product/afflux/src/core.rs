//! What all handles of a cache share.
//!
//! Owns: one of each part, and how a call gets to the engine: past the gate, blocking or not.
//! Does not own: the parts; what a call does (`file`), the beginning (`builder`) and the end (`ending`).
//! Invariants: every call that may wait goes past the gate. Tasks of the cache's own keep it only weakly.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afflux_engine::Engine;
use afflux_linux::{HeldWakes, LinuxPlatform, Reactors, WorkerPool};

use crate::coherence::{Before, Stamp};
use crate::devices::{CacheDevice, Devices};
use crate::error::{Error, Hook, Unwritten};
use crate::files::{CachedFile, Files};
use crate::gate::Gate;

/// The parts.
pub(crate) struct Core {
    pub(crate) engine: Arc<Engine<LinuxPlatform>>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) devices: Devices,
    pub(crate) files: Files,
    /// For calls to the host that block and of which nobody knows the device yet.
    pub(crate) work: WorkerPool,
    /// Until the end.
    pub(crate) reactors: Mutex<Option<Reactors>>,
    pub(crate) ended: Mutex<Option<Result<(), Unwritten>>>,
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
        self.platform().drives_this_thread() || self.work.is_own_thread() || carries_out()
    }

    /// Does work for a file that a task of the caller awaits.
    pub(crate) async fn pass<T>(&self, stripe: u64, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.platform().for_foreign_task(self.gate.pass(stripe, work)).await
    }

    /// Does work for a file that may wait, on this thread.
    pub(crate) fn block<T>(&self, stripe: u64, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        // Outermost: a waker may close the cache, which waits for those inside.
        let _held = HeldWakes::new();
        // For all of it: what this thread's ring has in flight has ended when it leaves.
        let inside = self.gate.enter(stripe);
        let result = match &inside {
            Ok(_) => self.platform().try_block_on(self.gate.pass(stripe, work)).unwrap_or(Err(Error::WaitInside)),
            Err(error) => Err(error.clone()),
        };
        if inside.is_err() && !self.gate.is_forked() {
            self.platform().forget_this_thread();
        }
        result
    }

    /// Has the host open the descriptor that writing back takes while the file has `size` bytes. A writer calls this before
    /// the write, and again after it: a sync of earlier bytes may have given the descriptor up in between.
    pub(crate) async fn can_be_written(&self, file: &Arc<CachedFile>, size: u64) -> Result<(), Error> {
        if file.host.can_be_written(&file.device.host, size) || file.host.keep_writable() {
            return Ok(());
        }
        let opened = if self.platform().waits_on_this_thread() {
            file.host.open_writable()
        } else {
            let own = Arc::clone(file);
            file.device.calls.run(move || own.host.open_writable()).await
        };
        opened.map_err(|error| self.refused(error.raw_os_error().unwrap_or_default(), &file.path()))
    }

    /// Makes all that was written to the file durable.
    pub(crate) async fn sync(&self, file: &CachedFile) -> Result<(), Error> {
        let mut sync = SyncOf::begins(file);
        self.engine.sync(&file.file, 0..u64::MAX).await.map_err(|error| file.error(error))?;
        sync.succeeded();
        Ok(())
    }

    /// Looks whether others changed the file, where `stamp` is how the host has it.
    pub(crate) async fn take_note(&self, file: &CachedFile, before: &Before, stamp: Stamp) {
        if let Some(foreign) = file.seen(before, stamp) {
            self.engine.invalidate(&file.file, foreign.size, foreign.seen).await;
        }
    }
}

/// A sync of a whole file under way. Dropped without success, half way too, the file is as unsynced as it was.
pub(crate) struct SyncOf<'a> {
    pub(crate) file: &'a CachedFile,
    is_undone: bool,
}

impl<'a> SyncOf<'a> {
    pub(crate) fn begins(file: &'a CachedFile) -> Self {
        // What is written from here on says so anew.
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
