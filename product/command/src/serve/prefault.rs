//! Memory behind the cache ahead of its use.
//!
//! Owns: the thread that does it, how much at a time, when it leaves off.
//! Does not own: the arena. Invariants: nothing waits for it: not the start, and the end for one step at
//! most; the last memory of the host is not taken for what nobody uses yet.
//!
//! A page that is touched for the first time costs the kernel clearing it, in the middle of a WRITE. The
//! thread gives way to others, and takes small steps, since the kernel holds a lock of the whole process
//! meanwhile. Frames are used from the lowest on, so it begins there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use afflux_engine::Engine;
use afflux_frames::HUGE_FRAMES;
use afflux_linux::LinuxPlatform;
use rustix::process::nice;
use tracing::info;

use afflux_linux::HostMemory;

/// At a time: one large page.
const STEP_FRAMES: u32 = HUGE_FRAMES;

/// Of the host's memory this part is left available.
const LEFT_PART: u64 = 16;

/// A tenth of what another busy thread gets. The least there is would hold that lock for long.
const NICER: i32 = 10;

/// The thread. Dropped, it ends.
pub(super) struct Prefault {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Prefault {
    /// Starts; nothing if there can be no further thread, since nobody needs it.
    pub(super) fn start(engine: &Arc<Engine<LinuxPlatform>>) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (engine, stopped) = (Arc::clone(engine), Arc::clone(&stop));
        let body = move || {
            // Where it is not allowed it competes like the others.
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
        // It cannot have panicked: it calls the kernel and nothing else.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn run(engine: &Engine<LinuxPlatform>, stop: &AtomicBool) {
    let frames = engine.frames();
    for first in (0..frames.total()).step_by(STEP_FRAMES as usize) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let host = HostMemory::measured();
        if host.available_bytes < host.total_bytes / LEFT_PART {
            info!("the rest of the cache gets its memory when it is used: the machine has little left");
            return;
        }
        if let Err(error) = frames.arena().prefault(first..first.saturating_add(STEP_FRAMES)) {
            info!("the cache gets its memory when it is used: {error}");
            return;
        }
    }
}
