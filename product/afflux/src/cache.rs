//! The cache as its users see it.
//!
//! Owns: the public calls on a whole cache; one type for the engine's knobs and those of the flush budget.
//! Does not own: files (`file`), the beginning (`builder`) and the end (`ending`).
//! Invariants: the only state here is the life that all handles have in common.

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::{fmt, io};

use afflux_budget::BudgetKnob;
use afflux_engine::DeviceStatus;
use afflux_engine::settings::{Knob, KnobError, KnobId, Settings, WhichKnob};
use afflux_linux_device::{DeferredWakes, LinuxPlatform};

use crate::core::{Core, SyncOf};
use crate::ending::Life;
use crate::error::{Error, Unwritten};
use crate::file::File;
use crate::open::{Entering, OpenOptions, OpenedFile};
use crate::stats::{Delays, Stats};

/// A page cache with writeback. A clone is the same cache.
///
/// It lives as long as there is a handle, a `Cache` or a [`File`]. When the last handle is dropped, or one is
/// [closed](Cache::close), the cache writes everything dirty and gives its threads, memory and descriptors back. Bytes
/// that it cannot write in [time](crate::Builder::drain_time) are reported to a [hook](crate::Builder::on_unwritten),
/// or without one to the standard error stream, and nothing is written later. So the last drop blocks, for up to that
/// time.
///
/// ```
/// use afflux::Cache;
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// let cache = Cache::builder().memory(64 << 20).build()?;
/// let file = cache.create(place.path().join("greeting"))?;
/// file.write_at(b"hello", 0)?;
/// file.sync_data()?;
/// drop(file);
/// cache.close()?;
/// assert_eq!(std::fs::read(place.path().join("greeting"))?, b"hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cache {
    life: Arc<Life>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("open", &self.core().gate.check().is_ok()).finish_non_exhaustive()
    }
}

impl Cache {
    pub(crate) fn new(life: Arc<Life>) -> Self {
        Self { life }
    }

    fn core(&self) -> &Arc<Core> {
        &self.life.0
    }

    pub(crate) fn platform(&self) -> &LinuxPlatform {
        self.core().platform()
    }

    /// Opens a file. Opening a file twice, by one name or two, gives two handles of one file, which see each other's
    /// bytes at once. If another cache has the file, the call waits, two seconds at most: a killed process keeps its
    /// files until the kernel has finished its requests.
    ///
    /// # Errors
    /// The host's; a file that another cache has ([`Error::InUse`]); an object that is neither a regular file nor a
    /// block device; no descriptors left ([`Error::OutOfDescriptors`]).
    pub fn open(&self, path: impl AsRef<Path>, options: OpenOptions) -> io::Result<File> {
        let core = self.core();
        core.gate.check()?;
        core.block(0, pin!(core.release_surplus()))?;
        let entered = core.take_in(core.open_path(path.as_ref(), &options)?)?;
        self.opened(entered, &options)
    }

    fn opened(&self, entered: OpenedFile, options: &OpenOptions) -> io::Result<File> {
        let (file, stamp) = File::new(&self.life, entered);
        let stripe = file.stripe();
        self.core().block(stripe, pin!(file.begin(stamp, options.truncate)))?;
        Ok(file)
    }

    /// [`Cache::open`], without blocking the thread. If it is dropped before it ends, the file may have been made on
    /// the host, or cut if that was requested; nothing else remains.
    ///
    /// # Errors
    /// As [`Cache::open`].
    pub async fn open_async(&self, path: impl AsRef<Path>, options: OpenOptions) -> io::Result<File> {
        let core = self.core();
        core.pass(0, pin!(core.release_surplus())).await?;
        let (own, path, asked) = (Arc::clone(core), path.as_ref().to_owned(), options.clone());
        let entered = move || own.take_in(own.open_path(&path, &asked)?);
        self.entered_async(entered, options.truncate).await
    }

    async fn entered_async(
        &self,
        enter: impl FnOnce() -> io::Result<OpenedFile> + Send + 'static,
        truncate: bool,
    ) -> io::Result<File> {
        let core = self.core();
        let life = Arc::clone(&self.life);
        // The pool's thread makes the handle, so that the file is given back if nobody waits for it any more.
        let enter = move || enter().map(|entered| File::new(&life, entered));
        let entered = core.pass(0, pin!(async { Ok(core.work.run(enter).await) })).await?;
        let (file, stamp) = entered?;
        core.pass(file.stripe(), pin!(file.begin(stamp, truncate))).await?;
        Ok(file)
    }

