//! Making a cache.
//!
//! Owns: the settings of a cache with their defaults and ranges, the order in which its parts start.
//! Does not own: the parts.
//! Invariants: an invalid setting is refused with its value and the allowed range, before anything is started.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afflux_budget::Budget;
use afflux_engine::settings::{KnobError, Settings};
use afflux_engine::{Engine, Platform, Policies};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, HostMemory, IoChoice, REACTORS_MAX, Reactors, WorkerPool};
use rustix::process::{Resource, getrlimit};

use crate::cache::{Cache, CacheKnob};
use crate::core::{Core, EndThread};
use crate::devices::CacheDevices;
use crate::ending::Life;
use crate::error::{Error, Hook, Unwritten};
use crate::faults::Faults;
use crate::files::{ClosedFileBounds, Files};
use crate::gate::Gate;
use crate::upkeep;

/// Least memory of a cache.
pub const MEMORY_BYTES_MIN: u64 = 1 << 20;
const MEMORY_BYTES_DEFAULT: u64 = 256 << 20;
const FRAME_BYTES: u64 = afflux_frames::FRAME_BYTES as u64;
/// Default time for the end of a cache.
const DRAIN_TIME_DEFAULT: Duration = Duration::from_secs(30);
/// Longest time for the end: a century, which clocks can still count.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
/// Upper bound of the default number of the cache's own descriptors.
const DESCRIPTORS_DEFAULT_MAX: usize = 1024;
/// Threads for blocking calls to the host: opening files, asking for their state.
const WORK_THREADS_MAX: usize = 4;
const WORK_QUEUE: usize = 1024;

/// The settings of a new cache: see [`Cache::builder`].
///
/// ```
/// use std::time::Duration;
/// use afflux::{BudgetKnob, Cache, Knob};
/// # fn main() -> std::io::Result<()> {
/// let cache = Cache::builder()
///     .memory(64 << 20)
///     .reactors(2)
///     .knob(Knob::DirtyRatio, 30)
///     .knob(BudgetKnob::BudgetMs, 3000)
///     .drain_time(Duration::from_secs(5))
///     .on_unwritten(|unwritten| panic!("{unwritten}"))
///     .build()?;
/// assert_eq!(cache.stats().memory_bytes, 64 << 20);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Builder {
    /// None is the default.
    memory_bytes: Option<u64>,
    reactors: usize,
    io: IoChoice,
    caching: Caching,
    prefault: bool,
    knobs: Vec<(CacheKnob, u64)>,
    knob_texts: Vec<String>,
    drain_time: Duration,
    descriptors: Option<usize>,
    idle_files: Option<usize>,
    on_unwritten: Option<Hook>,
    faults: Option<Faults>,
}

impl Cache {
    /// Settings for a cache, at their defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            memory_bytes: None,
            reactors: 1,
            io: IoChoice::Auto,
            caching: Caching::Auto,
            prefault: false,
            knobs: Vec::new(),
            knob_texts: Vec::new(),
            drain_time: DRAIN_TIME_DEFAULT,
            descriptors: None,
            idle_files: None,
            on_unwritten: None,
            faults: None,
        }
    }
}

impl Builder {
    /// Sets the memory for pages, which never grows: [`MEMORY_BYTES_MIN`] or more, rounded down to whole pages of 4
    /// KiB. It is at most the memory of the host, or the limit of the process's control group if that is lower. The
    /// default is 256 MiB, or a quarter of that bound if that is less. Tables use about one percent more.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Sets the number of threads that write in the background and carry out async calls to devices: 1 to 256. The
    /// default is 1, which keeps several disks busy. Blocking calls read on their own threads.
    pub fn reactors(mut self, count: usize) -> Self {
        self.reactors = count;
        self
    }

    /// Sets how files are read and written. The default is io_uring, if the host has it.
    pub fn io(mut self, io: IoChoice) -> Self {
        self.io = io;
        self
    }

    /// Sets whether to use the host's own page cache. By default the cache bypasses it (`O_DIRECT`) where possible.
    pub fn caching(mut self, caching: Caching) -> Self {
        self.caching = caching;
        self
    }

    /// Sets whether [`Builder::build`] puts memory behind all pages, so that their first use costs no page fault. It
    /// then takes about 0.3 s for each GiB. The default is off: memory comes with the first use of a page.
    pub fn prefault(mut self, yes: bool) -> Self {
        self.prefault = yes;
        self
    }

    /// Sets a knob of the engine or of the flush budget at the start; [`Cache::set`] changes it later.
    pub fn knob(mut self, knob: impl Into<CacheKnob>, value: u64) -> Self {
        self.knobs.push((knob.into(), value));
        self
    }

    /// Sets a knob at the start, from a text as for [`Cache::set_text`].
    pub fn knob_text(mut self, text: impl Into<String>) -> Self {
        self.knob_texts.push(text.into());
        self
    }

    /// Sets how long closing the cache, or dropping its last handle, may take to write dirty pages. The default is 30
    /// seconds; [`Duration::MAX`] means no limit. Requests that the kernel still has in flight then get two more
    /// seconds.
    pub fn drain_time(mut self, time: Duration) -> Self {
        self.drain_time = time.min(DRAIN_TIME_MAX);
        self
    }

    /// Sets the number of descriptors that the cache may have beside one for each open file. The default is a quarter
    /// of the process's limit, at most 1,024.
    pub fn descriptors(mut self, count: usize) -> Self {
        self.descriptors = Some(count);
        self
    }

