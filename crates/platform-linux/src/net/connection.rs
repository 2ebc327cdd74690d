//! One connection: a socket on one side, a protocol machine on the other.
//!
//! Owns: the socket, the machine, received bytes not yet taken, output not yet sent.
//! Does not own: the protocol; the sum of all connections (`serve`).
//! Invariants: at most one receive and one send in flight. Nothing is received while the machine
//! wants no input, and no output is asked for while `OUTPUT_BYTES_MAX` wait to be sent.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use engine::Nanos;
use frontend::{Machine, Segment};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use super::serve::{Phase, Place};
use super::socket::{Outgoing, Pending, Received, Socket, receive, send};
use crate::clock;
use crate::reactor::Sleep;

/// Output that waits to be sent before more is asked for.
const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// What a receive asks for: the least, and the most unless the machine knows that more is coming.
const RECEIVE_BYTES_MIN: usize = 16 << 10;
const RECEIVE_BYTES_GROWN: usize = 256 << 10;
/// The most that a receive asks for, whatever the machine hopes for.
const RECEIVE_BYTES_MAX: usize = 4 << 20;
/// Rounds in one poll before other tasks get their turn.
const ROUNDS_MAX: usize = 16;
/// How long a peer gets to take what was sent last before its unread bytes make the close a reset.
const LINGER_NS: u64 = Nanos::SECOND;

pub(super) struct Connection {
    machine: Box<dyn Machine>,
    /// Whether the service can wake it.
    known: bool,
    /// Absent while a receive has it.
    input: Option<BytesMut>,
    receiving: Option<Pending<Received>>,
    receive_bytes: usize,
    /// The peer has said its last.
    ended: bool,
    output: Vec<Segment>,
    output_bytes: usize,
    /// Absent while a send has it.
    outgoing: Option<Outgoing>,
    sending: Option<Pending<(Outgoing, Result<usize, Errno>)>>,
    /// Once everything is answered: until when its peer may still take it.
    lingering: Option<Pin<Box<Sleep>>>,
    /// The last to be dropped: the connection counts until everything above is gone.
    socket: Rc<Socket>,
}

/// The connection is over, in whatever way.
struct Over;

impl Connection {
    pub(super) fn new(fd: OwnedFd, machine: Box<dyn Machine>, place: Arc<Place>) -> Self {
        Self {
            socket: Rc::new(Socket { fd, place }),
            machine,
            known: false,
            input: Some(BytesMut::new()),
            receiving: None,
            receive_bytes: RECEIVE_BYTES_MIN,
            ended: false,
            output: Vec::new(),
            output_bytes: 0,
            outgoing: Some(Outgoing::default()),
            sending: None,
            lingering: None,
        }
    }

    fn place(&self) -> &Place {
        &self.socket.place
    }

    /// Does what can be done now; says whether anything was.
    fn round(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let mut moved = self.take_sent(cx)?;
        moved |= self.take_received(cx)?;
        moved |= self.take_output(cx);
        // What was started is polled in the next round, so that it wakes this task.
        moved |= self.start_send();
        moved |= self.start_receive();
        Ok(moved)
    }

    fn take_sent(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let Some(sending) = &mut self.sending else { return Ok(false) };
        let Poll::Ready((mut outgoing, result)) = sending.poll(cx) else { return Ok(false) };
        self.sending = None;
        match result {
            Ok(count) => {
                outgoing.sent(count);
                self.place().count_out(count);
            }
            Err(Errno::INTR | Errno::AGAIN | Errno::NOBUFS) => {}
            Err(_) => return Err(Over),
        }
        self.outgoing = Some(outgoing);
        Ok(true)
    }

    fn take_received(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let Some(receiving) = &mut self.receiving else { return Ok(false) };
        let Poll::Ready((mut input, result)) = receiving.poll(cx) else { return Ok(false) };
        self.receiving = None;
        match result {
            Ok(0) => self.ended = true,
            Ok(count) => {
                self.place().count_in(count);
                self.adapt(count);
                if self.lingering.is_some() {
                    input.clear();
                } else if self.machine.receive(&mut input).is_err() {
                    self.place().count_protocol_error();
                    return Err(Over);
                }
            }
            Err(Errno::INTR | Errno::AGAIN | Errno::NOBUFS) => {}
            Err(_) => return Err(Over),
        }
        self.input = Some(input);
        Ok(true)
    }

