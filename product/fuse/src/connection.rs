//! A mount as a machine over streams, for worlds that move bytes: the simulator, tests, the fuzzer.
//!
//! Owns: the cuts between messages, the calls that wait.
//! Does not own: the answers (`answering`).
//! Invariants: at most [`CALLS_MAX`] calls wait. A message whose length cannot be ends the connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use afflux_frontend::{Answering, MessageMachine, MessageReply, Output, ProtocolError, ProtocolMachine, Tried};
use afflux_volume::Platform;
use bytes::BytesMut;
use futures_util::stream::{FuturesUnordered, Stream};

use crate::limits::{CALLS_MAX, MESSAGE_BYTES_MAX};
use crate::mount::Mount;
use crate::request::HEADER_BYTES;

/// Bytes of a message's length, its first field.
const LENGTH_BYTES: usize = 4;

/// One stream of messages to a mount.
pub struct MessageStream<P: Platform> {
    mount: Arc<Mount<P>>,
    calls: FuturesUnordered<Answering>,
    replies: VecDeque<MessageReply>,
}

impl<P: Platform> MessageStream<P> {
    /// A stream without calls yet.
    pub fn new(mount: Arc<Mount<P>>) -> Self {
        Self { mount, calls: FuturesUnordered::new(), replies: VecDeque::new() }
    }

    /// The length of the first message, once it is there.
    fn length(input: &BytesMut) -> Option<usize> {
        input.first_chunk::<LENGTH_BYTES>().map(|length| u32::from_ne_bytes(*length) as usize)
    }
}

impl<P: Platform> ProtocolMachine for MessageStream<P> {
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        while let Some(length) = Self::length(input) {
            if !(HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length) {
                let reason = format!("a message of {length} bytes, not {HEADER_BYTES} to {MESSAGE_BYTES_MAX}");
                return Err(ProtocolError { reason });
            }
            if input.len() < length || !self.needs_input() {
                break;
            }
            let message = input.split_to(length).freeze();
            match self.mount.try_answer(&message) {
                Tried::Nothing => {}
                Tried::Reply(reply) => self.replies.push_back(reply),
                Tried::Waits => self.calls.push(Arc::clone(&self.mount).answer(Box::new(message))),
            }
        }
        Ok(())
    }

    fn needs_input(&self) -> bool {
        self.calls.len() < CALLS_MAX && self.replies.len() < CALLS_MAX
    }

    fn input_hint(&self, input: &BytesMut) -> usize {
        Self::length(input).unwrap_or(HEADER_BYTES).saturating_sub(input.len())
    }

    fn poll_output(&mut self, cx: &mut Context<'_>, output: &mut dyn Output) -> Poll<()> {
        let mut wrote = false;
        loop {
            for reply in self.replies.drain(..) {
                reply.into_segments().for_each(|segment| output.push(segment));
                output.end_reply();
                wrote = true;
            }
            match std::pin::Pin::new(&mut self.calls).poll_next(cx) {
                Poll::Ready(Some(reply)) => self.replies.extend(reply),
                Poll::Ready(None) | Poll::Pending if wrote => return Poll::Ready(()),
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn calls_in_progress(&self) -> usize {
        self.calls.len() + self.replies.len()
    }
}