    /// Sets how many files without a handle keep their pages. The default is half of the number of pages. Each costs
    /// about 1 KiB and no descriptor.
    pub fn idle_files(mut self, count: usize) -> Self {
        self.idle_files = Some(count);
        self
    }

    /// Sets a function that is called with the lost bytes if the drop of the last handle could not write everything. It
    /// replaces the message to the standard error stream. The thread that dropped the handle calls it, once the cache
    /// has ended. [`Cache::close`] returns the lost bytes instead.
    pub fn on_unwritten(mut self, told: impl Fn(&Unwritten) + Send + Sync + 'static) -> Self {
        self.on_unwritten = Some(Hook::new(told));
        self
    }

    /// Puts faults between the cache and its disks, for tests of a program.
    pub fn faults(mut self, faults: &Faults) -> Self {
        self.faults = Some(faults.clone());
        self
    }

    /// Makes the cache and starts its threads.
    ///
    /// # Errors
    /// A setting outside its range ([`ErrorKind::InvalidInput`](io::ErrorKind::InvalidInput)); memory, threads,
    /// descriptors or io_uring that the host does not provide ([`Error::Start`]).
    pub fn build(self) -> io::Result<Cache> {
        let setting = |what: String| io::Error::from(Error::Setting { what });
        let memory_bytes = self.checked_memory(HostMemory::measured()).map_err(setting)?;
        let mut settings = Settings::with([&afflux_budget::KNOBS]);
        let policies = Policies { policy: Arc::new(Budget), ..Policies::default() };
        let wrong = |error: KnobError| setting(error.to_string());
        for (knob, value) in self.knobs {
            policies.refuse_ignored(&settings, knob).map_err(wrong)?;
            settings.set(knob, value).map_err(wrong)?;
        }
        for text in &self.knob_texts {
            let knob = settings.set_text(text).map_err(wrong)?;
            policies.refuse_ignored(&settings, knob).map_err(wrong)?;
        }
        let frames = Frames::new(memory_bytes / FRAME_BYTES * FRAME_BYTES).map_err(|error| match &error {
            afflux_frames::ArenaError::Mapping { source, .. } => not_given(error.to_string(), source),
            afflux_frames::ArenaError::Size { max, .. } => {
                setting(format!("a memory of {memory_bytes} bytes is too large: at most {max}"))
            }
            _ => setting(error.to_string()),
        })?;
        if self.prefault {
            let put = frames.arena().prefault(0..u32::MAX);
            put.map_err(|error| not_given(format!("no memory for {memory_bytes} bytes of pages: {error}"), &error))?;
        }
        let gate = Gate::new().map_err(|error| not_given(format!("no memory for a cache: {error}"), &error))?;
        let gate = Arc::new(gate);
        let poisoned = Arc::clone(&gate);
        let on_panic = Arc::new(move |task: &str, panic: &str| poisoned.poison(task, panic));
        let reactors =
            Reactors::start_with_panic_hook(self.reactors, self.io, on_panic).map_err(|error| match error {
                afflux_linux_device::StartError::Count { .. } => {
                    setting(format!("{} reactors cannot be started: 1 to {REACTORS_MAX} can", self.reactors))
                }
                afflux_linux_device::StartError::Thread { ref source, .. } => not_given(error.to_string(), source),
                other => Error::Start { what: other.to_string(), errno: None }.into(),
            })?;
        let end_thread =
            EndThread::start().map_err(|error| not_given(format!("no thread for a cache: {error}"), &error))?;
        let idle_files = self.idle_files.unwrap_or((frames.total() / 2) as usize);
        let engine = Engine::with_policies(Arc::new(reactors.platform()), settings, frames, policies);
        let descriptors = self.descriptors.unwrap_or_else(descriptors_default);
        let bounds = ClosedFileBounds { unwritten_files: descriptors / 2, idle_files };
        let core = Arc::new(Core {
            engine,
            gate,
            devices: CacheDevices::new(self.caching, self.faults),
            files: Files::new(descriptors - descriptors / 2, bounds),
            work: WorkerPool::new("afflux-open", WORK_THREADS_MAX, WORK_QUEUE),
            reactors: Mutex::new(Some(reactors)),
            ended: Mutex::new(None),
            end_thread,
            drain_time: self.drain_time,
            on_unwritten: self.on_unwritten,
        });
        let platform = Arc::clone(core.engine.platform());
        core.platform().spawn("tend", upkeep::upkeep(Arc::downgrade(&core), platform));
        Ok(Cache::new(Arc::new(Life(core))))
    }

    /// The memory on this host, or the reason why it cannot be.
    fn checked_memory(&self, host: HostMemory) -> Result<u64, String> {
        let max = host.total_bytes;
        let bytes = self.memory_bytes.unwrap_or((max / 4).clamp(MEMORY_BYTES_MIN, MEMORY_BYTES_DEFAULT));
        match bytes {
            ..MEMORY_BYTES_MIN => Err(format!("a memory of {bytes} bytes is too small: at least {MEMORY_BYTES_MIN}")),
            _ if bytes > max => Err(format!(
                "a memory of {bytes} bytes is too large: the host, or the control group of the process, has {max}"
            )),
            _ => Ok(bytes),
        }
    }
}

fn not_given(what: String, source: &io::Error) -> io::Error {
    Error::Start { what, errno: source.raw_os_error() }.into()
}

/// A quarter of the process's limit.
fn descriptors_default() -> usize {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(allowed / 4).unwrap_or(usize::MAX).clamp(2, DESCRIPTORS_DEFAULT_MAX)
}

#[cfg(test)]
mod tests;