    /// Asks for more next time if as much came as was asked for, for less if little came.
    fn adapt(&mut self, count: usize) {
        if count >= self.receive_bytes {
            self.receive_bytes = (self.receive_bytes * 2).min(RECEIVE_BYTES_GROWN);
        } else if count < self.receive_bytes / 4 {
            self.receive_bytes = (self.receive_bytes / 2).max(RECEIVE_BYTES_MIN);
        }
    }

    fn take_output(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        // What a send has is bounded by what it was given.
        while self.output_bytes < OUTPUT_BYTES_MAX {
            let before = self.output.len();
            if self.machine.poll_output(cx, &mut self.output).is_pending() {
                break;
            }
            self.output_bytes += self.output[before..].iter().map(Segment::len).sum::<usize>();
            moved = true;
        }
        let calls = self.machine.calls_in_progress();
        self.place().set_calls(calls);
        moved
    }

    fn start_send(&mut self) -> bool {
        let Some(outgoing) = &mut self.outgoing else { return false };
        outgoing.append(&mut self.output);
        self.output_bytes = 0;
        if outgoing.bytes() == 0 {
            return false;
        }
        let outgoing = std::mem::take(outgoing);
        self.outgoing = None;
        self.sending = Some(send(&self.socket, outgoing));
        true
    }

    fn start_receive(&mut self) -> bool {
        let wanted = match self.place().phase() {
            _ if self.ended || self.input.is_none() => false,
            _ if self.lingering.is_some() => true,
            Phase::Serving => self.machine.wants_input(),
            Phase::Finishing | Phase::Closing => false,
        };
        let Some(mut input) = self.input.take_if(|_| wanted) else { return false };
        if input.is_empty() && input.capacity() > RECEIVE_BYTES_GROWN {
            // An idle connection keeps no buffer that only a large record needed.
            input = BytesMut::new();
        }
        let hint = self.machine.input_hint(&input).min(RECEIVE_BYTES_MAX);
        self.receiving = Some(receive(&self.socket, input, hint.max(self.receive_bytes)));
        true
    }

    /// Whether everything that was asked is answered and sent.
    fn is_quiet(&self) -> bool {
        self.outgoing.as_ref().is_some_and(|outgoing| outgoing.bytes() == 0)
            && self.output.is_empty()
            && self.machine.calls_in_progress() == 0
    }

    /// Whether the connection is over. One that we end is first closed for writing only, and what
    /// the peer still sends is read away: a full close with bytes unread would be a reset, and could
    /// take the last answers with it.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        if self.place().phase() == Phase::Closing {
            return true;
        }
        if let Some(until) = &mut self.lingering {
            return self.ended || until.as_mut().poll(cx).is_ready();
        }
        let quiet = self.is_quiet();
        self.place().set_busy(!quiet);
        if self.place().goes(!quiet) {
            // What was sent last is on its way and nothing that came is unread; a client connects again.
            return true;
        }
        if !quiet {
            return false;
        }
        if !self.ended && self.place().phase() == Phase::Finishing {
            // What was on its way to us is not answered any more.
            self.receiving = None;
            self.input.get_or_insert_default().clear();
            let _ = shutdown(&self.socket.fd, Shutdown::Write);
            self.lingering = Some(Box::pin(self.place().sleep_until(clock::monotonic().after(LINGER_NS))));
            cx.waker().wake_by_ref();
            return false;
        }
        self.ended
    }
}

impl Future for Connection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let connection = self.get_mut();
        if !connection.known {
            connection.known = true;
            connection.place().keep_waker(cx.waker());
        }
        for _ in 0..ROUNDS_MAX {
            match connection.round(cx) {
                Err(Over) => return Poll::Ready(()),
                Ok(true) => {}
                Ok(false) if connection.is_over(cx) => return Poll::Ready(()),
                Ok(false) => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
