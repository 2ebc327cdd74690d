//! Operations on sockets as futures, and output in flight.
//!
//! Owns: the memory of each operation until the reactor has reported it.
//! Does not own: the bytes to send and the moment of a send (`connection`); descriptors are shared with it.
//! Invariants: a dropped operation is cancelled, and its memory lives until that is done. A segment is dropped as soon
//! as the kernel has taken its last byte.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afflux_frontend::Segment;
use bytes::BytesMut;
use rustix::io::Errno;

use super::service::Membership;
use afflux_linux_device::reactor::io::{IOVECS_MAX, IoVec, Message, Owner, RingOperation};
use afflux_linux_device::reactor::{Reactor, Token};

/// Most bytes of one send: a fast network takes them in a fraction of a millisecond, so that pages are released one
/// batch after the other.
const SEND_BYTES_MAX: usize = 1 << 20;

/// A connection's socket. It holds the connection's slot: a connection counts as long as the kernel has anything of it.
pub(super) struct Socket {
    pub(super) fd: OwnedFd,
    pub(super) membership: Arc<Membership>,
}

/// An operation: in flight, or over. The next operation of its kind reuses the memory of one that is over.
pub(super) struct Pending<M, T, H> {
    shared: Rc<RefCell<Shared<M, T, H>>>,
    reactor: Rc<Reactor>,
    token: Token,
}

struct Shared<M, T, H> {
    state: IoState<T>,
    /// The reactor's box, empty, for the next operation.
    spare: Option<Box<InFlightIo<M, T, H>>>,
}

enum IoState<T> {
    Waiting(Option<Waker>),
    Done(T),
    /// The outcome was taken, or its future was dropped.
    Over,
}

/// The reactor holds this while an operation is in flight.
struct InFlightIo<M, T, H>(Option<IoOperation<M, T, H>>);

/// The memory, and the function that makes an outcome of it.
struct IoOperation<M, T, H> {
    shared: Rc<RefCell<Shared<M, T, H>>>,
    memory: M,
    finish: fn(M, Result<usize, Errno>) -> T,
    /// The descriptor, and all else that must outlive the memory.
    held: H,
}

impl<M, T, H> Owner for InFlightIo<M, T, H> {
    fn completed(mut self: Box<Self>, result: i32) {
        let Some(IoOperation { shared, memory, finish, held }) = self.0.take() else { return };
        let result = usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
        let outcome = finish(memory, result);
        let waker = match &mut shared.borrow_mut().state {
            IoState::Waiting(waker) => waker.take(),
            // The future was dropped meanwhile: the outcome is dropped, too, and after it `held`.
            _ => return drop((outcome, held)),
        };
        *shared.borrow_mut() = Shared { state: IoState::Done(outcome), spare: Some(self) };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<M: 'static, T: 'static, H: 'static> Pending<M, T, H> {
    /// Starts `io` on this thread's reactor, in the memory of an `earlier` operation that is over.
    ///
    /// # Safety
    /// `io` points into `memory`, and these bytes stay in place when `memory` moves. The descriptor is `held`'s.
    ///
    /// # Panics
    /// If no reactor drives this thread.
    unsafe fn start(
        earlier: Option<Self>,
        io: RingOperation,
        memory: M,
        held: H,
        finish: fn(M, Result<usize, Errno>) -> T,
    ) -> Self {
        let fresh = || Rc::new(RefCell::new(Shared { state: IoState::Over, spare: None }));
        // The earlier operation is dropped here, before its state is reused.
        let shared = earlier.map_or_else(fresh, |earlier| Rc::clone(&earlier.shared));
        let spare =
            std::mem::replace(&mut *shared.borrow_mut(), Shared { state: IoState::Waiting(None), spare: None }).spare;
        let mut kept = spare.unwrap_or_else(|| Box::new(InFlightIo(None)));
        kept.0 = Some(IoOperation { shared: Rc::clone(&shared), memory, finish, held });
        let Some(reactor) = Reactor::with_current(Rc::clone) else { unreachable!("connections live on reactors") };
        // SAFETY: the caller's promise.
        match unsafe { reactor.start(io, kept) } {
            Ok(token) => Self { shared, reactor, token },
            Err(_) => unreachable!("every driver takes socket operations"),
        }
    }

    /// Asks the kernel to end it soon. It ends with `CANCELED`, unless its outcome is there already.
    pub(super) fn cancel(&self) {
        if matches!(self.shared.borrow().state, IoState::Waiting(_)) {
            self.reactor.cancel(self.token);
        }
    }

    /// The outcome, once.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let state = &mut self.shared.borrow_mut().state;
        if let IoState::Waiting(waker) = state {
            if waker.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
            return Poll::Pending;
        }
        match std::mem::replace(state, IoState::Over) {
            IoState::Done(outcome) => Poll::Ready(outcome),
            _ => unreachable!("polled after it was ready"),
        }
    }
}

impl<M, T, H> Drop for Pending<M, T, H> {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut self.shared.borrow_mut().state, IoState::Over);
        if matches!(before, IoState::Waiting(_)) {
            self.reactor.cancel(self.token);
        }
    }
}

