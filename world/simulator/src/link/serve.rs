//! A protocol machine at the end of a stream: the real world's connection in virtual time.
//!
//! Owns: received bytes not yet taken, output not yet sent.
//! Does not own: the protocol (the machine), the stream.
//! Invariants: nothing is received while the machine wants no input, and no output is taken from it while
//! [`OUTPUT_BYTES_MAX`] wait to be sent.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::task::{Context, Poll};

use afflux_frontend::{ProtocolError, ProtocolMachine, Segment};
use bytes::{Bytes, BytesMut};

use super::stream::LinkEnd;

/// Unsent bytes up to which more output is taken from the machine.
const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// Rounds in one poll before other tasks run.
const ROUNDS_MAX: usize = 16;

struct Serving<M> {
    machine: M,
    end: LinkEnd,
    input: BytesMut,
    output: VecDeque<Bytes>,
    output_bytes: usize,
    segments: Vec<Segment>,
    /// The peer will send nothing more.
    ended: bool,
}

/// Serves one connection until its peer is gone and everything is answered. If the bytes violate the protocol, it ends
/// with the error.
pub fn serve_machine<M: ProtocolMachine>(machine: M, end: LinkEnd) -> impl Future<Output = Result<(), ProtocolError>> {
    let mut serving = Serving {
        machine,
        end,
        input: BytesMut::new(),
        output: VecDeque::new(),
        output_bytes: 0,
        segments: Vec::new(),
        ended: false,
    };
    poll_fn(move |cx| serving.poll(cx))
}

impl<M: ProtocolMachine> Serving<M> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ProtocolError>> {
        for _ in 0..ROUNDS_MAX {
            let received = self.receive(cx)?;
            let answered = self.answer(cx);
            let Ok(sent) = self.send(cx) else { return Poll::Ready(Ok(())) };
            if !(received || answered || sent) {
                let quiet = self.output.is_empty() && self.machine.calls_in_progress() == 0;
                return if self.ended && quiet { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, ProtocolError> {
        if self.ended || !self.machine.needs_input() {
            return Ok(false);
        }
        let Poll::Ready(piece) = self.end.poll_receive(cx) else { return Ok(false) };
        match piece {
            None => self.ended = true,
            Some(mut piece) => {
                if self.input.is_empty() {
                    self.machine.receive_shared(&mut piece)?;
                }
                // The same memory is reused once the previous input has been dropped.
                self.input.extend_from_slice(&piece);
            }
        }
        self.machine.receive(&mut self.input)?;
        Ok(true)
    }

    fn answer(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while self.output_bytes < OUTPUT_BYTES_MAX && self.machine.poll_output(cx, &mut self.segments).is_ready() {
            for segment in self.segments.drain(..) {
                self.output_bytes += segment.len();
                self.output.push_back(match segment {
                    Segment::Bytes(bytes) => bytes,
                    Segment::Lent(bytes) => Bytes::copy_from_slice(&bytes),
                    Segment::Pages(pages) => {
                        let mut bytes = BytesMut::with_capacity(pages.len());
                        pages.slices().for_each(|slice| bytes.extend_from_slice(slice));
                        bytes.freeze()
                    }
                });
            }
            moved = true;
        }
        if self.output_bytes >= OUTPUT_BYTES_MAX {
            // The peer takes no output, but calls of other connections may wait for these.
            self.machine.poll_calls(cx);
        }
        moved
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Result<bool, super::Closed> {
        let mut moved = false;
        while let Some(first) = self.output.front_mut() {
            let len = first.len();
            match self.end.poll_send(cx, first) {
                Poll::Pending => break,
                Poll::Ready(result) => result?,
            }
            self.output_bytes -= len;
            self.output.pop_front();
            moved = true;
        }
        Ok(moved)
    }
}
