//! The seam between a front end and the world that moves its bytes.
//!
//! Owns: what a protocol machine is: bytes in, segments out, no socket, no thread, no clock; where output goes,
//! and where one reply ends in it.
//! Does not own: any protocol (front ends) or any transport (worlds); who calls (`caller`).
//! Invariants: a machine never blocks; what it has to wait for, it waits for as a future, and says
//! so by waking the task that polls it.

use std::ops::{Deref, Range};
use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_volume::PinnedPages;
use bytes::{Bytes, BytesMut};

/// A piece of output, to be sent in order. Dropped once it has been sent.
pub enum Segment {
    /// Protocol bytes.
    Bytes(Bytes),
    /// Protocol bytes in a buffer that the machine uses again.
    Lent(LentBytes),
    /// File bytes, straight from the page frames, held stable until dropped.
    Pages(PinnedPages),
}

impl Segment {
    /// How many bytes the segment is.
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
    /// What is in it. The same while a part of it is lent.
    fn bytes(&self) -> &[u8];

    /// A part was given back.
    fn given_back(&self);
}

/// A part of a machine's buffer; given back when it is dropped.
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

/// Where a machine puts its output.
pub trait Output {
    /// Appends a segment of the reply that is being put out.
    fn push(&mut self, segment: Segment);

    /// What was appended since the last end is whole: one reply, or several where replies carry their own
    /// lengths. A transport that keeps messages apart hands it over in one piece, as `/dev/fuse` wants each
    /// reply in one write.
    fn end_reply(&mut self);
}

/// For streams, which do not keep replies apart.
impl Output for Vec<Segment> {
    fn push(&mut self, segment: Segment) {
        Vec::push(self, segment);
    }

    fn end_reply(&mut self) {}
}

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct ProtocolError {
    /// What the peer sent that makes the rest of its stream unreadable.
    pub reason: String,
}

/// The server's side of one connection.
///
/// The world reads into the buffer, calls [`Machine::receive`] after each read, then
/// [`Machine::poll_output`] until it is pending; and again whenever the waker given there fires.
pub trait Machine: Send {
    /// Takes what it can from the front of `input`, which holds all bytes received and not yet
    /// taken; leaves an incomplete record there. An error closes the connection.
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError>;

    /// Takes whole records from the front of bytes that somebody else may share, without copying them,
    /// while no bytes wait in the buffer of [`Machine::receive`]; what is left goes there. For worlds that
    /// receive such pieces; a machine need not take anything. An error closes the connection.
    fn receive_shared(&mut self, _piece: &mut Bytes) -> Result<(), ProtocolError> {
        Ok(())
    }

    /// Whether more input is wanted now. While false the world leaves the peer's bytes in the
    /// socket; it asks again after each [`Machine::poll_output`] and each segment sent.
    fn wants_input(&self) -> bool;

    /// How many bytes the next record still lacks, as a hint for the size of the next read.
    fn input_hint(&self, input: &BytesMut) -> usize;

    /// Goes on with the calls in progress and appends finished replies to `output`, whole replies
    /// at a time, the last of them with its end. Ready when it appended something, pending (the waker is kept)
    /// when it did not.
    fn poll_output(&mut self, cx: &mut Context<'_>, output: &mut dyn Output) -> Poll<()>;

    /// Calls received and not yet answered.
    fn calls_in_progress(&self) -> usize;

    /// Bytes that the machine holds: records received, data and expected replies of calls in progress,
    /// replies that the world has not let go of. For worlds that bound what all their connections hold.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// Says how many bytes the machine may hold for now; a world that bounds them says so before each
    /// [`Machine::poll_output`]. It may hold more already: then it starts nothing more, but for one call at
    /// a time. A call that does not fit although it is the first of a poll is answered with less, if it can.
    fn set_room(&mut self, _bytes: u64) {}

    /// Whether calls wait, as of the last poll, until the machine may hold more.
    fn lacks_room(&self) -> bool {
        false
    }

    /// Lets go of memory that only a busy connection needs: it has been silent for a while.
    fn shrink(&mut self) {}
}

#[cfg(test)]
mod tests;
