//! The threads that serve a mount.
//!
//! Owns: the threads, those of them that rest, the permission to block; the calls that wait on the platform's reactors,
//! the sender of notices, the end of a session.
//! Does not own: answers (the machine), mounting (`mounting`), the host's calls (`afflux_linux_device::in_place`).
//! Invariants: a call that waits is on a reactor, which polls it anew. A thread makes a call's first host calls itself,
//! unless no other thread is there for the device: at least one thread waits at the device, or comes back to it without
//! a call of the host, whatever hangs. The last such thread may not block. A thread that ends lets all others come
//! back. The session is over once the mount is gone. Notices of each disk have a thread of their own: the kernel may
//! wait for a reply while it takes one.
//!
//! The kernel wakes the threads that wait for messages one after another. So a lone caller finds another thread each
//! time, with another buffer, and on another processor. One thread alone serves such a caller at less cost, and the
//! others rest.

use std::future::poll_fn;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use afflux_engine::Platform;
use afflux_frontend::{Answering, MessageMachine, MessageReply, Tried};
use afflux_linux_device::in_place::{self, Leave};
use afflux_linux_device::{LinuxPlatform, WorkerPool};
use afflux_volume::DeviceKey;

use crate::device_pools::DevicePools;
use crate::fuse::device::{Buffers, FuseDevice, Written};
use crate::fuse::mounting::FuseMount;

/// The threads of a session: one that always comes back, and some that may block in the host. More would only pass the
/// calls of one program around. With fewer, a program finds the others at the ends of its earlier calls.
const THREADS: usize = 4;

/// A mount that is served.
pub struct FuseSession {
    machine: Arc<dyn MessageMachine>,
    waiting: Arc<Waiting>,
    /// A channel without messages: it ends with the last thread.
    ended: Mutex<Receiver<()>>,
}

/// The calls that are not answered at once.
#[derive(Default)]
struct Waiting {
    calls: Mutex<Calls>,
    none: Condvar,
}

