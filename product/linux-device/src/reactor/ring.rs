//! The driver over io_uring: one ring a thread, for files and sockets alike.
//!
//! Owns: the ring, submissions for which it was full, the read of the doorbell.
//! Does not own: the memory of operations (their owners), the consequences of a completion.
//! Invariants: one system call a round submits and, if there is nothing else to do, waits. Every started operation is
//! reported once, or given back if the kernel never took the operation. A kernel that refuses the ring for good ends no
//! process: the thread enters a refused ring no more, and takes back the untaken operations ([`Ring::is_refused`]). The
//! ring is closed only after the doorbell's read has ended. A read without an end retains the memory.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, Probe, opcode};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::io::{RWF_DONTCACHE, RingOperation};
use crate::plain_user::{PlainUser, plain_user};

/// Submissions that fit before an extra system call. Only a round with 1,024 connections and a device's depth of
/// requests active at once makes more.
const ENTRIES: u32 = 256;
const COMPLETIONS: u32 = 4096;
/// Threads of the kernel for a ring's file operations that wait. The kernel's own number is four for each processor: as
/// many files whose locks local programs hold would stop all others. Twice a device's slots for each of eight hung
/// devices: the engine may set that many requests aside that do not end. The kernel starts a thread only when all
/// others wait.
const WORKERS_MAX: u32 = 1024;
/// The same as [`ENTRIES`] for a thread that waits for its own reads and readahead: each of many threads has a ring.
const ENTRIES_OF_ONE_WAIT: u32 = 64;

/// A thread of the kernel begins the operation. A host file system may hold the thread that begins a write, although
/// the ring asks it not to wait. ext4, for one, updates the file's times there. If a commit of its journal is writing
/// the same inodes, ext4 waits for that commit, which takes milliseconds on a slow disk and does not end on a hung one.
const MAY_WAIT: Flags = Flags::ASYNC;

/// So often in a row the kernel may have no memory, or take nothing of the queue. More are a refusal for good.
const SHORTAGES_MAX: u32 = 1_000;
/// After so many the thread pauses before the next try.
const SHORTAGES_AT_ONCE: u32 = 64;
const SHORTAGE_PAUSE: Duration = Duration::from_millis(1);

/// The longest wait of a thread that cannot be woken, before it checks again.
pub(super) const DEAF_PAUSE: Duration = Duration::from_millis(10);

/// The number of a ring's own user.
const OWN_USER: u16 = 0;

/// The token of no operation: its completion is ignored.
const NOBODY: u64 = u64::MAX;
/// The token of the doorbell's read.
const DOORBELL: u64 = u64::MAX - 1;

/// The optional operations that the host's io_uring has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingAbility {
    allocate: bool,
    set_size: bool,
    /// Completions need not interrupt a thread that computes (5.19).
    cooperative: bool,
}

impl RingAbility {
    /// Probes io_uring on this host. The error says why it cannot be used.
    pub(crate) fn probe() -> Result<Self, String> {
        let refused = |call: &str, error: std::io::Error| format!("{call} was refused: {error}");
        let ring = IoUring::new(8).map_err(|error| refused("io_uring_setup", error))?;
        let params = ring.params();
        if !params.is_feature_ext_arg() || !params.is_feature_nodrop() {
            return Err("this kernel's io_uring is older than Linux 5.11".to_owned());
        }
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(|error| refused("io_uring_register", error))?;
        // SAFETY: nothing is submitted, and the call gets no memory.
        unsafe { ring.submitter().enter::<libc::sigset_t>(0, 0, 0, None) }
            .map_err(|error| refused("io_uring_enter", error))?;
        let needed = [
            ("read", opcode::Read::CODE),
            ("readv", opcode::Readv::CODE),
            ("writev", opcode::Writev::CODE),
            ("fsync", opcode::Fsync::CODE),
            ("poll", opcode::PollAdd::CODE),
            ("recv", opcode::Recv::CODE),
            ("sendmsg", opcode::SendMsg::CODE),
            ("cancel", opcode::AsyncCancel::CODE),
        ];
        if let Some((name, _)) = needed.iter().find(|(_, code)| !probe.is_supported(*code)) {
            return Err(format!("this host's io_uring has no {name}"));
        }
        let mut cooperative = builder();
        cooperative.setup_coop_taskrun().setup_taskrun_flag();
        Ok(Self {
            allocate: probe.is_supported(opcode::Fallocate::CODE),
            set_size: probe.is_supported(opcode::Ftruncate::CODE),
            cooperative: cooperative.build(8).is_ok(),
        })
    }
}

