//! The driver without io_uring: sockets by poll(2). Files go to worker threads (the device does that).
//!
//! Owns: the socket operations that wait for readiness; the thread's earlier ring, as long as operations are in the
//! kernel.
//! Does not own: the memory of operations (their owners), the consequences of a completion.
//! Invariants: an operation is tried when it is started and whenever poll(2) reports readiness, never blocking. Every
//! started operation is reported once. An error of poll(2) or of the doorbell, even for good, costs pauses alone.

use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use super::io::RingOperation;
use super::ring::{DEAF_PAUSE, Ring};

#[derive(Default)]
pub(super) struct Poller {
    waiting: BTreeMap<u64, RingOperation>,
    done: VecDeque<(u64, i32)>,
    earlier_ring: Option<Box<Ring>>,
}

impl Poller {
    /// The driver of a thread whose ring the kernel refuses.
    pub(super) fn after(ring: Box<Ring>) -> Self {
        Self { earlier_ring: Some(ring), ..Self::default() }
    }

    pub(super) fn is_supported(&self, io: &RingOperation) -> bool {
        matches!(io, RingOperation::WaitReadable { .. } | RingOperation::Receive { .. } | RingOperation::Send { .. })
    }

    /// Starts an operation.
    ///
    /// # Safety
    /// The pointers in `io` stay valid until `token` was reported.
    pub(super) unsafe fn start(&mut self, token: u64, io: &RingOperation) {
        // SAFETY: the caller's promise.
        match unsafe { attempt(io) } {
            Some(result) => self.done.push_back((token, result)),
            None => {
                self.waiting.insert(token, *io);
            }
        }
    }

    /// Ends an operation that still waits; it is reported like any other.
    pub(super) fn cancel(&mut self, token: u64) {
        if self.waiting.remove(&token).is_some() {
            self.done.push_back((token, -Errno::CANCELED.raw_os_error()));
        } else if let Some(earlier_ring) = &mut self.earlier_ring {
            earlier_ring.cancel(token);
        }
    }

    /// Waits for a completion (at most `wait`; not at all if it is zero; `None` is for ever) and appends token and
    /// result of all completed operations. Ends early when `doorbell` rings, or, without one, when the thread is
    /// unparked.
    pub(super) fn take_completions(
        &mut self,
        doorbell: Option<&OwnedFd>,
        wait: Option<Duration>,
        reaped: &mut VecDeque<(u64, i32)>,
    ) {
        if let Some(earlier_ring) = &mut self.earlier_ring {
            earlier_ring.take_there(&mut self.done);
            self.earlier_ring.take_if(|earlier_ring| !earlier_ring.has_taken());
        }
        let wait = if self.done.is_empty() { wait } else { Some(Duration::ZERO) };
        match doorbell {
            None => match wait {
                Some(Duration::ZERO) => {}
                Some(limit) => std::thread::park_timeout(limit),
                None => std::thread::park(),
            },
            Some(doorbell)
                if wait != Some(Duration::ZERO) || !self.waiting.is_empty() || self.earlier_ring.is_some() =>
            {
                self.poll(doorbell, wait);
            }
            Some(_) => {}
        }
        reaped.extend(self.done.drain(..));
    }

    fn poll(&mut self, doorbell: &OwnedFd, wait: Option<Duration>) {
        let mut polled = Vec::with_capacity(self.waiting.len() + 2);
        polled.push(PollFd::new(doorbell, PollFlags::IN));
        for io in self.waiting.values() {
            let (fd, readiness) = interest(io);
            // SAFETY: the operation's owner holds the descriptor open until it was reported.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            polled.push(PollFd::from_borrowed_fd(fd, readiness));
        }
        // The kernel may notify nobody of completions of a refused ring.
        let mut wait = wait;
        if let Some(earlier_ring) = &self.earlier_ring {
            // SAFETY: the ring holds the descriptor open.
            polled.push(PollFd::from_borrowed_fd(unsafe { BorrowedFd::borrow_raw(earlier_ring.fd()) }, PollFlags::IN));
            wait = Some(wait.map_or(DEAF_PAUSE, |wait| wait.min(DEAF_PAUSE)));
        }
        let limit =
            wait.map(|wait| Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) });
        let is_told = match poll(&mut polled, limit.as_ref()) {
            Ok(_) => true,
            Err(Errno::INTR) => return,
            // Without the call each operation is tried, one after the other.
            Err(_) => false,
        };
        let of_doorbell = polled[0].revents();
        if of_doorbell.contains(PollFlags::IN) {
            let _ = rustix::io::read(doorbell, &mut [0_u8; 8]);
        }
        let ready = |at: usize| !is_told || !polled[at].revents().is_empty();
        let ready: Vec<u64> =
            (1..).zip(self.waiting.keys()).filter(|(at, _)| ready(*at)).map(|(_, token)| *token).collect();
        for token in ready {
            // SAFETY: the promise made to `start` still holds, since the operation was not reported yet.
            if let Some(result) = unsafe { attempt(&self.waiting[&token]) } {
                self.waiting.remove(&token);
                self.done.push_back((token, result));
            }
        }
        let is_deaf = !is_told || of_doorbell.intersects(PollFlags::NVAL | PollFlags::ERR);
        if is_deaf && self.done.is_empty() && wait != Some(Duration::ZERO) {
            std::thread::sleep(wait.map_or(DEAF_PAUSE, |wait| wait.min(DEAF_PAUSE)));
        }
    }
}

fn interest(io: &RingOperation) -> (RawFd, PollFlags) {
    match *io {
        RingOperation::Send { fd, .. } => (fd, PollFlags::OUT),
        RingOperation::WaitReadable { fd } | RingOperation::Receive { fd, .. } => (fd, PollFlags::IN),
        _ => unreachable!("file operations are not started here"),
    }
}

/// The outcome; none if the operation would have to wait.
///
/// # Safety
/// The pointers in `io` are valid.
unsafe fn attempt(io: &RingOperation) -> Option<i32> {
    let (fd, _) = interest(io);
    // SAFETY: the operation's owner holds the descriptor open.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    loop {
        let outcome = match *io {
            RingOperation::WaitReadable { .. } => {
                let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
                let ready = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&at_once));
                // The owner checks again.
                let ready = ready.or_else(|error| if error == Errno::INTR { Err(error) } else { Ok(1) });
                ready.and_then(|ready| if ready > 0 { Ok(0) } else { Err(Errno::AGAIN) })
            }
            RingOperation::Receive { start, len, .. } => {
                // SAFETY: the caller's promise.
                let memory = unsafe { std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), len as usize) };
                recv(fd, memory, RecvFlags::DONTWAIT).map(|(_, count)| count)
            }
            RingOperation::Send { message, .. } => {
                // SAFETY: the caller's promise.
                let (iovecs, count) = unsafe { (*message).iovecs() };
                // SAFETY: the caller's promise; `IoSlice` is laid out as the kernel's vector, as is ours.
                let slices = unsafe { std::slice::from_raw_parts(iovecs.cast::<IoSlice<'_>>(), count) };
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                sendmsg(fd, slices, &mut SendAncillaryBuffer::default(), flags)
            }
            _ => unreachable!("file operations are not started here"),
        };
        return match outcome {
            Ok(count) => Some(count as i32),
            Err(Errno::AGAIN) => None,
            Err(Errno::INTR) => continue,
            Err(error) => Some(-error.raw_os_error()),
        };
    }
}
