//! The loops in which one thread gives back frames that another took.
//!
//! Owns: netperf's ring between a sender and a receiver, hackbench's mailboxes.
//! Does not own: the clock, the random numbers.
//! Invariants: both are bounded; messages that are left in a mailbox at the end are given back outside of the measured
//! time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use afflux_kernels::zone::Mobility;

use super::user::{Allocator, User};

/// Buffers between a sender and its receiver.
const RING: u64 = 128;
/// With one thread: buffers sent before as many are received.
const BURST: u64 = 32;
/// Looks at a full or empty ring before the thread yields.
const LOOKS: u32 = 64;
/// Tasks of a thread, as one group of hackbench: 20 senders, 20 receivers.
const TASKS: usize = 40;
/// Most messages that wait for a task; further ones are dropped.
const WAITING: usize = 16;
/// Bytes of a message, as hackbench's, in whole words.
const MESSAGE_BYTES: usize = 104;

#[repr(align(128))]
struct CachePadded(AtomicU64);

/// A ring between one sender and one receiver.
pub(super) struct Ring {
    sent: CachePadded,
    received: CachePadded,
    slots: Box<[AtomicU32]>,
}

impl Ring {
    pub(super) fn new() -> Self {
        let slots = (0..RING).map(|_| AtomicU32::new(0)).collect();
        Self { sent: CachePadded(AtomicU64::new(0)), received: CachePadded(AtomicU64::new(0)), slots }
    }

    /// Passes that many messages of `kib` KiB. Of two threads the first sends and the second receives; a single thread
    /// does both alternately.
    pub(super) fn netperf<A: Allocator>(
        &self,
        user: &mut User<'_, A>,
        thread: usize,
        threads: usize,
        messages: u64,
        kib: u32,
    ) {
        let order = kib.div_ceil(4).next_power_of_two().ilog2() as u8;
        let in_one = u64::from(4 / kib.clamp(1, 4));
        let buffers = messages.div_ceil(in_one);
        match (threads, thread) {
            (1, _) => {
                for _ in 0..buffers.div_ceil(BURST) {
                    (0..BURST).for_each(|_| self.send(user, order, kib, in_one));
                    (0..BURST).for_each(|_| self.receive(user, order));
                }
            }
            (_, 0) => (0..buffers).for_each(|_| self.send(user, order, kib, in_one)),
            _ => (0..buffers).for_each(|_| self.receive(user, order)),
        }
    }

    fn send<A: Allocator>(&self, user: &mut User<'_, A>, order: u8, kib: u32, in_one: u64) {
        let taken = user.take(order, Mobility::Unmovable);
        let bytes = kib as usize * 1024;
        if let Some(frame) = taken {
            (0..in_one as usize).for_each(|message| user.memory.fill(frame, message * bytes, bytes));
        }
        let sent = self.sent.0.load(Ordering::Relaxed);
        wait_until(|| sent - self.received.0.load(Ordering::Acquire) < RING);
        self.slots[(sent % RING) as usize].store(taken.unwrap_or(u32::MAX), Ordering::Relaxed);
        self.sent.0.store(sent + 1, Ordering::Release);
    }

    fn receive<A: Allocator>(&self, user: &mut User<'_, A>, order: u8) {
        let received = self.received.0.load(Ordering::Relaxed);
        wait_until(|| self.sent.0.load(Ordering::Acquire) > received);
        let frame = self.slots[(received % RING) as usize].load(Ordering::Relaxed);
        self.received.0.store(received + 1, Ordering::Release);
        if frame != u32::MAX {
            user.give(frame, order);
        }
    }
}

/// Waits for the other thread, which always comes: it counts the same buffers.
fn wait_until(there: impl Fn() -> bool) {
    let mut looks = 0;
    while !there() {
        looks += 1;
        if looks % LOOKS == 0 {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Messages that wait for their task.
pub(super) struct Mailboxes(Vec<Mutex<Vec<u32>>>);

impl Mailboxes {
    pub(super) fn new(threads: usize) -> Self {
        Self((0..threads * TASKS).map(|_| Mutex::new(Vec::with_capacity(WAITING))).collect())
    }

    /// Each task of this thread in turn sends a message to any task, and gives back the messages that it received.
    pub(super) fn exchange<A: Allocator>(&self, user: &mut User<'_, A>, thread: usize, messages: u64) {
        let mut got = Vec::with_capacity(WAITING);
        for message in 0..messages {
            let own = thread * TASKS + message as usize % TASKS;
            let other = user.random.below(self.0.len() as u64) as usize;
            // Now and then the message opens a file or a socket.
            let class = if message % 8 == 0 { Mobility::Reclaimable } else { Mobility::Unmovable };
            if let Some(frame) = user.take(0, class) {
                user.memory.fill(frame, 0, MESSAGE_BYTES);
                if !self.post(other, frame) {
                    user.give(frame, 0);
                }
            }
            std::mem::swap(&mut got, &mut self.0[own].lock().unwrap_or_else(PoisonError::into_inner));
            got.drain(..).for_each(|frame| user.give(frame, 0));
        }
    }

    fn post(&self, task: usize, frame: u32) -> bool {
        let mut waiting = self.0[task].lock().unwrap_or_else(PoisonError::into_inner);
        let room = waiting.len() < WAITING;
        if room {
            waiting.push(frame);
        }
        room
    }

    /// Gives back the messages that no task received.
    pub(super) fn give_back<A: Allocator>(&self, user: &mut User<'_, A>) {
        for waiting in &self.0 {
            let left = std::mem::take(&mut *waiting.lock().unwrap_or_else(PoisonError::into_inner));
            left.into_iter().for_each(|frame| user.give(frame, 0));
        }
    }
}
