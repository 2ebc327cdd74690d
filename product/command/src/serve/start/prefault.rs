//! Puts memory behind the cache ahead of its use, and large pages behind a file's memory.
//!
//! Owns: the thread for that, its steps, when it stops.
//! Does not own: the arena.
//! Invariants: the start of the server never waits for it, the end for one step at most. It leaves the host's last
//! memory to others as long as nobody uses the cache's.
//!
//! On the first touch of a page the kernel clears it, in the middle of a WRITE. The thread has low priority and takes
//! small steps, since the kernel holds a lock of the whole process meanwhile. The cache uses frames from the lowest on,
//! so the thread begins there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use afflux_engine::Engine;
use afflux_frames::HUGE_FRAMES;
use afflux_linux_device::LinuxPlatform;
use rustix::process::nice;
use tracing::info;

use afflux_linux_device::HostMemory;

/// One step: a large page.
const STEP_FRAMES: u32 = HUGE_FRAMES;

/// This fraction of the host's memory stays available.
const AVAILABLE_PART: u64 = 16;

/// A tenth of another busy thread's share. With the lowest priority the thread would hold that lock for long.
const NICER: i32 = 10;

/// The thread. It ends when dropped.
pub(crate) struct Prefault {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Prefault {
    /// Starts the thread; none if the host allows no further one, since it is optional.
    pub(crate) fn start(engine: &Arc<Engine<LinuxPlatform>>) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (engine, stopped) = (Arc::clone(engine), Arc::clone(&stop));
        let body = move || {
            // If this is not allowed, the thread competes like the others.
            let _ = nice(NICER);
            run(&engine, &stopped);
        };
        let thread = thread::Builder::new().name("prefault".to_owned()).spawn(body).ok()?;
        Some(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Prefault {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread cannot have panicked: it only calls the kernel.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn run(engine: &Engine<LinuxPlatform>, stop: &AtomicBool) {
    let frames = engine.frames();
    let (is_file, mut refused, mut reason) = (frames.memory().may_outlive_process(), 0, None);
    for first in (0..frames.total()).step_by(STEP_FRAMES as usize) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let host = HostMemory::measured();
        if host.available_bytes < host.total_bytes / AVAILABLE_PART {
            info!("the rest of the cache gets its memory at its first use: the machine has little left");
            return;
        }
        if let Err(error) = frames.arena().prefault(first..first.saturating_add(STEP_FRAMES)) {
            info!("the cache gets its memory at its first use: {error}");
            return;
        }
        // A file has small pages at first: the next server would take up to a second to map them.
        if is_file && let Err(error) = frames.arena().collapse(first..first.saturating_add(STEP_FRAMES)) {
            (refused, reason) = (refused + 1, Some(error));
        }
    }
    if let Some(error) = reason {
        info!("{} MiB of the cache did not get large pages: {error}", 2 * refused);
    }
}
