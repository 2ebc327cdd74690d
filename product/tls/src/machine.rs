//! A connection's protocol machine behind TLS.
//!
//! Owns: the session, decrypted bytes that the protocol's machine has not taken, the bytes of a handshake, its wait for
//! a permit.
//! Does not own: the question for TLS (the protocol's machine answers it), the identity in force (`server`), the
//! permits (`permits`).
//! Invariants: the buffer of received bytes is released when they are decrypted, so that a connection holds at most one
//! record of TLS more than the world allowed it to receive. Encrypted replies retain the segments of their text, so
//! that the protocol's own bounds count them until they are sent.

use std::io::{BufRead, IoSlice, Write};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use afflux_frontend::{Lent, LentBytes, Output, Peer, ProtocolError, ProtocolMachine, Segment};
use bytes::{Bytes, BytesMut};
use rustls::ServerConnection;

use crate::identity;
use crate::permits::HandshakePermit;
use crate::server::{ListedPeer, SecuredPeer, TlsServer};

/// Most bytes of a record's contents, and the length of its head and its seal.
const RECORD_BYTES: usize = 16 << 10;
const RECORD_EXTRA_BYTES: usize = 5 + 1 + 16;

/// A protocol's machine, with TLS in front of it.
pub struct TlsMachine<M> {
    inner: M,
    server: Arc<TlsServer>,
    peer: Peer,
    /// Absent until the peer was asked to begin.
    session: Option<Box<ServerConnection>>,
    /// Its number in the queue of handshakes. Until it has its permit, the peer's bytes stay in the socket.
    waits: Option<u64>,
    /// Its permit, until its time was charged.
    permit: Option<HandshakePermit>,
    /// The processor's time for its handshake.
    spent: Duration,
    /// Set from the end of the handshake on.
    listed: Option<ListedPeer>,
    /// Decrypted bytes that nobody has taken.
    clear: BytesMut,
    /// The peer has ended its stream, and has no answer to that yet.
    has_ended: bool,
    last_words: Bytes,
}

impl<M: ProtocolMachine> TlsMachine<M> {
    /// Puts TLS in front of the machine of a connection from `peer`.
    pub fn new(inner: M, server: Arc<TlsServer>, peer: Peer) -> Self {
        let peer = Peer { address: peer.address.to_canonical(), ..peer };
        let (clear, last_words) = (BytesMut::new(), Bytes::new());
        let (session, waits, permit, spent, listed) = (None, None, None, Duration::ZERO, None);
        Self { inner, server, peer, session, waits, permit, spent, listed, clear, has_ended: false, last_words }
    }

    /// Waits for the peer's handshake.
    fn begin(&mut self) {
        match self.server.session() {
            Ok(mut session) => {
                // The protocol bounds its replies.
                session.set_buffer_limit(None);
                self.session = Some(Box::new(session));
                self.waits = Some(self.server.permits.enter());
            }
            Err(error) => self.server.failed(self.peer.address, &error.to_string()),
        }
    }

    /// Asks for the permit of a handshake.
    fn ask_permit(&mut self, cx: &Context<'_>) {
        let Some(place) = self.waits else { return };
        self.permit = self.server.permits.try_begin(place, self.peer.party(), cx.waker());
        if self.permit.is_some() {
            self.waits = None;
        }
    }

    /// Decrypts all of `sealed` to the end of `clear`.
    fn decrypt(&mut self, mut sealed: &[u8]) -> Result<(), ProtocolError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        while !sealed.is_empty() {
            let taken = session.read_tls(&mut sealed).map_err(|error| error.to_string());
            let state = taken.and_then(|taken| match taken {
                0 => Err("bytes behind the end of TLS".to_owned()),
                _ => session.process_new_packets().map_err(|error| error.to_string()),
            });
            let state = match state {
                Ok(state) => state,
                Err(reason) => {
                    if session.is_handshaking() {
                        self.server.failed(self.peer.address, &reason);
                    }
                    self.last_words = unsent(session).into();
                    return Err(ProtocolError { reason });
                }
            };
            while let Ok(bytes) = session.reader().fill_buf()
                && !bytes.is_empty()
            {
                self.clear.extend_from_slice(bytes);
                let taken = bytes.len();
                session.reader().consume(taken);
            }
            self.has_ended |= state.peer_has_closed();
        }
        Ok(())
    }

    /// Makes capacity in `clear` for `bytes` more, in a buffer of that size.
    fn reserve(&mut self, bytes: usize) {
        if self.clear.capacity() - self.clear.len() < bytes {
            let mut buffer = BytesMut::with_capacity(self.clear.len() + bytes);
            buffer.extend_from_slice(&self.clear);
            self.clear = buffer;
        }
    }

    /// Whether the handshake is over. The first time, the protocol's machine is notified.
    fn try_secure(&mut self) -> bool {
        let Some(session) = self.session.as_ref().filter(|session| !session.is_handshaking()) else { return false };
        if self.listed.is_none() {
            let certificate = session.peer_certificates().and_then(<[_]>::first);
            let name = certificate.map(|own| identity::name(own).unwrap_or_else(|| "without a name".to_owned()));
            let user = certificate.and_then(|own| identity::user(own));
            self.listed = Some(self.server.add(SecuredPeer { address: self.peer.address, name }));
            end_permit(&self.server, &mut self.permit, self.spent);
            self.inner.secured(user);
        }
        true
    }
}

