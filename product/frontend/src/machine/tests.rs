use std::task::Waker;

use super::*;

/// Calls of one byte; the byte is the number of segments in the reply.
struct Segments {
    calls: BytesMut,
}

impl ProtocolMachine for Segments {
    fn receive(&mut self, input: &mut BytesMut) -> Result<(), ProtocolError> {
        self.calls.unsplit(input.split());
        Ok(())
    }

    fn needs_input(&self) -> bool {
        true
    }

    fn input_hint(&self, _input: &BytesMut) -> usize {
        1
    }

    fn poll_output(&mut self, _cx: &mut Context<'_>, output: &mut dyn Output) -> Poll<()> {
        if self.calls.is_empty() {
            return Poll::Pending;
        }
        for call in self.calls.split() {
            (0..call).for_each(|_| output.push(Segment::Bytes(Bytes::copy_from_slice(&[call]))));
            output.end_reply();
        }
        Poll::Ready(())
    }

    fn poll_calls(&mut self, _cx: &mut Context<'_>) {}

    fn calls_in_progress(&self) -> usize {
        self.calls.len()
    }
}

/// A transport that passes each reply on in one piece.
#[derive(Default)]
struct OneWriteEach {
    begun: Vec<u8>,
    written: Vec<Vec<u8>>,
}

impl Output for OneWriteEach {
    fn push(&mut self, segment: Segment) {
        match segment {
            Segment::Bytes(bytes) => self.begun.extend_from_slice(&bytes),
            Segment::Lent(bytes) => self.begun.extend_from_slice(&bytes),
            Segment::Pages(pages) => pages.slices().for_each(|slice| self.begun.extend_from_slice(slice)),
        }
    }

    fn end_reply(&mut self) {
        self.written.push(std::mem::take(&mut self.begun));
    }
}

fn machine_with(calls: &[u8]) -> Segments {
    let mut machine = Segments { calls: BytesMut::new() };
    machine.receive(&mut BytesMut::from(calls)).unwrap();
    machine
}

#[test]
fn a_transport_of_messages_is_told_where_each_reply_ends() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut output = OneWriteEach::default();
    assert!(machine_with(&[2, 1, 3]).poll_output(&mut cx, &mut output).is_ready());
    assert_eq!(output.written, [vec![2, 2], vec![1], vec![3, 3, 3]]);
    assert!(output.begun.is_empty());
}

#[test]
fn a_stream_has_the_same_bytes_in_order() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut output: Vec<Segment> = Vec::new();
    assert!(machine_with(&[2, 1]).poll_output(&mut cx, &mut output).is_ready());
    let bytes: Vec<usize> = output.iter().map(Segment::len).collect();
    assert_eq!(bytes, [1, 1, 1]);
}

#[derive(Default)]
struct Counted(std::sync::atomic::AtomicUsize);

impl Lent for Counted {
    fn bytes(&self) -> &[u8] {
        b"abcdef"
    }

    fn given_back(&self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn a_part_that_is_lent_is_its_bytes_and_is_given_back_once() {
    let buffer = Arc::new(Counted::default());
    let segment = Segment::Lent(LentBytes::new(Arc::clone(&buffer) as _, 2..5));
    assert_eq!(segment.len(), 3);
    assert!(matches!(&segment, Segment::Lent(part) if part[..] == *b"cde"));
    drop(segment);
    assert_eq!(buffer.0.load(std::sync::atomic::Ordering::Relaxed), 1);
}