    /// Opens a file for reading and writing, and makes it if there is none: an existing one keeps its bytes.
    ///
    /// # Errors
    /// As [`Cache::open`].
    pub fn create(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.open(path, OpenOptions::new().read(true).write(true).create(true))
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// As [`Cache::open`].
    pub fn open_read(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.open(path, OpenOptions::new().read(true))
    }

    /// Takes a file that is open already, with the rights of its descriptor: for reading, or for reading and writing.
    /// If the cache has this file already, the handle is for that one, and the descriptor is closed.
    ///
    /// A write through a copy of the descriptor goes behind the cache's back.
    ///
    /// # Errors
    /// As [`Cache::open`]. A descriptor that cannot read.
    pub fn open_fd(&self, fd: impl Into<OwnedFd>) -> io::Result<File> {
        let core = self.core();
        core.gate.check()?;
        core.block(0, pin!(core.release_surplus()))?;
        let entering: Entering = Core::open_fd(fd.into())?;
        self.opened(core.take_in(entering)?, &OpenOptions::new())
    }

    /// Sets a knob while the cache runs. The knob's row in [`Knob`](crate::Knob) or [`BudgetKnob`](crate::BudgetKnob)
    /// says when the value acts.
    ///
    /// # Errors
    /// A value outside the knob's range; a knob that the flush budget ignores. [`Cache::knob_in_force`] tells where the
    /// knob acts with another value.
    pub fn set(&self, knob: impl Into<CacheKnob>, value: u64) -> io::Result<()> {
        self.core().gate.check()?;
        let knob = knob.into();
        let engine = &self.core().engine;
        engine.refuse_ignored(knob).and_then(|()| engine.set_knob(knob, value)).map_err(|error| knob_error(&error))
    }

    /// Sets a knob from a text such as `dirty_ratio=30` or `dirty_bytes=64MiB`; also one of the flush budget, the
    /// policy in force.
    ///
    /// # Errors
    /// A text without this form, an unknown knob, a value outside its range; a knob that the flush budget ignores.
    pub fn set_text(&self, text: &str) -> io::Result<()> {
        self.core().gate.check()?;
        let engine = &self.core().engine;
        let (knob, value) = engine.settings().parse(text).map_err(|error| knob_error(&error))?;
        engine.refuse_ignored(knob).and_then(|()| engine.set_knob(knob, value)).map_err(|error| knob_error(&error))
    }

    /// The value of a knob.
    pub fn knob(&self, knob: impl Into<CacheKnob>) -> u64 {
        self.core().engine.settings().get(knob.into())
    }

    /// The value of a knob, by its name; also of one of the flush budget.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let cache = afflux::Cache::builder().memory(16 << 20).knob_text("dirty_ratio=30").build()?;
    /// assert_eq!(cache.knob_named("dirty_ratio")?, 30);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An unknown knob.
    pub fn knob_named(&self, name: &str) -> io::Result<u64> {
        let settings = self.core().engine.settings();
        Ok(settings.get(settings.named(name).map_err(|error| knob_error(&error))?))
    }

    /// The disks on which the knob of this name does not act with its value: a sentence for each, with the value in
    /// force and the reason. A threshold that the flush budget lowers is such a knob.
    ///
    /// # Errors
    /// An unknown knob.
    pub fn knob_in_force(&self, name: &str) -> io::Result<Vec<String>> {
        let engine = &self.core().engine;
        let knob = engine.settings().named(name).map_err(|error| knob_error(&error))?;
        let name = engine.settings().info(knob).name;
        let told = |device: DeviceStatus| {
            let knobs = engine.knobs_in_force(device.id).into_iter().filter(|knob| knob.name == name);
            knobs
                .map(|knob| {
                    format!("{} on {}: {}", knob.name, device.name, knob.told_with(|number| number.to_string()))
                })
                .collect::<Vec<_>>()
        };
        Ok(engine.status().devices.into_iter().flat_map(told).collect())
    }

    /// Takes the cache out of use, as a panic in one of its tasks or calls does: every call fails from now on, and
    /// nothing more is written. For code that catches a panic in a call, such as a border to another language: the
    /// errors of later calls have its message.
    pub fn poison(&self, panic: &str) {
        if !self.core().gate.is_forked() {
            self.core().gate.poison("a call", panic);
        }
    }

    /// Runs a future of the program on this thread to its end. The cache reads for its calls on this thread's ring, and
    /// wakes no other thread for them. A program that serves many requests on a thread of its own has them in an
    /// executor, whose future this takes. Meanwhile a blocking call on this thread fails ([`Error::WaitInside`]). A
    /// program that leaves its reads in flight meanwhile uses [`Cache::thread_reactor`].
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let place = tempfile::tempdir()?;
    /// # let cache = afflux::Cache::builder().memory(16 << 20).build()?;
    /// let file = cache.create(place.path().join("data"))?;
    /// let executor = smol::LocalExecutor::new();
    /// let requests = [0, 1].map(|at| executor.spawn(file.write_at_async(b"a", at)));
    /// cache.run(executor.run(async {
    ///     for request in requests {
    ///         request.await?;
    ///     }
    ///     file.sync_data_async().await
    /// }))??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::WaitInside`] inside another such future, or on a thread of the cache.
    pub fn run<F: Future>(&self, future: F) -> io::Result<F::Output> {
        self.thread_reactor().drive(future)
    }

    /// The current figures of the cache.
    pub fn stats(&self) -> Stats {
        Stats::of(self.core())
    }

    /// Durations and causes of calls' waits, file by file on each device.
    pub fn delays(&self) -> Vec<Delays> {
        Delays::of(self.core())
    }

    /// Drops every clean page that nobody holds, as `drop_caches` does in Linux. Returns the number of bytes dropped.
    pub fn drop_clean_pages(&self) -> u64 {
        if self.core().gate.check().is_err() {
            return 0;
        }
        self.core().engine.drop_clean_pages().pages * afflux_frames::FRAME_BYTES as u64
    }

    /// Makes all earlier writes durable, on all devices. The cache goes on.
    ///
    /// # Errors
    /// Those of the first file that could not be written; the others were tried. Bytes that failed stay dirty.
    pub fn drain(&self) -> io::Result<()> {
        Ok(self.core().block(0, pin!(self.core().drain()))?)
    }

    /// [`Cache::drain`], without blocking the thread. If it is dropped before it ends, some files are durable and some
    /// are not.
    ///
    /// # Errors
    /// As [`Cache::drain`].
    pub async fn drain_async(&self) -> io::Result<()> {
        Ok(self.core().pass(0, pin!(self.core().drain())).await?)
    }

    /// Ends the cache for all its handles: calls in progress and later ones fail, everything dirty is written, its
    /// threads end and its descriptors are closed. Nothing is written after it returns. Its memory is freed with the
    /// last handle and the last [`Pages`](crate::Pages).
    ///
    /// Blocks for at most the [time](crate::Builder::drain_time) set for this. A second close returns the same result.
    ///
    /// # Errors
    /// The files that could not be made durable.
    pub fn close(self) -> Result<(), Unwritten> {
        if self.core().gate.is_forked() {
            return Ok(());
        }
        if self.core().needs_this_thread() {
            // Only a waker calls this on such a thread, which cannot wait for itself. The outcome is reported as at a
            // last drop.
            let core = Arc::clone(self.core());
            self.core().end_thread.run(move || core.end_with_report());
            return Ok(());
        }
        self.core().end()
    }

    /// [`Cache::close`], without blocking the thread: a thread of its own does the work. If it is dropped before it
    /// ends, the cache still ends.
    ///
    /// # Errors
    /// As [`Cache::close`].
    pub async fn close_async(self) -> Result<(), Unwritten> {
        if self.core().gate.is_forked() {
            return Ok(());
        }
        type Answer = Mutex<(Option<Result<(), Unwritten>>, Option<Waker>)>;
        let answer: Arc<Answer> = Arc::default();
        let (told, cache) = (Arc::clone(&answer), self.clone());
        let platform = self.core().platform().clone();
        let close = move || {
            let _held = DeferredWakes::new();
            let result = cache.close();
            let mut answer = told.lock().unwrap_or_else(PoisonError::into_inner);
            answer.0 = Some(result);
            let waker = answer.1.take();
            drop(answer);
            waker.into_iter().for_each(Waker::wake);
        };
        self.core().end_thread.run(close);
        drop(self);
        let closed = poll_fn(|cx| {
            let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
            answer.1 = Some(cx.waker().clone());
            answer.0.take().map_or(Poll::Pending, Poll::Ready)
        });
        platform.for_foreign_task(pin!(closed)).await
    }
}

impl File {
    /// The cache of this file.
    pub fn cache(&self) -> Cache {
        Cache::new(Arc::clone(self.life()))
    }
}

impl Core {
    /// Makes all files durable, those of a device together.
    async fn drain(&self) -> Result<(), Error> {
        let files = self.files.all();
        let mut syncs: Vec<_> =
            files.iter().filter(|file| !file.is_durable()).map(|file| SyncOf::begins(file)).collect();
        let mut first = Ok(());
        for device in self.devices.all() {
            let failed = self.engine.drain(device.id).await;
            for sync in syncs.iter_mut().filter(|sync| sync.file.file.device() == device.id) {
                match failed.iter().find(|(file, _)| file.is_same(&sync.file.file)) {
                    Some((_, error)) => first = first.and(Err(sync.file.error(*error))),
                    None => sync.succeeded(),
                }
            }
        }
        first
    }
}

fn knob_error(error: &KnobError) -> io::Error {
    Error::Setting { what: error.to_string() }.into()
}

/// A knob of a cache: a [`Knob`] or a [`BudgetKnob`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheKnob {
    /// A knob of the engine.
    Engine(Knob),
    /// A knob of the flush budget, the policy of every cache.
    Budget(BudgetKnob),
}

impl From<Knob> for CacheKnob {
    fn from(knob: Knob) -> Self {
        Self::Engine(knob)
    }
}

impl From<BudgetKnob> for CacheKnob {
    fn from(knob: BudgetKnob) -> Self {
        Self::Budget(knob)
    }
}

impl WhichKnob for CacheKnob {
    fn id(self, settings: &Settings) -> KnobId {
        match self {
            Self::Engine(knob) => knob.id(settings),
            Self::Budget(knob) => knob.id(settings),
        }
    }
}
