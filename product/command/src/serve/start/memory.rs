//! The memory of a server's process: put behind the cache ahead of its use, and prevented from waiting for the server's
//! own clients.
//!
//! On the first touch of a page the kernel clears it, in the middle of a WRITE. The thread that goes ahead has low
//! priority and takes small steps, since the kernel holds a lock of the whole process meanwhile. The cache uses frames
//! from the lowest on, so the thread begins there.
//!
//! A client on the server's own host makes the server part of the host's reclaim. The client's dirty pages are freed
//! only once the server has taken them. If the server needs memory for that, and the host can free some only by writing
//! such pages, each waits for the other.
//!
//! Owns: the thread, its steps, when it stops; the requests to the host against the wait.
//! Does not own: the arena, the moment of these requests (`serve`).
//! Invariants: the start of the server never waits for the thread, the end for one step at most. It leaves the host's
//! last memory to others as long as nobody uses the cache's. Settings that threads inherit are made before any thread
//! starts. A failure to lock memory is reported, and fatal only if the user asked for locked memory by name.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use afflux_engine::Engine;
use afflux_frames::HUGE_FRAMES;
use afflux_linux_device::{HostMemory, LinuxPlatform};
use afflux_report::failure::{Failure, Outcome};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{configure_io_flusher_behavior, nice};
use tracing::info;

use crate::settings::LockMemory;

/// One step: a large page.
const STEP_FRAMES: u32 = HUGE_FRAMES;

/// This fraction of the host's memory stays available.
const AVAILABLE_PART: u64 = 16;

/// A tenth of another busy thread's time. With the lowest priority the thread would hold that lock for long.
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

/// Whether the server must be safe to mount on its own host.
pub(crate) fn are_served(listen: IpAddr, asked: LockMemory) -> bool {
    match asked {
        LockMemory::On => true,
        LockMemory::Off => false,
        LockMemory::Auto => listen.to_canonical().is_loopback(),
    }
}

/// Sets this thread and its future threads up so that their allocations do not make the kernel write dirty pages. Also
/// locks the program's memory, each page from its first use on. Later allocations are not locked, since the allocator
/// could not give them back. Returns whether memory can be locked. The host may refuse the first setting, which takes a
/// privilege; locked memory then has to be enough.
pub(crate) fn prepare() -> io::Result<()> {
    let _ = configure_io_flusher_behavior(true);
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT)?)
}

/// Reports that memory could not be locked.
///
/// # Errors
/// When the user asked for it by name.
pub(crate) fn note_locked(locked: io::Result<()>, asked: LockMemory, notes: &mut Vec<String>) -> Outcome {
    let Err(error) = locked else { return Ok(()) };
    let needs = "it takes CAP_IPC_LOCK, or a limit on locked memory (ulimit -l) above the cache's size";
    if asked == LockMemory::On {
        return Err(Failure::failed(format!("--lock-memory on: memory cannot be locked ({error}): {needs}")));
    }
    notes.push(format!(
        "memory is not locked ({error}): when this host is short of memory, a mount of this server on it may hang; {needs}"
    ));
    Ok(())
}

#[cfg(test)]
mod tests;
