//! The path of a message to its operation, and of the outcome to its reply; a mount as a machine over streams, for
//! worlds that move bytes: the simulator, tests, the fuzzer.
//!
//! Owns: INIT's answer, FORGET, interrupts, the refusal of all calls at the end; the cuts between messages of a stream,
//! its calls that wait.
//! Does not own: the other operations (`operations`), layouts (`request`, `reply`), the state (`mount`).
//! Invariants: an interrupted call ends soon ([`Mount::wait_for_grace`]), and a wait for a lock at once; a change that
//! it had begun runs to its end. The mount takes back the nodes and the file of an answer that comes too late. At most
//! [`CALLS_MAX`] calls of a stream wait. A message whose length cannot be ends the stream.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use afflux_frontend::{
    Answering, HeldMessage, MESSAGE_COPIED_MAX, MessageMachine, MessageReply, Notice, Output, ProtocolError,
    ProtocolMachine, QuotaFreed, Tried,
};
use afflux_volume::Platform;
use bytes::BytesMut;
use futures_util::stream::{FuturesUnordered, Stream};

use crate::abi::Put;
use crate::interrupts::{CallEnd, Requester};
use crate::limits::{BACKGROUND_MAX, CALLS_MAX, DATA_BYTES_MAX, MESSAGE_BYTES_MAX, PAGE_BYTES, SHORT_BYTES_MAX};
use crate::mount::{Mount, Outcome};
use crate::mount_state::Agreed;
use crate::reply::{self, Errno, ReplyDraft};
use crate::request::{self, FuseOperation, HEADER_BYTES, Init, RequestHeader};
use crate::{abi, operations};

impl<P: Platform> Mount<P> {
    /// The reply of an outcome.
    fn reply(&self, outcome: Outcome, unique: u64) -> MessageReply {
        outcome.map_or_else(
            |errno| {
                self.calls.count_error();
                reply::failed(errno, unique)
            },
            |answer| answer.finish(unique),
        )
    }

    /// The outcome of an operation, if it needs no wait.
    fn at_once(&self, header: &RequestHeader, operation: &FuseOperation<'_>) -> Option<Outcome> {
        match operation {
            FuseOperation::Init(offer) => {
                if offer.major == abi::MAJOR {
                    let minor = offer.minor.min(abi::MINOR);
                    self.agree(Agreed { minor, flags: offer.flags & self.wanted() });
                }
                Some(accept(offer, self.wanted()))
            }
            operation => operations::at_once(self, header, operation),
        }
    }

    /// Why an operation is not even tried.
    fn refusal(&self, header: &RequestHeader, operation: &FuseOperation<'_>) -> Option<Errno> {
        if self.refuses.load(Ordering::Acquire) {
            return Some(Errno::NOT_CONNECTED);
        }
        if self.is_read_only.load(Ordering::Relaxed) && operation.may_change() {
            return Some(Errno::READ_ONLY);
        }
        // Before it makes or truncates a file that it then could not open.
        (operation.is_open() && !self.may_open_one_more(header)).then_some(Errno::TOO_MANY_FILES)
    }

    /// Counts a message that waits, if it is long and a program's: INIT bounds the number of the kernel's own. Without
    /// memory for it, the error has its header.
    fn hold(&self, message: &[u8]) -> Result<Option<HeldMessage>, (RequestHeader, QuotaFreed)> {
        if message.len() <= SHORT_BYTES_MAX {
            return Ok(None);
        }
        let Ok(header) = RequestHeader::decode(message) else { return Ok(None) };
        if let Ok(FuseOperation::Write { is_kernels: true, .. }) = request::decode(&header, message) {
            return Ok(None);
        }
        let is_bound = self.options.acts_as_callers && header.uid != 0;
        let bytes = if message.len() <= MESSAGE_COPIED_MAX { message.len() } else { MESSAGE_BYTES_MAX };
        self.waiting.hold(header.uid, is_bound, bytes).map(Some).map_err(|freed| (header, freed))
    }

    /// Lets the program try again once there may be memory for its message. Until then the program holds the bytes.
    async fn put_off(&self, header: &RequestHeader, freed: QuotaFreed) -> Option<MessageReply> {
        let requester = Requester { thread: header.thread, expects_interrupts: false };
        match self.interrupts.run(header.unique, requester, pin!(freed)).await {
            CallEnd::Itself(_) | CallEnd::Interrupted => Some(self.reply(Err(Errno::INTERRUPTED), header.unique)),
            CallEnd::Late(_) => None,
        }
    }