impl<M> Drop for TlsMachine<M> {
    fn drop(&mut self) {
        self.waits.iter().for_each(|place| self.server.permits.leave(*place));
        // A handshake that was not finished has taken its time, too.
        end_permit(&self.server, &mut self.permit, self.spent);
    }
}

/// A handshake takes no more time than it has.
fn end_permit(server: &TlsServer, permit: &mut Option<HandshakePermit>, spent: Duration) {
    if let Some(permit) = permit.take() {
        server.permits.took(permit, u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// The encrypted bytes that the session has for its peer.
fn unsent(session: &mut ServerConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while session.wants_write() && session.write_tls(&mut bytes).is_ok_and(|count| count > 0) {}
    bytes
}

/// Encrypted replies, with the segments that they were made of.
struct Sealed {
    bytes: Vec<u8>,
    _made_of: Vec<Segment>,
}

impl Lent for Sealed {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn given_back(&self) {}
}

fn sealed(session: &mut ServerConnection, segments: Vec<Segment>) -> Segment {
    let mut slices = Vec::new();
    for segment in &segments {
        match segment {
            Segment::Bytes(bytes) => slices.push(IoSlice::new(bytes)),
            Segment::Lent(bytes) => slices.push(IoSlice::new(bytes)),
            Segment::Pages(pages) => slices.extend(pages.slices().map(IoSlice::new)),
        }
    }
    let len: usize = slices.iter().map(|slice| slice.len()).sum();
    let mut bytes = Vec::with_capacity(len + (len / RECORD_BYTES + 2) * RECORD_EXTRA_BYTES);
    // Without a limit the session takes all, and its memory takes all.
    let _ = session.writer().write_vectored(&slices);
    while session.wants_write() && session.write_tls(&mut bytes).is_ok_and(|count| count > 0) {}
    let end = bytes.len();
    Segment::Lent(LentBytes::new(Arc::new(Sealed { bytes, _made_of: segments }), 0..end))
}

impl<M: ProtocolMachine> ProtocolMachine for TlsMachine<M> {
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        if self.session.is_none() {
            return self.inner.receive(input);
        }
        let sealed = std::mem::take(input);
        // The session has up to a record from before.
        self.reserve((sealed.len() + RECORD_BYTES).max(self.inner.input_hint(&self.clear)));
        let began = self.listed.is_none().then(Instant::now);
        let decrypted = self.decrypt(&sealed);
        self.spent += began.map_or(Duration::ZERO, |began| began.elapsed());
        drop(sealed);
        decrypted?;
        if self.try_secure() {
            self.inner.receive(&mut self.clear)?;
        }
        if self.clear.is_empty() {
            self.clear = BytesMut::new();
        }
        Ok(())
    }

    fn receive_shared(&mut self, piece: &mut Bytes) -> Result<(), ProtocolError> {
        if self.session.is_none() { self.inner.receive_shared(piece) } else { Ok(()) }
    }

    fn needs_input(&self) -> bool {
        let is_handshaking = self.session.as_ref().is_some_and(|session| session.is_handshaking());
        self.waits.is_none() && (is_handshaking || self.inner.needs_input())
    }

    fn input_hint(&self, input: &BytesMut) -> usize {
        if self.session.is_none() {
            return self.inner.input_hint(input);
        }
        let clear = self.inner.input_hint(&self.clear);
        clear + (clear / RECORD_BYTES + 1) * RECORD_EXTRA_BYTES
    }

    fn poll_output(&mut self, cx: &mut Context<'_>, output: &mut dyn Output) -> Poll<()> {
        if self.waits.is_some() {
            self.ask_permit(cx);
        }
        let Some(session) = &mut self.session else {
            let polled = self.inner.poll_output(cx, output);
            if self.inner.is_to_be_secured() {
                self.begin();
                self.ask_permit(cx);
            }
            return polled;
        };
        let mut segments = Vec::new();
        // Before the end of the handshake the protocol's machine has nothing to say.
        let polled = match self.listed {
            Some(_) => self.inner.poll_output(cx, &mut segments),
            None => Poll::Pending,
        };
        if self.has_ended && segments.is_empty() && self.inner.calls_in_progress() == 0 {
            self.has_ended = false;
            session.send_close_notify();
        }
        let own = unsent(session);
        if own.is_empty() && segments.is_empty() {
            return polled;
        }
        if !own.is_empty() {
            output.push(Segment::Bytes(own.into()));
        }
        if !segments.is_empty() {
            output.push(sealed(session, segments));
        }
        output.end_reply();
        Poll::Ready(())
    }

    fn poll_calls(&mut self, cx: &mut Context<'_>) {
        self.inner.poll_calls(cx);
    }

    fn calls_in_progress(&self) -> usize {
        self.inner.calls_in_progress()
    }

    fn held_bytes(&self) -> u64 {
        self.inner.held_bytes() + self.clear.capacity() as u64
    }

    fn set_quota(&mut self, bytes: u64) {
        self.inner.set_quota(bytes.saturating_sub(self.clear.capacity() as u64));
    }

    fn is_short_of_quota(&self) -> bool {
        self.inner.is_short_of_quota()
    }

    fn shrink(&mut self) {
        self.inner.shrink();
    }

    fn last_words(&mut self) -> Bytes {
        std::mem::take(&mut self.last_words)
    }
}

#[cfg(test)]
mod tests;
