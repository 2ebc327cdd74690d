//! One connection: a socket on one side, a protocol machine on the other.
//!
//! Owns: the socket, the machine, received bytes not yet taken, output not yet sent.
//! Does not own: the protocol; the sum of all connections (`serve`).
//! Invariants: at most one receive and one send in flight. Nothing is received while the machine wants no input, and no
//! output is requested while `OUTPUT_BYTES_MAX` wait to be sent. Bytes held by the machine and the buffer count, and
//! are permitted before they arrive. A record is received only if the quota covers the whole of it, so that each begun
//! record can be finished. A buffer that a machine's records share stays theirs: the next receive goes to another
//! buffer.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_engine::Nanos;
use afflux_frontend::{ProtocolMachine, Segment};
use bytes::BytesMut;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send as send_at_once, shutdown};

use super::service::{Membership, Phase};
use super::socket::{Outgoing, Receiving, Sending, Socket, receive, send};
use afflux_linux_device::clock;
use afflux_linux_device::reactor::Sleep;

/// Output that waits to be sent before the machine is asked for more.
const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// The bounds of a receive, unless the machine knows that more is coming.
const RECEIVE_BYTES_MIN: usize = 16 << 10;
const RECEIVE_BYTES_GROWN: usize = 256 << 10;
/// The most that a receive takes, whatever the machine hopes for.
const RECEIVE_BYTES_MAX: usize = 4 << 20;
/// Reserved for one poll of the machine: the largest reply, and as much again for smaller ones.
const POLL_BYTES: u64 = 2 << 20;
/// Polls of the machine in one poll of the connection: each may copy some MiB.
const MACHINE_POLLS_MAX: u32 = 4;
/// Rounds in one poll before other tasks run.
const ROUNDS_MAX: usize = 16;
/// How long a peer gets to take the last bytes sent before its unread bytes make the close a reset.
const LINGER_NS: u64 = Nanos::SECOND;

pub(super) struct SocketConnection {
    machine: Box<dyn ProtocolMachine>,
    /// Whether the service can wake it.
    known: bool,
    /// Absent while a receive has it.
    input: Option<BytesMut>,
    receiving: Option<Receiving>,
    /// The last ended operation, pooled for its memory; so below.
    received: Option<Receiving>,
    receive_bytes: usize,
    /// The sizes of a receive's buffer, and of the buffer that became `input`.
    receiving_into: usize,
    buffer_bytes: usize,
    /// A record has begun and not ended.
    unfinished: bool,
    /// The buffer should be no larger than needed.
    shrinks: bool,
    /// The quota that the machine was last given.
    quota: u64,
    /// There is no quota to receive into.
    lacks_quota: bool,
    /// The service wakes it when there is quota.
    waits_for_quota: bool,
    /// The peer has ended its stream.
    ended: bool,
    output: Vec<Segment>,
    output_bytes: usize,
    /// Polls of the machine that this poll of the connection may still make.
    machine_polls: u32,
    /// Absent while a send has it.
    outgoing: Option<Outgoing>,
    sending: Option<Sending>,
    sent: Option<Sending>,
    /// Set once everything is answered: the peer may take the rest until then.
    lingering: Option<Pin<Box<Sleep>>>,
    /// Dropped last: the connection counts until everything above is gone.
    socket: Rc<Socket>,
}

/// The connection is over, for whatever reason.
struct ConnectionOver;

impl SocketConnection {
    pub(super) fn new(fd: OwnedFd, machine: Box<dyn ProtocolMachine>, membership: Arc<Membership>) -> Self {
        Self {
            socket: Rc::new(Socket { fd, membership }),
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
            quota: 0,
            lacks_quota: false,
            waits_for_quota: false,
            ended: false,
            output: Vec::new(),
            output_bytes: 0,
            machine_polls: 0,
            outgoing: Some(Outgoing::default()),
            sending: None,
            sent: None,
            lingering: None,
        }
    }

    fn membership(&self) -> &Membership {
        &self.socket.membership
    }

