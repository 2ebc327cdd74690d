//! Streams of bytes over a link, each with two ends.
//!
//! A stream's bytes travel in the pieces in which they were sent and are never copied. A piece arrives with its last
//! byte. It takes up the stream's window from its sending until one delay after it is received, as an acknowledgement
//! has to travel. A sender waits for free space in the window. So a reader that does not read stops its writer, and no
//! stream is faster than one window in a round trip.
//!
//! Owns: the pieces in transit, the window, the tasks that wait for either.
//! Does not own: the arrival times of pieces (`direction`).
//! Invariants: pieces arrive in the order sent. At most the window, or one piece, is in transit. The drop of one end is
//! visible at the other: pieces sent before still arrive, and pieces sent to the dropped end are dropped.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::line::Line;

/// The other end is gone, and nobody receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the other end of the connection is gone")]
pub struct Closed;

struct Piece {
    bytes: Bytes,
    /// [`u64::MAX`] is never.
    arrives_ns: u64,
    /// The receiver's wake-up for that instant is scheduled.
    armed: bool,
}

/// One direction of a stream.
#[derive(Default)]
struct Half {
    pieces: VecDeque<Piece>,
    /// Bytes that take up the window.
    held_bytes: u64,
    /// The instants at which some of those bytes leave the window, and their numbers.
    freed: VecDeque<(u64, u64)>,
    receiver: Option<Waker>,
    sender: Option<Waker>,
    sender_gone: bool,
    receiver_gone: bool,
}

pub(super) struct Stream {
    line: Arc<Line>,
    number: u64,
    /// Towards end 0, towards end 1.
    halves: Mutex<[Half; 2]>,
}

impl Stream {
    pub(super) fn new(line: Arc<Line>, number: u64) -> Arc<Self> {
        Arc::new(Self { line, number, halves: Mutex::default() })
    }

    pub(super) fn ends(self: &Arc<Self>) -> (LinkEnd, LinkEnd) {
        (LinkEnd { stream: Arc::clone(self), end: 0 }, LinkEnd { stream: Arc::clone(self), end: 1 })
    }

    fn lock(&self) -> MutexGuard<'_, [Half; 2]> {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pieces that would arrive after `from_ns` arrive later by `late_ns`.
    pub(super) fn delay(&self, towards: usize, from_ns: u64, late_ns: u64) {
        let mut halves = self.lock();
        for piece in halves[towards].pieces.iter_mut().filter(|piece| piece.arrives_ns > from_ns) {
            piece.arrives_ns = piece.arrives_ns.saturating_add(late_ns);
            // A receiver that is woken too early checks again.
            piece.armed = false;
        }
        let receiver = halves[towards].receiver.take();
        drop(halves);
        receiver.into_iter().for_each(Waker::wake);
    }
}

impl Half {
    fn free(&mut self, now_ns: u64) {
        while let Some((at_ns, bytes)) = self.freed.front().copied()
            && at_ns <= now_ns
        {
            self.held_bytes -= bytes;
            self.freed.pop_front();
        }
    }
}

/// One end of a stream. One task at a time may use it for each direction.
pub struct LinkEnd {
    stream: Arc<Stream>,
    end: usize,
}

impl LinkEnd {
    /// Sends all of `bytes` if they fit into the window. Otherwise it sends nothing and wakes the caller when it
    /// should try again. Empty `bytes` are always sent.
    pub fn poll_send(&self, cx: &mut Context<'_>, bytes: &mut Bytes) -> Poll<Result<(), Closed>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let (line, towards) = (&self.stream.line, 1 - self.end);
        let now_ns = line.shared.now_ns();
        let mut halves = self.stream.lock();
        let half = &mut halves[towards];
        if half.receiver_gone {
            return Poll::Ready(Err(Closed));
        }
        half.free(now_ns);
        let len = bytes.len() as u64;
        if half.held_bytes > 0 && half.held_bytes + len > line.options.window_bytes {
            half.sender = Some(cx.waker().clone());
            if let Some((at_ns, _)) = half.freed.front() {
                line.shared.wake_at(*at_ns, cx.waker().clone());
            }
            return Poll::Pending;
        }
        let last_ns = half.pieces.back().map_or(0, |piece| piece.arrives_ns);
        let arrives_ns = line.pass(towards, now_ns, len).map_or(u64::MAX, |at_ns| at_ns.max(last_ns));
        line.shared.trace("link", &[line.number, self.stream.number, towards as u64, len, arrives_ns]);
        let armed = match half.receiver.take_if(|_| arrives_ns < u64::MAX) {
            Some(receiver) => {
                line.shared.wake_at(arrives_ns, receiver);
                true
            }
            None => false,
        };
        half.held_bytes += len;
        half.pieces.push_back(Piece { bytes: std::mem::take(bytes), arrives_ns, armed });
        Poll::Ready(Ok(()))
    }

    /// Sends all of `bytes`; waits for free space in the window.
    pub async fn send(&self, mut bytes: Bytes) -> Result<(), Closed> {
        poll_fn(|cx| self.poll_send(cx, &mut bytes)).await
    }

    /// The next piece, once it has arrived; `None` after the last piece if the other end is gone.
    pub fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let line = &self.stream.line;
        let now_ns = line.shared.now_ns();
        let mut halves = self.stream.lock();
        let half = &mut halves[self.end];
        let Some(first) = half.pieces.front_mut() else {
            if half.sender_gone {
                return Poll::Ready(None);
            }
            half.receiver = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if first.arrives_ns > now_ns {
            half.receiver = Some(cx.waker().clone());
            if !first.armed && first.arrives_ns < u64::MAX {
                first.armed = true;
                line.shared.wake_at(first.arrives_ns, cx.waker().clone());
            }
            return Poll::Pending;
        }
        let taken = half.pieces.pop_front();
        let bytes = taken.map(|piece| piece.bytes).unwrap_or_default();
        half.freed.push_back((now_ns.saturating_add(line.options.delay_ns), bytes.len() as u64));
        let sender = half.sender.take();
        drop(halves);
        sender.into_iter().for_each(Waker::wake);
        Poll::Ready(Some(bytes))
    }

    /// The next piece: see [`LinkEnd::poll_receive`].
    pub async fn receive(&self) -> Option<Bytes> {
        poll_fn(|cx| self.poll_receive(cx)).await
    }

    /// Whether everything sent from this end has been received at the other.
    pub fn is_taken(&self) -> bool {
        self.stream.lock()[1 - self.end].pieces.is_empty()
    }
}

impl Drop for LinkEnd {
    fn drop(&mut self) {
        let mut halves = self.stream.lock();
        let [own, other] = match self.end {
            0 => {
                let [own, other] = &mut *halves;
                [own, other]
            }
            _ => {
                let [other, own] = &mut *halves;
                [own, other]
            }
        };
        own.receiver_gone = true;
        other.sender_gone = true;
        let dropped = std::mem::take(&mut own.pieces);
        let woken = [own.sender.take(), other.receiver.take()];
        drop(halves);
        drop(dropped);
        woken.into_iter().flatten().for_each(Waker::wake);
    }
}
