//! One connection: a socket on one side, a protocol machine on the other.
//!
//! Owns: the socket, the machine, received bytes not yet taken, output not yet sent.
//! Does not own: the protocol; the sum of all connections (`serve`).
//! Invariants: at most one receive and one send in flight. Nothing is received while the machine
//! wants no input, and no output is asked for while `OUTPUT_BYTES_MAX` wait to be sent. What the machine and
//! the buffer hold counts, and is permitted before it is there: a record is received only into room for the
//! whole of it, so that one that is begun can be finished. A buffer that a machine's records share is theirs:
//! what is received next goes to another.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_engine::Nanos;
use afflux_frontend::{Machine, Segment};
use bytes::BytesMut;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use super::serve::{Phase, Place};
use super::socket::{Outgoing, Receiving, Sending, Socket, receive, send};
use crate::clock;
use crate::reactor::Sleep;

/// Output that waits to be sent before more is asked for.
const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// What a receive asks for: the least, and the most unless the machine knows that more is coming.
const RECEIVE_BYTES_MIN: usize = 16 << 10;
const RECEIVE_BYTES_GROWN: usize = 256 << 10;
/// The most that a receive asks for, whatever the machine hopes for.
const RECEIVE_BYTES_MAX: usize = 4 << 20;
/// What is reserved for one poll of the machine: the largest reply, and as much again for smaller ones.
const POLL_BYTES: u64 = 2 << 20;
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
    receiving: Option<Receiving>,
    /// The last that is over, for its memory; so below.
    received: Option<Receiving>,
    receive_bytes: usize,
    /// How large the buffer that a receive has is, and the one that `input` was made as.
    receiving_into: usize,
    buffer_bytes: usize,
    /// A record has begun and not ended.
    unfinished: bool,
    /// The buffer is to be no larger than needed.
    shrinks: bool,
    /// What the machine was last told that it may hold.
    room: u64,
    /// There is no room to receive into.
    lacks_room: bool,
    /// The service wakes it when there is room.
    waits_for_room: bool,
    /// The peer has said its last.
    ended: bool,
    output: Vec<Segment>,
    output_bytes: usize,
    /// Absent while a send has it.
    outgoing: Option<Outgoing>,
    sending: Option<Sending>,
    sent: Option<Sending>,
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
            received: None,
            receive_bytes: RECEIVE_BYTES_MIN,
            receiving_into: 0,
            buffer_bytes: 0,
            unfinished: false,
            shrinks: false,
            room: 0,
            lacks_room: false,
            waits_for_room: false,
            ended: false,
            output: Vec::new(),
            output_bytes: 0,
            outgoing: Some(Outgoing::default()),
            sending: None,
            sent: None,
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
        self.shrink();
        // What was started is polled in the next round, so that it wakes this task.
        moved |= self.start_send();
        moved |= self.start_receive();
        moved |= self.wait_for_room(cx);
        Ok(moved)
    }

    fn take_sent(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let Some(sending) = &mut self.sending else { return Ok(false) };
        let Poll::Ready((mut outgoing, result)) = sending.poll(cx) else { return Ok(false) };
        self.sent = self.sending.take();
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
        self.received = self.receiving.take();
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
            Err(Errno::INTR | Errno::AGAIN | Errno::NOBUFS | Errno::CANCELED) => {}
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
        let held = self.place().held();
        let mut last = 0;
        // What a send has is bounded by what it was given.
        while self.output_bytes < OUTPUT_BYTES_MAX {
            let before = self.output.len();
            let room = self.make_room();
            let pending = self.machine.poll_output(cx, &mut self.output).is_pending();
            self.output_bytes += self.output[before..].iter().map(Segment::len).sum::<usize>();
            self.place().hold(self.held_bytes(), held);
            // Asked again if only what was reserved for one poll was used up.
            if pending && !(self.machine.lacks_room() && room > last) {
                break;
            }
            last = room;
            moved |= !pending;
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
        self.sending = Some(send(self.sent.take(), &self.socket, outgoing));
        true
    }

    /// Has the machine hold as much as it may; says how much that is.
    fn make_room(&mut self) -> u64 {
        let more = if self.machine.calls_in_progress() > 0 { POLL_BYTES } else { 0 };
        self.room = self.place().reserve(more).saturating_sub(self.input_bytes());
        self.machine.set_room(self.room);
        self.room
    }

    fn input_bytes(&self) -> u64 {
        self.input.as_ref().map_or(self.receiving_into, BytesMut::capacity) as u64
    }

    fn held_bytes(&self) -> u64 {
        self.machine.held_bytes() + self.input_bytes()
    }

    /// Lets go of a large buffer if the connection has been told that it is silent.
    fn shrink(&mut self) {
        if !self.place().is_to_shrink() || self.unfinished {
            return;
        }
        self.receive_bytes = RECEIVE_BYTES_MIN;
        self.shrinks = true;
        self.machine.shrink();
        if let Some(receiving) = self.receiving.as_ref().filter(|_| self.receiving_into > RECEIVE_BYTES_MIN) {
            // What comes in the meantime is not lost: the receive then ends with it.
            receiving.cancel();
        }
    }

    /// Tells the service what it needs to know to make room, and waits for room if that is what is missing.
    /// True if there is some now.
    fn wait_for_room(&mut self, cx: &Context<'_>) -> bool {
        // One that waits for room itself, with nothing but the beginning of a record, is in the way of others too.
        let receives = self.unfinished && (self.receiving.is_some() || (self.lacks_room && self.is_quiet()));
        self.place().set_waits_for_peer(receives || self.sending.is_some());
        if !self.lacks_room && !self.machine.lacks_room() {
            if std::mem::take(&mut self.waits_for_room) {
                self.place().waits_no_more();
            }
            return false;
        }
        self.waits_for_room = true;
        self.place().wait_for_room(cx.waker());
        // Asked once more: what came back before the waker was known wakes nobody.
        let (room, held) = (self.room, self.place().held());
        let more = self.machine.lacks_room() && self.make_room() > room;
        self.place().hold(held, held);
        more || self.start_receive()
    }

    /// How many bytes to receive into `input`; none while there is no room for them.
    fn receivable(&mut self, input: &mut BytesMut) -> Option<usize> {
        let hint = self.machine.input_hint(input).min(RECEIVE_BYTES_MAX);
        self.unfinished = !input.is_empty() || (self.is_quiet() && self.machine.held_bytes() > 0);
        if self.lingering.is_some() {
            return Some(RECEIVE_BYTES_MIN);
        }
        let outgrown = self.buffer_bytes > RECEIVE_BYTES_GROWN.max(2 * (input.len() + hint));
        if std::mem::take(&mut self.shrinks) || outgrown {
            // A large buffer is for large records: neither idle connections nor small records keep it.
            self.replace(input, 0);
        }
        let wanted = hint.max(self.receive_bytes);
        let mut sizes = [(wanted, wanted == hint), (hint.max(RECEIVE_BYTES_MIN), true), (hint, true)];
        if input.len() >= RECEIVE_BYTES_GROWN {
            // The room for a large record is there: it is not moved for the sake of what may follow it.
            sizes.reverse();
        }
        let found = sizes.into_iter().find_map(|(bytes, known)| self.fit(input, bytes, known));
        if found.is_none() && self.buffer_bytes > input.len() {
            // Until there is room it keeps no more than has come.
            self.replace(input, 0);
            let held = self.place().held();
            self.place().hold(self.machine.held_bytes() + input.capacity() as u64, held);
        }
        found
    }

    /// Makes room for `bytes` behind what is in `input`, if the connection may hold that: in the same
    /// buffer, if it has the whole of it for itself, or in one of the right size. `known` is whether so many
    /// are sure to come.
    fn fit(&mut self, input: &mut BytesMut, bytes: usize, known: bool) -> Option<usize> {
        let machine = self.machine.held_bytes();
        let (len, capacity) = (input.len(), self.buffer_bytes);
        if len + bytes <= capacity
            && input.try_reclaim(capacity - len)
            && self.place().try_hold(machine + capacity as u64, known)
        {
            return Some(bytes);
        }
        if !self.place().try_hold(machine + (len + bytes) as u64, known) {
            return None;
        }
        self.replace(input, bytes);
        Some(bytes)
    }

    /// Moves what is in `input` to a buffer of its own, with room for so many more `bytes`.
    fn replace(&mut self, input: &mut BytesMut, bytes: usize) {
        let mut buffer = BytesMut::with_capacity(input.len() + bytes);
        buffer.extend_from_slice(input);
        self.buffer_bytes = buffer.capacity();
        *input = buffer;
    }

    fn start_receive(&mut self) -> bool {
        let wanted = match self.place().phase() {
            _ if self.ended || self.input.is_none() => false,
            _ if self.lingering.is_some() => true,
            Phase::Serving => self.machine.wants_input(),
            Phase::Finishing | Phase::Closing => false,
        };
        self.lacks_room = false;
        if let Some(input) = self.input.as_mut().filter(|input| !wanted && input.is_empty()) {
            // A connection that has enough to do needs no buffer.
            *input = BytesMut::new();
            self.buffer_bytes = 0;
        }
        let Some(mut input) = self.input.take_if(|_| wanted) else { return false };
        let Some(bytes) = self.receivable(&mut input) else {
            self.input = Some(input);
            self.lacks_room = true;
            return false;
        };
        self.receiving_into = input.capacity();
        self.receiving = Some(receive(self.received.take(), &self.socket, input, bytes));
        true
    }

    /// Says whether the peer waits for us: what it sent is not received for want of room, and it is not the peer that
    /// has to take replies first.
    fn note_unread(&self) {
        let serving = self.place().phase() == Phase::Serving && !self.ended;
        self.place().set_unread(serving && self.receiving.is_none() && self.sending.is_none());
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
        // A peer that has sent nothing more does not wait to be read.
        if self.place().goes(!quiet, || rustix::io::ioctl_fionread(&self.socket.fd).is_ok_and(|bytes| bytes > 0)) {
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
                Ok(false) => {
                    connection.note_unread();
                    return if connection.is_over(cx) { Poll::Ready(()) } else { Poll::Pending };
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
