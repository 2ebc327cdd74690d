//! The engine to measure: the real one, on a reactor, over a device that completes at once.
//!
//! Owns: the device, the files, the CPU clock.
//! Does not own: the measured work (`measure`).
//! Invariants: the device completes inside `submit` and moves no bytes, so that a measurement covers the engine and the
//! copies to and from its callers.

use std::sync::Arc;

use afflux_engine::counters::Counter;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, DeviceId, Engine, Error, File, Limits, Platform, Request};
use afflux_frames::Frames;
use afflux_linux_device::LinuxPlatform;
use rustix::time::{ClockId, clock_gettime};

use afflux_report::failure::{Failure, Outcome};

pub(super) const PAGE: usize = 4096;
/// Largest request of the two devices.
pub(super) const LARGE_BYTES: usize = 1 << 20;

struct NullDevice {
    limits: Limits,
}

impl NullDevice {
    fn new(request_bytes_max: usize) -> Arc<Self> {
        let request_bytes_max = request_bytes_max as u32;
        Arc::new(Self {
            limits: Limits {
                block_bytes: 4096,
                request_bytes_max,
                depth: 64,
                volatile_cache: true,
                ..Limits::default()
            },
        })
    }
}

impl Device for NullDevice {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request) {
        request.complete(Ok(()));
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }
}

/// An engine with its two devices and its clock.
pub(super) struct Rig {
    pub(super) platform: LinuxPlatform,
    pub(super) engine: Arc<Engine<LinuxPlatform>>,
    /// Frames of the cache.
    pub(super) frames: u64,
    /// Takes large requests.
    large: DeviceId,
    /// Takes one page at a time.
    small: DeviceId,
}

impl Rig {
    /// A cache of `frames` frames without readahead. Its flushers leave dirty pages alone until a sync asks for them.
    pub(super) fn new(platform: &LinuxPlatform, frames: u64) -> Outcome<Self> {
        let mut settings = Settings::new();
        let knobs = [
            "dirty_ratio=90",
            "dirty_background_ratio=100",
            "dirty_expire_centisecs=360000",
            "dirty_writeback_centisecs=360000",
            "readahead_bytes_max=0",
        ];
        for knob in knobs {
            settings.set_text(knob).map_err(|error| Failure::failed(error.to_string()))?;
        }
        let memory = Frames::new(frames * PAGE as u64);
        let memory = memory.map_err(|error| Failure::failed(format!("no memory for a cache: {error}")))?;
        let engine = Engine::new(Arc::new(platform.clone()), settings, memory);
        let large = engine.add_device("large", NullDevice::new(LARGE_BYTES));
        let small = engine.add_device("small", NullDevice::new(PAGE));
        Ok(Self { platform: platform.clone(), engine, frames, large, small })
    }

    /// A file of `pages` pages, none of them in the cache.
    pub(super) fn file(&self, pages: u64) -> File {
        self.engine.open(self.large, Backing::new(Arc::new(())), pages * PAGE as u64)
    }

    /// The same on the device that takes one page at a time.
    pub(super) fn file_of_single_pages(&self, pages: u64) -> File {
        self.engine.open(self.small, Backing::new(Arc::new(())), pages * PAGE as u64)
    }

    /// Reads the whole file into the cache.
    pub(super) async fn fill(&self, file: &File) -> Result<(), Error> {
        let mut into = vec![0; LARGE_BYTES];
        for at in (0..file.size()).step_by(LARGE_BYTES) {
            self.engine.read(file, at, &mut into).await?;
        }
        Ok(())
    }

    pub(super) fn counted(&self, counter: Counter) -> u64 {
        self.platform.counters().get(counter)
    }
}

/// CPU time of this thread so far, in nanoseconds.
pub(super) fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The pages from 0 to `count - 1` in an order without runs, the same each time: a walk by a step that has no divisor
/// in common with `count`.
pub(super) fn scattered(count: u64) -> impl Iterator<Item = u64> {
    let mut step = (count * 5 / 13) | 1;
    while divisor(step, count) != 1 {
        step += 2;
    }
    (0..count).map(move |at| at * step % count)
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
