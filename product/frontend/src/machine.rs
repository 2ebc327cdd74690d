//! The seam between a front end and the world that moves its bytes.
//!
//! Owns: the interface of a protocol machine: bytes in, segments out, no socket, no thread, no clock; the destination
//! of output, and the end of each reply in it.
//! Does not own: any protocol (front ends) or any transport (worlds); the identity of callers (`caller`).
//! Invariants: a machine never blocks. It waits with futures, and wakes its polling task when it can go on.

use std::ops::{Deref, Range};
use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_volume::PinnedPages;
use bytes::{Bytes, BytesMut};

/// A piece of output, to be sent in order. It is dropped after it was sent.
pub enum Segment {
    /// Bytes of the protocol, as the peer sends them.
    Bytes(Bytes),
    /// Protocol bytes in a buffer that the machine reuses.
    Lent(LentBytes),
    /// File bytes, straight from the page frames, held stable until the drop.
    Pages(PinnedPages),
}

impl Segment {
    /// The length of the segment in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Lent(bytes) => bytes.len(),
            Self::Pages(pages) => pages.len(),
        }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A machine's buffer, lent to the world in parts.
pub trait Lent: Send + Sync {
    /// Its contents. They do not change while a part is lent.
    fn bytes(&self) -> &[u8];

    /// A part was given back.
    fn given_back(&self);
}

/// A part of a machine's buffer; the drop gives it back.
pub struct LentBytes {
    buffer: Arc<dyn Lent>,
    range: Range<usize>,
}

impl LentBytes {
    /// A part of a buffer.
    pub fn new(buffer: Arc<dyn Lent>, range: Range<usize>) -> Self {
        Self { buffer, range }
    }
}

impl Deref for LentBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer.bytes()[self.range.clone()]
    }
}

impl Drop for LentBytes {
    fn drop(&mut self) {
        self.buffer.given_back();
    }
}

/// The destination of a machine's output.
pub trait Output {
    /// Appends a segment of the current reply.
    fn push(&mut self, segment: Segment);

    /// Marks the end of a reply: the segments since the last end are one reply, or several if replies carry their own
    /// lengths. A transport that separates messages passes each on in one piece, as `/dev/fuse` requires each reply in
    /// one write.
    fn end_reply(&mut self);
}

/// For streams, which do not separate replies.
impl Output for Vec<Segment> {
    fn push(&mut self, segment: Segment) {
        Vec::push(self, segment);
    }

    fn end_reply(&mut self) {}
}

/// The reason why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct ProtocolError {
    /// The error in the peer's bytes that makes the rest of its stream unreadable.
    pub reason: String,
}

/// The server's side of one connection.
///
/// The world reads into the buffer and calls [`ProtocolMachine::receive`] after each read. Then it calls
/// [`ProtocolMachine::poll_output`] until that is pending, and again whenever the waker given there fires. While the
/// peer takes no output, the world calls [`ProtocolMachine::poll_calls`] instead.
pub trait ProtocolMachine: Send {
    /// Takes whole records from the front of `input`, which holds all bytes received and not yet taken; leaves an
    /// incomplete record there. An error closes the connection.
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError>;

    /// Takes whole records without a copy from the front of bytes that others may also hold. Called only while the
    /// buffer of [`ProtocolMachine::receive`] is empty; the remaining bytes go there. For worlds that receive such
    /// pieces; a machine need not take anything. An error closes the connection.
    fn receive_shared(&mut self, _piece: &mut Bytes) -> Result<(), ProtocolError> {
        Ok(())
    }

    /// Whether more input is wanted now. If not, the world leaves the peer's bytes in the socket; it asks again after
    /// each [`ProtocolMachine::poll_output`] and each segment sent.
    fn needs_input(&self) -> bool;

    /// The number of bytes that the next record still lacks, as a hint for the size of the next read.
    fn input_hint(&self, input: &BytesMut) -> usize;

    /// Goes on with the calls in progress and appends finished replies to `output`: whole replies, each with its end.
    /// Ready if it appended something; otherwise pending, and it stores the waker.
    fn poll_output(&mut self, cx: &mut Context<'_>, output: &mut dyn Output) -> Poll<()>;

    /// Goes on with the calls in progress, whose replies wait for [`ProtocolMachine::poll_output`]; begins none. For a
    /// world that has enough output for now: a call may hold what calls of other connections wait for.
    fn poll_calls(&mut self, cx: &mut Context<'_>);

    /// Calls received and not yet answered.
    fn calls_in_progress(&self) -> usize;

    /// Bytes that the machine holds: records received, data and expected replies of calls in progress, replies that the
    /// world has not released. For worlds that bound the bytes of all their connections.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// Sets the number of bytes that the machine may hold for now; a world with a bound calls this before each
    /// [`ProtocolMachine::poll_output`]. A machine that already holds more starts only one call at a time. If the first
    /// call of a poll does not fit, its answer is made shorter, if possible.
    fn set_quota(&mut self, _bytes: u64) {}

    /// Whether calls wait, as of the last poll, until the machine may hold more.
    fn is_short_of_quota(&self) -> bool {
        false
    }

    /// Releases memory that only a busy connection needs, after a silent time.
    fn shrink(&mut self) {}

    /// Whether the output so far asks the peer to begin TLS: the next bytes of the peer are those of a handshake. For
    /// layers between a machine and its world that know TLS.
    fn is_to_be_secured(&self) -> bool {
        false
    }

    /// Further bytes of the peer come through TLS. The peer's verified certificate names `user`.
    fn secured(&mut self, user: Option<&str>) {
        let _ = user;
    }

    /// Bytes that tell the peer why its connection ends, after an error of [`ProtocolMachine::receive`].
    fn last_words(&mut self) -> Bytes {
        Bytes::new()
    }
}

#[cfg(test)]
mod tests;