    /// Makes the steps that are possible now; returns whether there were any.
    fn round(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionOver> {
        let mut moved = self.take_sent(cx)?;
        moved |= self.take_received(cx)?;
        moved |= self.take_output(cx);
        self.go_on_without_output(cx);
        self.shrink();
        // A started operation is polled in the next round, so that it wakes this task.
        moved |= self.try_start_send();
        moved |= self.try_start_receive();
        moved |= self.try_find_quota(cx);
        Ok(moved)
    }

    fn take_sent(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionOver> {
        let Some(sending) = &mut self.sending else { return Ok(false) };
        let Poll::Ready((mut outgoing, result)) = sending.poll(cx) else { return Ok(false) };
        self.sent = self.sending.take();
        match result {
            Ok(count) => {
                outgoing.sent(count);
                self.membership().count_out(count);
            }
            Err(Errno::INTR | Errno::AGAIN | Errno::NOBUFS) => {}
            Err(_) => return Err(ConnectionOver),
        }
        self.outgoing = Some(outgoing);
        Ok(true)
    }

    fn take_received(&mut self, cx: &mut Context<'_>) -> Result<bool, ConnectionOver> {
        let Some(receiving) = &mut self.receiving else { return Ok(false) };
        let Poll::Ready((mut input, result)) = receiving.poll(cx) else { return Ok(false) };
        self.received = self.receiving.take();
        match result {
            Ok(0) => self.ended = true,
            Ok(count) => {
                self.membership().count_in(count);
                self.adapt(count);
                if self.lingering.is_some() {
                    input.clear();
                } else if self.machine.receive(&mut input).is_err() {
                    self.membership().count_protocol_error();
                    self.send_last_words();
                    return Err(ConnectionOver);
                }
            }
            Err(Errno::INTR | Errno::AGAIN | Errno::NOBUFS | Errno::CANCELED) => {}
            Err(_) => return Err(ConnectionOver),
        }
        self.input = Some(input);
        Ok(true)
    }

    /// Reports to the peer why the connection ends, if the socket takes that at once and no reply is half sent.
    #[cold]
    fn send_last_words(&mut self) {
        let words = self.machine.last_words();
        if !words.is_empty() && self.outgoing.as_ref().is_some_and(|outgoing| outgoing.bytes() == 0) {
            let _ = send_at_once(&self.socket.fd, &words, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }

    /// Requests more next time if a receive was full, and less if little came.
    fn adapt(&mut self, count: usize) {
        if count >= self.receive_bytes {
            self.receive_bytes = (self.receive_bytes * 2).min(RECEIVE_BYTES_GROWN);
        } else if count < self.receive_bytes / 4 {
            self.receive_bytes = (self.receive_bytes / 2).max(RECEIVE_BYTES_MIN);
        }
    }

    fn take_output(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        let held = self.membership().held();
        let mut last = 0;
        // The quota already given bounds the bytes of a send.
        while self.output_bytes < OUTPUT_BYTES_MAX {
            if self.machine_polls == 0 {
                // Other connections of the thread run first.
                cx.waker().wake_by_ref();
                break;
            }
            let before = self.output.len();
            let quota = self.raise_quota();
            let pending = self.machine.poll_output(cx, &mut self.output).is_pending();
            self.machine_polls -= u32::from(!pending);
            self.output_bytes += self.output[before..].iter().map(Segment::len).sum::<usize>();
            self.membership().hold(self.held_bytes(), held);
            // The machine is polled again if it only used up the reservation for one poll.
            if pending && !(self.machine.is_short_of_quota() && quota > last) {
                break;
            }
            last = quota;
            moved |= !pending;
        }
        let calls = self.machine.calls_in_progress();
        self.membership().set_calls(calls);
        moved
    }

    /// Goes on with calls in progress while the peer does not take the output of others: calls of other connections may
    /// wait for them.
    fn go_on_without_output(&mut self, cx: &mut Context<'_>) {
        if self.output_bytes >= OUTPUT_BYTES_MAX {
            self.machine.poll_calls(cx);
        }
    }

    fn try_start_send(&mut self) -> bool {
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

    /// Gives the machine all the quota that it may have; returns this number of bytes.
    fn raise_quota(&mut self) -> u64 {
        let more = if self.machine.calls_in_progress() > 0 { POLL_BYTES } else { 0 };
        self.quota = self.membership().reserve(more).saturating_sub(self.input_bytes());
        self.machine.set_quota(self.quota);
        self.quota
    }

    fn input_bytes(&self) -> u64 {
        self.input.as_ref().map_or(self.receiving_into, BytesMut::capacity) as u64
    }

    fn held_bytes(&self) -> u64 {
        self.machine.held_bytes() + self.input_bytes()
    }

    /// Drops a large buffer if the service has reported that the connection is silent.
    fn shrink(&mut self) {
        if !self.membership().take_shrink() || self.unfinished {
            return;
        }
        self.receive_bytes = RECEIVE_BYTES_MIN;
        self.shrinks = true;
        self.machine.shrink();
        if let Some(receiving) = self.receiving.as_ref().filter(|_| self.receiving_into > RECEIVE_BYTES_MIN) {
            // Bytes that come meanwhile are not lost: the receive then ends with them.
            receiving.cancel();
        }
    }

    /// Reports to the service the state that it needs to free quota, and waits if quota is missing. True if there is
    /// some now.
    fn try_find_quota(&mut self, cx: &Context<'_>) -> bool {
        // A connection that holds only the beginning of a record and waits for quota blocks others, too.
        let receives = self.unfinished && (self.receiving.is_some() || (self.lacks_quota && self.is_quiet()));
        self.membership().set_waits_for_peer(receives || self.sending.is_some());
        if !self.lacks_quota && !self.machine.is_short_of_quota() {
            if std::mem::take(&mut self.waits_for_quota) {
                self.membership().waits_no_more();
            }
            return false;
        }
        self.waits_for_quota = true;
        self.membership().wait_for_quota(cx.waker());
        // One more try: quota that came back before the waker was known wakes no connection.
        let (quota, held) = (self.quota, self.membership().held());
        let more = self.machine.is_short_of_quota() && self.raise_quota() > quota;
        self.membership().hold(held, held);
        more || self.try_start_receive()
    }

    /// The number of bytes to receive into `input`; none while there is no quota for them.
    fn receivable(&mut self, input: &mut BytesMut) -> Option<usize> {
        let hint = self.machine.input_hint(input).min(RECEIVE_BYTES_MAX);
        self.unfinished = !input.is_empty() || (self.is_quiet() && self.machine.held_bytes() > 0);
        if self.lingering.is_some() {
            return Some(RECEIVE_BYTES_MIN);
        }
        let outgrown = self.buffer_bytes > RECEIVE_BYTES_GROWN.max(2 * (input.len() + hint));
        if std::mem::take(&mut self.shrinks) || outgrown {
            // A large buffer is for large records: neither idle connections nor small records retain it.
            self.replace(input, 0);
        }
        let wanted = hint.max(self.receive_bytes);
        let mut sizes = [(wanted, wanted == hint), (hint.max(RECEIVE_BYTES_MIN), true), (hint, true)];
        if input.len() >= RECEIVE_BYTES_GROWN {
            // The large record has its memory already, and is not moved for further bytes.
            sizes.reverse();
        }
        let found = sizes.into_iter().find_map(|(bytes, known)| self.fit(input, bytes, known));
        if found.is_none() && self.buffer_bytes > input.len() {
            // Until there is quota, the connection holds only the bytes received so far.
            self.replace(input, 0);
            let held = self.membership().held();
            self.membership().hold(self.machine.held_bytes() + input.capacity() as u64, held);
        }
        found
    }

    /// Makes capacity for `bytes` more in `input`, if the connection may hold them. If something else shares the
    /// buffer, they get a new buffer of the right size. `known` means that so many bytes are sure to come.
    fn fit(&mut self, input: &mut BytesMut, bytes: usize, known: bool) -> Option<usize> {
        let machine = self.machine.held_bytes();
        let (len, capacity) = (input.len(), self.buffer_bytes);
        if len + bytes <= capacity
            && input.try_reclaim(capacity - len)
            && self.membership().try_hold(machine + capacity as u64, known)
        {
            return Some(bytes);
        }
        if !self.membership().try_hold(machine + (len + bytes) as u64, known) {
            return None;
        }
        self.replace(input, bytes);
        Some(bytes)
    }

    /// Moves the bytes of `input` to a buffer of its own, with capacity for `bytes` more.
    fn replace(&mut self, input: &mut BytesMut, bytes: usize) {
        let mut buffer = BytesMut::with_capacity(input.len() + bytes);
        buffer.extend_from_slice(input);
        self.buffer_bytes = buffer.capacity();
        *input = buffer;
    }

    fn try_start_receive(&mut self) -> bool {
        let wanted = match self.membership().phase() {
            _ if self.ended || self.input.is_none() => false,
            _ if self.lingering.is_some() => true,
            Phase::Serving => self.machine.needs_input(),
            Phase::Finishing | Phase::Closing => false,
        };
        self.lacks_quota = false;
        if let Some(input) = self.input.as_mut().filter(|input| !wanted && input.is_empty()) {
            // A connection with enough to do needs no buffer.
            *input = BytesMut::new();
            self.buffer_bytes = 0;
        }
        let Some(mut input) = self.input.take_if(|_| wanted) else { return false };
        let Some(bytes) = self.receivable(&mut input) else {
            self.input = Some(input);
            self.lacks_quota = true;
            return false;
        };
        self.receiving_into = input.capacity();
        self.receiving = Some(receive(self.received.take(), &self.socket, input, bytes));
        true
    }

    /// Reports whether the peer waits for us: its bytes are not received for want of quota, and it does not first have
    /// to take replies.
    fn note_unread(&self) {
        let serving = self.membership().phase() == Phase::Serving && !self.ended;
        self.membership().set_unread(serving && self.receiving.is_none() && self.sending.is_none());
    }

    /// Whether every call is answered and every answer is sent.
    fn is_quiet(&self) -> bool {
        self.outgoing.as_ref().is_some_and(|outgoing| outgoing.bytes() == 0)
            && self.output.is_empty()
            && self.machine.calls_in_progress() == 0
    }

    /// Whether the connection is over. A connection that we end is first closed for writing only, and the peer's
    /// further bytes are read and dropped. A full close with unread bytes would be a reset, and could destroy the last
    /// answers.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> bool {
        if self.membership().phase() == Phase::Closing {
            return true;
        }
        if let Some(until) = &mut self.lingering {
            return self.ended || until.as_mut().poll(cx).is_ready();
        }
        let quiet = self.is_quiet();
        self.membership().set_busy(!quiet);
        // A peer that has sent nothing more does not wait to be read.
        if self
            .membership()
            .try_leave(!quiet, || rustix::io::ioctl_fionread(&self.socket.fd).is_ok_and(|bytes| bytes > 0))
        {
            // The last bytes sent are in flight and no received bytes are unread; a client connects again.
            return true;
        }
        if !quiet {
            return false;
        }
        if !self.ended && self.membership().phase() == Phase::Finishing {
            // Calls still in flight to us are not answered any more.
            self.receiving = None;
            self.input.get_or_insert_default().clear();
            let _ = shutdown(&self.socket.fd, Shutdown::Write);
            self.lingering = Some(Box::pin(self.membership().sleep_until(clock::monotonic().after(LINGER_NS))));
            cx.waker().wake_by_ref();
            return false;
        }
        self.ended
    }
}

impl Future for SocketConnection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let connection = self.get_mut();
        if !connection.known {
            connection.known = true;
            connection.membership().keep_waker(cx.waker());
        }
        connection.machine_polls = MACHINE_POLLS_MAX;
        for _ in 0..ROUNDS_MAX {
            match connection.round(cx) {
                Err(ConnectionOver) => return Poll::Ready(()),
                Ok(true) => {}
                Ok(false) => {
                    connection.note_unread();
                    return if connection.poll_over(cx) { Poll::Ready(()) } else { Poll::Pending };
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