/// Waits until there is a connection to accept.
///
/// An accept of io_uring would wait by itself. But the kernel wakes only the first of those that wait so. This may be
/// the ring of a killed predecessor, which ends a little later than its process. It would take the wake-up with it.
pub(super) fn connection_waits(listener: &Arc<OwnedFd>) -> Pending<(), Result<(), Errno>, Arc<OwnedFd>> {
    let io = RingOperation::WaitReadable { fd: listener.as_raw_fd() };
    // SAFETY: the operation points to nothing, and the descriptor is held.
    unsafe { Pending::start(None, io, (), Arc::clone(listener), |(), result| result.map(drop)) }
}

/// The outcome of a receive: the buffer, longer by the received bytes (none at the stream's end).
pub(super) type Received = (BytesMut, Result<usize, Errno>);

pub(super) type Receiving = Pending<BytesMut, Received, Rc<Socket>>;

/// Receives once, at most `bytes_max`, behind the bytes in `buffer`.
pub(super) fn receive(
    earlier: Option<Receiving>,
    socket: &Rc<Socket>,
    mut buffer: BytesMut,
    bytes_max: usize,
) -> Receiving {
    buffer.reserve(bytes_max);
    let spare = buffer.spare_capacity_mut();
    let len = spare.len().min(bytes_max).min(u32::MAX as usize) as u32;
    let io = RingOperation::Receive { fd: socket.fd.as_raw_fd(), start: spare.as_mut_ptr().cast(), len };
    // SAFETY: the buffer is the memory, and its bytes do not move with it; the descriptor is held.
    unsafe {
        Pending::start(earlier, io, buffer, Rc::clone(socket), |mut buffer, result| {
            let count = *result.as_ref().unwrap_or(&0);
            // SAFETY: the kernel has filled that many bytes of the spare capacity.
            buffer.set_len(buffer.len() + count);
            (buffer, result)
        })
    }
}

/// Output in order; its front is being sent.
#[derive(Default)]
pub(super) struct Outgoing {
    segments: VecDeque<Segment>,
    /// Bytes of the first segment that have been sent.
    skip: usize,
    bytes: usize,
    iovecs: Vec<IoVec>,
    /// One message while a send is in flight. The kernel reads the message in place: pointers into a vector stay valid
    /// when the vector moves, and those into a box would not.
    message: Vec<Message>,
}

impl Outgoing {
    /// Bytes not sent yet.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends the contents of `segments`, and empties it.
    pub(super) fn append(&mut self, segments: &mut Vec<Segment>) {
        for segment in segments.drain(..).filter(|segment| !segment.is_empty()) {
            self.bytes += segment.len();
            self.segments.push_back(segment);
        }
    }

    /// Releases the first `count` bytes.
    pub(super) fn sent(&mut self, mut count: usize) {
        assert!(count <= self.bytes, "the kernel took more than there was");
        self.bytes -= count;
        while let Some(front) = self.segments.front() {
            let left = front.len() - self.skip;
            if count < left {
                self.skip += count;
                return;
            }
            count -= left;
            self.skip = 0;
            self.segments.pop_front();
        }
    }

    /// Collects the pieces of the next send.
    fn lay_out(&mut self) {
        self.iovecs.clear();
        let (mut skip, mut bytes) = (self.skip, 0);
        let mut add = |slice: &[u8]| {
            if skip >= slice.len() {
                skip -= slice.len();
                return true;
            }
            let slice = &slice[std::mem::take(&mut skip)..];
            let len = slice.len().min(SEND_BYTES_MAX - bytes);
            self.iovecs.push(IoVec { start: slice.as_ptr().cast_mut(), len });
            bytes += len;
            bytes < SEND_BYTES_MAX && self.iovecs.len() < IOVECS_MAX
        };
        let mut segments = self.segments.iter();
        while segments.next().is_some_and(|segment| match segment {
            Segment::Bytes(slice) => add(slice),
            Segment::Lent(slice) => add(slice),
            Segment::Pages(pages) => pages.slices().all(&mut add),
        }) {}
    }
}

/// The outcome of a send: the unsent output, and the number of bytes that the kernel took.
pub(super) type Sent = (Outgoing, Result<usize, Errno>);

pub(super) type Sending = Pending<Outgoing, Sent, Rc<Socket>>;

/// Sends from the front of `outgoing`, as much as the kernel takes at once.
pub(super) fn send(earlier: Option<Sending>, socket: &Rc<Socket>, mut outgoing: Outgoing) -> Sending {
    outgoing.lay_out();
    outgoing.message.clear();
    outgoing.message.push(Message::new(&outgoing.iovecs));
    let io = RingOperation::Send { fd: socket.fd.as_raw_fd(), message: outgoing.message.as_ptr() };
    // SAFETY: the message, its vector and the segments it points into are the memory, and none of them moves with it;
    // no segment is released before the report. The descriptor is held.
    unsafe {
        Pending::start(earlier, io, outgoing, Rc::clone(socket), |mut outgoing, result| {
            outgoing.message.clear();
            (outgoing, result)
        })
    }
}
