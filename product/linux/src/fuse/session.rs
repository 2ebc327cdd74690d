//! The threads that serve a mount.
//!
//! Owns: the threads, the calls that wait on the platform's reactors, the sender of notices, the end of a session.
//! Does not own: answers (the machine), mounting (`mounting`).
//! Invariants: a call that waits is on a reactor, which polls it anew, so a thread always comes back to the device. The
//! session is over once the mount is gone. Notices have a thread of their own: the kernel may wait for a reply while it
//! takes one.

use std::future::poll_fn;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use afflux_engine::Platform;
use afflux_frontend::{MessageMachine, Tried};

use super::buffers::Buffers;
use super::device::Device;
use super::mounting::FuseMount;
use crate::platform::LinuxPlatform;

/// Most threads of a session: more would only pass the calls of one program around.
const THREADS_MAX: usize = 4;

/// A mount that is served.
pub struct FuseSession {
    machine: Arc<dyn MessageMachine>,
    waiting: Arc<Waiting>,
    /// A channel without messages: it ends with the last thread.
    ended: Mutex<Receiver<()>>,
}

/// The calls on reactors.
#[derive(Default)]
struct Waiting {
    calls: Mutex<usize>,
    none: Condvar,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call on a reactor.
struct WaitingCall(Arc<Waiting>);

impl WaitingCall {
    fn new(of: &Arc<Waiting>) -> Self {
        *of.lock() += 1;
        Self(Arc::clone(of))
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        let mut calls = self.0.lock();
        *calls -= 1;
        if *calls == 0 {
            self.0.none.notify_all();
        }
    }
}

/// The common part of a session's threads.
#[derive(Clone)]
struct Shared {
    platform: LinuxPlatform,
    machine: Arc<dyn MessageMachine>,
    buffers: Arc<Buffers>,
    waiting: Arc<Waiting>,
}

impl FuseMount {
    /// Serves the mount. Returns once the kernel and the machine have agreed on the protocol.
    ///
    /// # Errors
    /// The host gives no thread or no descriptor, or the mount went away at once.
    pub fn serve(self, platform: &LinuxPlatform, machine: Arc<dyn MessageMachine>) -> io::Result<FuseSession> {
        let count = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        let shared = Shared {
            platform: platform.clone(),
            buffers: Buffers::new(machine.message_bytes_max()),
            machine: Arc::clone(&machine),
            waiting: Arc::default(),
        };
        let mut buffer = shared.buffers.take();
        // The first message is INIT, and no other comes before its answer.
        if !shared.turn(&self.device, &mut buffer)? {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let (lives, ended) = mpsc::channel();
        for number in 1..count {
            // Kernels before 4.2 have one descriptor a mount.
            let device = self.device.cloned().unwrap_or_else(|_| self.device.clone());
            start(number, shared.clone(), device, shared.buffers.take(), lives.clone())?;
        }
        tell(platform.clone(), Arc::clone(&machine), self.device.clone())?;
        let waiting = Arc::clone(&shared.waiting);
        start(0, shared, self.device, buffer, lives)?;
        Ok(FuseSession { machine, waiting, ended: Mutex::new(ended) })
    }
}

fn start(number: usize, shared: Shared, device: Device, mut buffer: Vec<u8>, lives: Sender<()>) -> io::Result<()> {
    thread::Builder::new().name(format!("fuse-{number}")).spawn(move || {
        while shared.turn(&device, &mut buffer).unwrap_or(false) {}
        drop(lives);
    })?;
    Ok(())
}

/// Sends the machine's notices, until it refuses calls.
fn tell(platform: LinuxPlatform, machine: Arc<dyn MessageMachine>, device: Device) -> io::Result<()> {
    thread::Builder::new().name("fuse-notices".to_owned()).spawn(move || {
        while let Some(notice) = platform.block_on(poll_fn(|cx| machine.poll_notice(cx))) {
            // The kernel refuses a notice about what it has forgotten already.
            device.write(&notice);
        }
    })?;
    Ok(())
}

impl Shared {
    /// Reads and answers one message; false once the mount is gone.
    fn turn(&self, device: &Device, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let Some(len) = device.read(buffer)? else { return Ok(false) };
        match self.machine.try_answer(&buffer[..len]) {
            Tried::Nothing => {}
            Tried::Reply(reply) => device.write(&reply),
            Tried::Waits => {
                let message = Box::new(self.buffers.message(buffer, len));
                let mut answering = Arc::clone(&self.machine).answer(message);
                // Most such calls only take a frame, and end here: without a wake-up of another thread.
                if let Poll::Ready(reply) = answering.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    reply.into_iter().for_each(|reply| device.write(&reply));
                    return Ok(true);
                }
                let (device, call) = (device.clone(), WaitingCall::new(&self.waiting));
                self.platform.spawn("fuse call", async move {
                    if let Some(reply) = answering.await {
                        device.write(&reply);
                    }
                    drop(call);
                });
            }
        }
        Ok(true)
    }
}

impl FuseSession {
    /// Waits until the mount is gone.
    pub fn wait_for_end(&self) {
        // Nothing is ever sent.
        let _ = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv();
    }

    /// Refuses further calls, and waits until those in progress are answered, but no longer than `at_most`.
    pub fn finish(&self, at_most: Duration) {
        self.machine.refuse();
        let calls = self.waiting.lock();
        drop(self.waiting.none.wait_timeout_while(calls, at_most, |calls| *calls > 0));
    }
}