#[derive(Default)]
struct Calls {
    waiting: usize,
    /// Somebody waits for the end of all.
    awaited: bool,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits.
struct WaitingCall(Arc<Waiting>);

impl WaitingCall {
    fn new(of: &Arc<Waiting>) -> Self {
        of.lock().waiting += 1;
        Self(Arc::clone(of))
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        let mut calls = self.0.lock();
        calls.waiting -= 1;
        if calls.waiting == 0 && calls.awaited {
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
    threads: Arc<SessionThreads>,
    /// The descriptors of all threads.
    devices: Arc<Mutex<Vec<FuseDevice>>>,
}

impl FuseMount {
    /// Has the kernel and the machine agree on the protocol, or notifies the kernel that the machine goes on with the
    /// work of an earlier one. Call it once, before [`FuseMount::serve`].
    ///
    /// # Errors
    /// The mount is gone.
    pub fn begin(&self, machine: &dyn MessageMachine) -> io::Result<()> {
        if let Some(resumption) = machine.resumption() {
            // Before any thread reads: the kernel would send that thread's requests twice.
            self.device.write(&resumption);
            return Ok(());
        }
        let mut buffer = vec![0; machine.message_bytes_max()];
        // The first message is INIT, and no other comes before its answer.
        let Some(len) = self.device.read(&mut buffer)? else { return Err(io::ErrorKind::NotConnected.into()) };
        if let Tried::Reply(reply) = machine.try_answer(&buffer[..len]) {
            self.device.write(&reply);
        }
        Ok(())
    }

    /// Serves the mount from now on.
    ///
    /// # Errors
    /// The host gives no thread or no descriptor.
    pub fn serve(self, platform: &LinuxPlatform, machine: Arc<dyn MessageMachine>) -> io::Result<FuseSession> {
        let shared = Shared {
            platform: platform.clone(),
            buffers: Buffers::new(machine.message_bytes_max()),
            machine: Arc::clone(&machine),
            waiting: Arc::default(),
            threads: SessionThreads::new(),
            devices: Arc::new(Mutex::new(vec![self.device.clone()])),
        };
        let (lives, ended) = mpsc::channel();
        for number in 1..THREADS {
            // Kernels before 4.2 have one descriptor a mount.
            let device = self.device.cloned().unwrap_or_else(|_| self.device.clone());
            shared.devices().push(device.clone());
            start(number, shared.clone(), device, shared.buffers.take(), lives.clone())?;
        }
        tell(platform, Arc::clone(&machine), self.device.clone());
        let waiting = Arc::clone(&shared.waiting);
        let buffer = shared.buffers.take();
        start(0, shared, self.device, buffer, lives)?;
        Ok(FuseSession { machine, waiting, ended: Mutex::new(ended) })
    }
}

fn start(number: usize, shared: Shared, device: FuseDevice, mut buffer: Vec<u8>, lives: Sender<()>) -> io::Result<()> {
    let member = shared.threads.join();
    thread::Builder::new().name(format!("fuse-{number}")).spawn(move || {
        let serve = || shared.serve(&device, &mut buffer, &member);
        shared.platform.watch_panics("fuse thread", serve);
        drop((member, lives));
    })?;
    Ok(())
}

/// Sends the machine's notices, until it refuses calls.
fn tell(platform: &LinuxPlatform, machine: Arc<dyn MessageMachine>, device: FuseDevice) {
    // A disk has one notice under way, so one thread is enough.
    let pools = DevicePools::new(&WorkerPool::new("fuse-notices", 1, 1));
    platform.spawn("fuse notices", async move {
        while let Some(notice) = poll_fn(|cx| machine.poll_notice(cx)).await {
            let (machine, device) = (Arc::clone(&machine), device.clone());
            pools.of(DeviceKey(notice.disk)).post(move || {
                // The kernel refuses a notice about what it has forgotten already.
                device.write(&notice.message);
                machine.notice_taken(notice.disk);
            });
        }
    });
}

impl Shared {
    fn devices(&self) -> MutexGuard<'_, Vec<FuseDevice>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers messages until the mount is gone.
    fn serve(&self, device: &FuseDevice, buffer: &mut Vec<u8>, member: &SessionThread) {
        let mut history = MessageHistory::default();
        while let Ok(Some(len)) = device.read(buffer) {
            history.count_message();
            let looks = history.is_time_to_look();
            if looks {
                member.note_look(&mut history, device.has_message());
            }
            let may_rest = looks && member.may_rest(&history);
            self.answer(device, buffer, len);
            if may_rest {
                member.rest(&mut history);
            }
        }
    }

    fn answer(&self, device: &FuseDevice, buffer: &mut Vec<u8>, len: usize) {
        match self.machine.try_answer(&buffer[..len]) {
            Tried::Nothing => {}
            Tried::Reply(reply) => self.reply(device, &reply),
            Tried::Waits => {
                let message = Box::new(self.buffers.message(buffer, len));
                self.carry_out(device, Arc::clone(&self.machine).answer(message));
            }
        }
    }

    /// Answers a message that needs a wait, or only host calls.
    fn carry_out(&self, device: &FuseDevice, mut answering: Answering) {
        // Counts until all is done, also what the call leaves for later.
        let mut call = Some(WaitingCall::new(&self.waiting));
        in_place::scope(Arc::clone(&self.threads) as _, |in_place| {
            // Most such calls end here: without a wake-up of another thread.
            let polled = in_place.run(|| answering.as_mut().poll(&mut Context::from_waker(Waker::noop())));
            if let Poll::Ready(reply) = polled {
                // The next message may come before the write of this reply ends.
                in_place.end_calls();
                return reply.iter().for_each(|reply| self.reply(device, reply));
            }
            let (shared, device, call) = (self.clone(), device.clone(), call.take());
            self.platform.spawn("fuse call", async move {
                if let Some(reply) = answering.await {
                    shared.reply(&device, &reply);
                }
                drop(call);
            });
        });
    }

    /// Writes a reply on the descriptor that the request came by: the kernel searches for the request there. The reply
    /// to an interrupted call of another thread belongs to that thread's descriptor.
    fn reply(&self, device: &FuseDevice, reply: &MessageReply) {
        if device.write(reply) != Written::Elsewhere {
            return;
        }
        let devices = self.devices().clone();
        let _ = devices.iter().find(|other| other.write(reply) == Written::Here);
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
        let mut calls = self.waiting.lock();
        calls.awaited = true;
        drop(self.waiting.none.wait_timeout_while(calls, at_most, |calls| calls.waiting > 0));
    }
}

/// A thread checks after this many of its messages whether others wait. Programs repeat themselves after other numbers.
const MESSAGES_PER_LOOK: u32 = 5;

/// The checks that a thread remembers.
const LOOKS: u32 = u16::BITS;

/// A thread comes back if this many of them found other messages.
const CROWDED: u32 = LOOKS / 2;

/// A thread may rest if no more of them did. The kernel sends some messages, such as RELEASE, beside those of a caller.
const LONELY: u32 = LOOKS / 4;

/// The threads of a session, by their occupation.
pub(super) struct SessionThreads(Mutex<Occupations>);

#[derive(Default)]
struct Occupations {
    /// Threads that wait at the device, or come back to it without a call of the host.
    present: usize,
    resting: Vec<Thread>,
    /// Permissions to block since the start.
    permissions: u64,
}

/// The memory of one thread about its last messages.
#[derive(Default)]
pub(super) struct MessageHistory {
    messages: u32,
    looks: u32,
    /// Whether other messages waited, by check; the last one is the lowest bit.
    others: u16,
    /// Checks in a row without a permission to block since the previous check.
    calm: u32,
    /// [`Occupations::permissions`] at the last check.
    permissions: u64,
}

impl MessageHistory {
    pub(super) fn count_message(&mut self) {
        self.messages = (self.messages + 1) % MESSAGES_PER_LOOK;
    }

    /// Whether the thread checks for others after the message that was counted last.
    pub(super) fn is_time_to_look(&self) -> bool {
        self.messages == 0
    }

    fn note(&mut self, others_wait: bool, permissions: u64) {
        self.looks += 1;
        self.others = self.others << 1 | u16::from(others_wait);
        self.calm = if permissions == self.permissions { self.calm + 1 } else { 0 };
        self.permissions = permissions;
    }

    fn is_crowded(&self) -> bool {
        self.others.count_ones() >= CROWDED
    }

    /// Whether a thread may rest while so many are present. Calls that block need a second one.
    fn may_rest(&self, present: usize) -> bool {
        let needed = if self.calm >= LOOKS { 1 } else { 2 };
        self.looks >= LOOKS && self.others.count_ones() <= LONELY && present > needed
    }
}

impl SessionThreads {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    fn lock(&self) -> MutexGuard<'_, Occupations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a thread, before its start.
    pub(super) fn join(self: &Arc<Self>) -> SessionThread {
        self.lock().present += 1;
        SessionThread(Arc::clone(self))
    }
}

impl Leave for SessionThreads {
    /// A thread that is not the last one for the device may block. A resting thread comes back first if it is.
    fn try_permit(&self) -> bool {
        let mut threads = self.lock();
        if threads.present < 2 && !threads.try_call_back() {
            return false;
        }
        threads.present -= 1;
        threads.permissions += 1;
        true
    }

    fn end(&self) {
        self.lock().present += 1;
    }
}

impl Occupations {
    /// Sends a resting thread to the device. False if there is none.
    fn try_call_back(&mut self) -> bool {
        let Some(thread) = self.resting.pop() else { return false };
        self.present += 1;
        thread.unpark();
        true
    }
}

/// A thread of a session. Its drop is the end of the thread.
pub(super) struct SessionThread(Arc<SessionThreads>);

impl SessionThread {
    /// Called by a thread that holds a message, with whether others wait. If they often do, a thread comes back for
    /// them.
    pub(super) fn note_look(&self, history: &mut MessageHistory, others_wait: bool) {
        let mut threads = self.0.lock();
        history.note(others_wait, threads.permissions);
        if history.is_crowded() && threads.try_call_back() {
            *history = MessageHistory { permissions: threads.permissions, ..MessageHistory::default() };
        }
    }

    /// Whether this thread may rest after its message.
    pub(super) fn may_rest(&self, history: &MessageHistory) -> bool {
        history.may_rest(self.0.lock().present)
    }

    /// Waits until the thread is called back. Returns at once if no other thread is there for the device.
    pub(super) fn rest(&self, history: &mut MessageHistory) {
        *history = MessageHistory::default();
        let me = thread::current();
        let mut threads = self.0.lock();
        if threads.present < 2 {
            return;
        }
        threads.present -= 1;
        threads.resting.push(me.clone());
        while threads.resting.iter().any(|thread| thread.id() == me.id()) {
            drop(threads);
            thread::park();
            threads = self.0.lock();
        }
    }
}

impl Drop for SessionThread {
    fn drop(&mut self) {
        let mut threads = self.0.lock();
        threads.present -= 1;
        while threads.try_call_back() {}
    }
}

#[cfg(test)]
mod tests;