/// A thread's ring.
pub(crate) struct Ring {
    ring: IoUring,
    ability: RingAbility,
    /// Submissions for which the ring was full.
    backlog: VecDeque<Entry>,
    doorbell: Option<RawFd>,
    /// The kernel writes the doorbell's count here; its address must not change.
    doorbell_count: Box<[u8; 8]>,
    listening: bool,
    /// The doorbell could not be read: nobody can wake the thread.
    is_deaf: bool,
    /// The number of the plain user in this ring, once a write has needed it.
    plain: Option<u16>,
    /// Entries for the next system call, in their order: operations, and the ring's own.
    untaken: VecDeque<(u64, Untaken)>,
    /// The number of operations in the kernel.
    taken: usize,
    /// Entries of the kernel without success, one after another.
    shortages: u32,
    refused: bool,
}

/// An operation that the kernel has not taken; none for an entry of the ring itself.
struct Untaken(Option<RingOperation>);

// SAFETY: the pointers belong to the owner of the operation, on the thread that started the operation. A ring moves to
// another thread only when nothing is in flight, and then has no such operation.
unsafe impl Send for Untaken {}

impl Ring {
    /// A ring for this thread. With `stays`, for a thread that comes back to it often: completions then wait for its
    /// next system call instead of interrupting it.
    pub(super) fn new(ability: RingAbility, stays: bool) -> std::io::Result<Self> {
        let mut builder = builder();
        builder.setup_clamp();
        if stays {
            builder.setup_cqsize(COMPLETIONS);
        }
        if stays && ability.cooperative {
            builder.setup_coop_taskrun().setup_taskrun_flag();
        }
        let ring = builder.build(if stays { ENTRIES } else { ENTRIES_OF_ONE_WAIT })?;
        if stays {
            // An old kernel uses its own number.
            let _ = ring.submitter().register_iowq_max_workers(&mut [WORKERS_MAX, 0]);
        }
        Ok(Self {
            ring,
            ability,
            backlog: VecDeque::new(),
            doorbell: None,
            doorbell_count: Box::new([0; 8]),
            listening: false,
            is_deaf: false,
            plain: None,
            untaken: VecDeque::new(),
            taken: 0,
            shortages: 0,
            refused: false,
        })
    }

    /// From now on writes to `doorbell` end waits.
    pub(super) fn listen(&mut self, doorbell: &OwnedFd) {
        (self.doorbell, self.is_deaf) = (Some(doorbell.as_raw_fd()), false);
    }

    /// The ring hears no doorbell after this. Waits for the kernel's confirmation, which comes at once; not for a
    /// refused ring.
    pub(super) fn stop_listening(&mut self) {
        self.doorbell = None;
        if self.listening {
            self.cancel(DOORBELL);
            let mut reaped = VecDeque::new();
            while self.listening && !self.refused {
                self.take_completions(None, &mut reaped);
            }
        }
    }

    /// Whether the kernel refuses the ring for good, for example after a program has forbidden the call to itself. The
    /// operations in the kernel are still reported, where possible.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Whether an operation of this ring, or the doorbell's read, is in the kernel.
    pub(super) fn has_taken(&self) -> bool {
        self.taken > 0 || self.listening
    }

