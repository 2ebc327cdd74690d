//! The seam for protocols whose messages come whole, each answered by one write, such as FUSE.
//!
//! Owns: the interface of such a machine, the form of its replies.
//! Does not own: any protocol (front ends), threads and descriptors (worlds); streams ([`crate::ProtocolMachine`]).
//! Invariants: a machine never blocks. A message that needs a wait is given back, to be answered by a future. Notices
//! are written by threads that answer no message: their receiver may wait for answers while it takes a notice.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::Segment;

/// Most bytes of a reply before its data: a header and the largest fixed answer.
pub const HEAD_BYTES_MAX: usize = 160;

/// Most bytes of a message that is copied when it waits. A longer one holds the whole buffer that it came in, which has
/// the size of the machine's largest message.
pub const MESSAGE_COPIED_MAX: usize = 128 << 10;

/// A reply, to be written in one piece: the head, then the data.
pub struct MessageReply {
    head: [u8; HEAD_BYTES_MAX],
    head_len: usize,
    data: Option<Segment>,
}

impl MessageReply {
    /// A reply of these parts. A head above [`HEAD_BYTES_MAX`] is cut there.
    pub fn new(head: &[u8], data: Option<Segment>) -> Self {
        let head_len = head.len().min(HEAD_BYTES_MAX);
        let mut kept = [0; HEAD_BYTES_MAX];
        kept[..head_len].copy_from_slice(&head[..head_len]);
        Self { head: kept, head_len, data }
    }

    /// The first bytes.
    pub fn head(&self) -> &[u8] {
        &self.head[..self.head_len]
    }

    /// The other bytes, if any.
    pub fn data(&self) -> Option<&Segment> {
        self.data.as_ref()
    }

    /// The parts as segments.
    pub fn into_segments(self) -> impl Iterator<Item = Segment> {
        let head = Segment::Bytes(Bytes::copy_from_slice(self.head()));
        [Some(head), self.data].into_iter().flatten()
    }
}

/// A message that is no reply. Its receiver may wait for a disk before it takes it.
pub struct Notice {
    /// The number of the disk.
    pub disk: u64,
    /// Reply as a whole message.
    pub message: MessageReply,
}

/// The outcome of a message that must not wait.
#[allow(clippy::large_enum_variant, reason = "a box would be an allocation for each reply")]
pub enum Tried {
    /// The message has no reply.
    Nothing,
    /// The message's reply is whole.
    Reply(MessageReply),
    /// The message needs a wait; nothing was done that may not be done again.
    Waits,
}

/// The future of a message's reply; none for a message without one.
pub type Answering = Pin<Box<dyn Future<Output = Option<MessageReply>> + Send>>;

/// A server of whole messages.
pub trait MessageMachine: Send + Sync + 'static {
    /// Most bytes of a message.
    fn message_bytes_max(&self) -> usize;

    /// Answers every later message with an error, as a server that is gone would. Calls that wait go on.
    fn refuse(&self);

    /// The message that comes before the first read if the machine goes on with the work of an earlier one. None if the
    /// other side begins.
    fn resumption(&self) -> Option<MessageReply> {
        None
    }

    /// The next notice; none once the machine refuses calls. A disk's next one comes after
    /// [`MessageMachine::notice_taken`]. If several tasks ask, the last one is woken.
    fn poll_notice(&self, _cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        Poll::Ready(None)
    }

    /// The receiver has taken the last notice of this disk.
    fn notice_taken(&self, _disk: u64) {}

    /// Answers a message, if that needs no wait.
    fn try_answer(&self, message: &[u8]) -> Tried;

    /// Answers a message that was tried and waits. A drop gives the call up; changes that have begun run to their end.
    fn answer(self: Arc<Self>, message: Box<dyn AsRef<[u8]> + Send + Sync>) -> Answering;
}