    async fn carried_out(&self, message: &[u8]) -> Option<MessageReply> {
        let header = RequestHeader::decode(message).ok()?;
        let operation = request::decode(&header, message).ok()?;
        if let FuseOperation::Interrupt { unique } = operation {
            let is_ours = self.wait_for_grace(unique).await && self.interrupts.try_take_answer(unique);
            return is_ours.then(|| self.reply(Err(Errno::INTERRUPTED), unique));
        }
        let expects_interrupts = matches!(operation, FuseOperation::Lock { .. });
        let requester = Requester { thread: header.thread, expects_interrupts };
        let call = pin!(operations::carry_out(self, &header, operation, message));
        match self.interrupts.run(header.unique, requester, call).await {
            CallEnd::Itself(outcome) => Some(self.reply(outcome, header.unique)),
            CallEnd::Interrupted => Some(self.reply(Err(Errno::INTERRUPTED), header.unique)),
            CallEnd::Late(outcome) => {
                if let Some(Ok(answer)) = outcome {
                    self.take_back(&answer.granted);
                }
                None
            }
        }
    }
}

impl<P: Platform> MessageMachine for Mount<P> {
    fn message_bytes_max(&self) -> usize {
        MESSAGE_BYTES_MAX
    }

    fn refuse(&self) {
        self.refuses.store(true, Ordering::Release);
        self.notices.close();
    }

    fn poll_notice(&self, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        let message = |(disk, change)| Notice { disk, message: reply::notice(change) };
        self.notices.poll(cx).map(|next| next.map(message))
    }

    fn notice_taken(&self, disk: u64) {
        self.notices.taken(disk);
    }

    fn resumption(&self) -> Option<MessageReply> {
        self.resumes.then(reply::resend)
    }

    fn try_answer(&self, message: &[u8]) -> Tried {
        // Without a number there is nothing to answer.
        let Ok(header) = RequestHeader::decode(message) else { return Tried::Nothing };
        self.calls.count(header.opcode);
        if header.unique & abi::UNIQUE_RESENT != 0 {
            self.take_back_inherited(header.unique);
        }
        let operation = match request::decode(&header, message) {
            Ok(operation) => operation,
            Err(_) => return Tried::Reply(self.reply(Err(Errno::INVALID), header.unique)),
        };
        match operation {
            FuseOperation::Forget { lookups } => {
                self.known().forget(header.node, lookups);
                return Tried::Nothing;
            }
            FuseOperation::BatchForget { count, pairs } => {
                let mut nodes = self.known();
                request::forgotten(count, pairs).for_each(|(node, lookups)| nodes.forget(node, lookups));
                return Tried::Nothing;
            }
            _ => {}
        }
        if let Some(errno) = self.refusal(&header, &operation) {
            return Tried::Reply(self.reply(Err(errno), header.unique));
        }
        match self.at_once(&header, &operation) {
            Some(outcome) => Tried::Reply(self.reply(outcome, header.unique)),
            None => Tried::Waits,
        }
    }

    fn answer(self: Arc<Self>, message: Box<dyn AsRef<[u8]> + Send + Sync>) -> Answering {
        let holding = match self.hold((*message).as_ref()) {
            Ok(holding) => holding,
            Err((header, freed)) => {
                drop(message);
                return Box::pin(async move { self.put_off(&header, freed).await });
            }
        };
        Box::pin(async move {
            let _holding = holding;
            self.carried_out((*message).as_ref()).await
        })
    }
}

/// INIT's answer: the flags that both sides have.
fn accept(offer: &Init, wanted: u64) -> Outcome {
    let mut answer = ReplyDraft::empty();
    let head = &mut answer.head;
    if offer.major > abi::MAJOR {
        // The kernel asks again with our version.
        head.u32(abi::MAJOR);
        head.u32(abi::MINOR);
        (0..14).for_each(|_| head.u32(0));
        return Ok(answer);
    }
    if offer.major < abi::MAJOR || offer.minor < abi::MINOR_OLDEST {
        return Err(Errno::PROTOCOL);
    }
    let flags = offer.flags & wanted;
    head.u32(abi::MAJOR);
    head.u32(offer.minor.min(abi::MINOR));
    head.u32(offer.readahead_bytes);
    head.u32(flags as u32);
    head.u16(BACKGROUND_MAX);
    // From three quarters on, the kernel counts the mount as congested.
    head.u16(BACKGROUND_MAX / 4 * 3);
    head.u32(DATA_BYTES_MAX as u32);
    // Times have a granularity of a nanosecond.
    head.u32(1);
    head.u16((DATA_BYTES_MAX / PAGE_BYTES) as u16);
    head.u16(0);
    head.u32((flags >> 32) as u32);
    (0..7).for_each(|_| head.u32(0));
    Ok(answer)
}

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

    fn poll_calls(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(reply)) = std::pin::Pin::new(&mut self.calls).poll_next(cx) {
            self.replies.extend(reply);
        }
    }

    fn calls_in_progress(&self) -> usize {
        self.calls.len() + self.replies.len()
    }
}