    /// The descriptor of the ring, readable while completions are there.
    pub(super) fn fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }

    /// The operations that a refused ring never gave to the kernel, for the caller.
    pub(super) fn take_untaken(&mut self) -> Vec<(u64, RingOperation)> {
        self.backlog.clear();
        if self.untaken.iter().any(|(token, _)| *token == DOORBELL) {
            self.listening = false;
        } else if self.listening {
            // The doorbell has another listener from now on.
            self.cancel(DOORBELL);
        }
        self.untaken.drain(..).filter_map(|(token, io)| Some((token, io.0?))).collect()
    }

    pub(super) fn check_support(&mut self, io: &RingOperation) -> bool {
        if io.is_plain() && plain_user().is_some() && self.plain.is_none() {
            self.plain = PlainUser::known_to(&self.ring.submitter());
            if self.plain.is_none() {
                return false;
            }
        }
        match io {
            RingOperation::Allocate { .. } => self.ability.allocate,
            RingOperation::SetSize { .. } => self.ability.set_size,
            _ => true,
        }
    }

    /// Queues an operation; the next round submits it.
    ///
    /// # Safety
    /// The pointers in `io` stay valid until `token` was reported.
    pub(super) unsafe fn start(&mut self, token: u64, io: &RingOperation) {
        let user = self.plain.filter(|_| io.is_plain()).unwrap_or(OWN_USER);
        self.push(entry(io).personality(user).user_data(token), (token, Untaken(Some(*io))));
    }

    /// Asks the kernel to end an operation soon; it is reported like any other.
    pub(super) fn cancel(&mut self, token: u64) {
        if self.refused {
            // Another call than the refused one, of Linux 6.0. Without it the operation ends by itself.
            let at_once = Timespec::new();
            let _ = self.ring.submitter().register_sync_cancel(Some(at_once), CancelBuilder::user_data(token));
            return;
        }
        self.push(opcode::AsyncCancel::new(token).build().user_data(NOBODY), (NOBODY, Untaken(None)));
    }

    fn push(&mut self, entry: Entry, pushed: (u64, Untaken)) {
        self.untaken.push_back(pushed);
        // SAFETY: callers hold the memory of the entry until the operation was reported. That is after its submission,
        // wherever the entry waits until then.
        if !self.backlog.is_empty() || unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.backlog.push_back(entry);
        }
    }

    fn push_backlog(&mut self) {
        while let Some(entry) = self.backlog.front() {
            // SAFETY: as in `push`.
            if unsafe { self.ring.submission().push(entry) }.is_err() {
                // The ring is full: one call empties it, unless the kernel is out of memory.
                self.enter(0, None);
                if self.refused || self.ring.submission().is_full() {
                    return;
                }
                continue;
            }
            self.backlog.pop_front();
        }
    }

    /// Submits queued operations.
    pub(super) fn submit(&mut self) {
        self.push_backlog();
        if !self.refused && !self.ring.submission().is_empty() {
            self.enter(0, None);
        }
    }

    #[cfg(test)]
    pub(super) fn check_submitted(&mut self) -> bool {
        self.backlog.is_empty() && self.ring.submission().is_empty()
    }

    /// Submits queued operations, waits for a completion (at most `wait`; not at all if it is zero; `None` is for ever)
    /// and appends token and result of all completed operations. Returns whether some had completed before it began to
    /// wait.
    pub(super) fn take_completions(&mut self, wait: Option<Duration>, reaped: &mut VecDeque<(u64, i32)>) -> bool {
        if let Some(fd) = self.doorbell.filter(|_| !self.listening) {
            self.listening = true;
            let (start, len) = (self.doorbell_count.as_mut_ptr(), self.doorbell_count.len() as u32);
            self.push(opcode::Read::new(Fd(fd), start, len).build().user_data(DOORBELL), (DOORBELL, Untaken(None)));
        }
        self.push_backlog();
        if self.refused {
            self.take_there(reaped);
            return true;
        }
        let were_there = wait == Some(Duration::ZERO) || self.check_completions();
        if wait != Some(Duration::ZERO) {
            // No completion may be in the queue yet, or the wait would be for one more.
            let want = usize::from(self.ring.completion().is_empty());
            let deaf = self.is_deaf.then_some(DEAF_PAUSE);
            self.enter(want, wait.into_iter().chain(deaf).min());
        } else {
            let queue = self.ring.submission();
            if !queue.is_empty() || queue.taskrun() || queue.cq_overflow() {
                drop(queue);
                self.enter(0, None);
            }
        }
        self.take_there(reaped);
        were_there
    }

    /// Appends the operations that have completed, without a system call.
    pub(super) fn take_there(&mut self, reaped: &mut VecDeque<(u64, i32)>) {
        for completion in self.ring.completion() {
            match (completion.user_data(), completion.result()) {
                (NOBODY, _) => {}
                (DOORBELL, result) => {
                    self.listening = false;
                    let passes = [Errno::INTR, Errno::AGAIN, Errno::CANCELED].map(|errno| -errno.raw_os_error());
                    if result < 0 && !passes.contains(&result) {
                        (self.doorbell, self.is_deaf) = (None, true);
                    }
                }
                (token, result) => {
                    self.taken -= 1;
                    reaped.push_back((token, result));
                }
            }
        }
    }

    /// Whether an operation has completed; with `taskrun`, entering the kernel reports it.
    fn check_completions(&mut self) -> bool {
        !self.ring.completion().is_empty() || self.ring.submission().taskrun()
    }

    fn enter(&mut self, want: usize, wait: Option<Duration>) {
        let entered = match wait {
            Some(limit) => {
                let limit = Timespec::new().sec(limit.as_secs()).nsec(limit.subsec_nanos());
                self.ring.submitter().submit_with_args(want, &SubmitArgs::new().timespec(&limit))
            }
            None => self.ring.submitter().submit_and_wait(want),
        };
        let is_stuck = self.note_taken() > 0;
        let Err(error) = entered else {
            self.shortages = 0;
            return;
        };
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            // The wait has ended, or a signal came.
            Some(Errno::TIME | Errno::INTR) if !is_stuck => {}
            // Completions must be taken first, or the kernel is short of memory: it takes the rest in a later round.
            Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN | Errno::NOMEM) => self.note_shortage(),
            _ => self.refused = true,
        }
    }

    /// Counts what the kernel has taken. Returns how much remains.
    fn note_taken(&mut self) -> usize {
        let left = self.ring.submission().len() + self.backlog.len();
        let now = self.untaken.len() - left;
        let operations = self.untaken.drain(..now).filter(|(_, io)| io.0.is_some()).count();
        self.taken += operations;
        left
    }

    fn note_shortage(&mut self) {
        self.shortages += 1;
        self.refused = self.shortages >= SHORTAGES_MAX;
        if self.shortages <= SHORTAGES_AT_ONCE {
            std::thread::yield_now();
        } else {
            std::thread::sleep(SHORTAGE_PAUSE);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may still write the doorbell's count; all other operations were reported before.
        self.stop_listening();
        if self.listening {
            Box::leak(std::mem::take(&mut self.doorbell_count));
        }
    }
}

fn builder() -> Builder {
    IoUring::builder()
}

fn begun_by(may_wait: bool) -> Flags {
    if may_wait { MAY_WAIT } else { Flags::empty() }
}

fn entry(io: &RingOperation) -> Entry {
    match *io {
        RingOperation::ReadV { fd, iovecs, count, offset, may_wait } => {
            opcode::Readv::new(Fd(fd), iovecs.cast(), count).offset(offset).build().flags(begun_by(may_wait))
        }
        RingOperation::WriteV { fd, iovecs, count, offset, may_wait, .. } => {
            opcode::Writev::new(Fd(fd), iovecs.cast(), count).offset(offset).build().flags(begun_by(may_wait))
        }
        RingOperation::WriteUncached { fd, iovecs, count, offset, may_wait, .. } => {
            let write = opcode::Writev::new(Fd(fd), iovecs.cast(), count).offset(offset);
            write.rw_flags(RWF_DONTCACHE as i32).build().flags(begun_by(may_wait))
        }
        RingOperation::Sync { fd, data_only } => {
            let flags = if data_only { FsyncFlags::DATASYNC } else { FsyncFlags::empty() };
            opcode::Fsync::new(Fd(fd)).flags(flags).build()
        }
        RingOperation::SetSize { fd, size } => opcode::Ftruncate::new(Fd(fd), size).build(),
        RingOperation::Allocate { fd, mode, offset, len, .. } => {
            opcode::Fallocate::new(Fd(fd), len).offset(offset).mode(mode as i32).build()
        }
        RingOperation::WaitReadable { fd } => opcode::PollAdd::new(Fd(fd), u32::from(PollFlags::IN.bits())).build(),
        RingOperation::Receive { fd, start, len } => opcode::Recv::new(Fd(fd), start, len).build(),
        RingOperation::Send { fd, message } => {
            opcode::SendMsg::new(Fd(fd), message.cast()).flags(SendFlags::NOSIGNAL.bits()).build()
        }
    }
}
