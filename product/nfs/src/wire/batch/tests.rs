use std::sync::atomic::AtomicUsize;
use std::task::{Wake, Waker};

use super::*;

fn flat(output: &[Segment]) -> Vec<u8> {
    let bytes = output.iter().map(|segment| match segment {
        Segment::Bytes(bytes) => bytes.to_vec(),
        Segment::Lent(bytes) => bytes.to_vec(),
        Segment::Pages(_) => panic!("no pages here"),
    });
    bytes.collect::<Vec<_>>().concat()
}

#[test]
fn keeps_the_order_of_headers_and_data() {
    let mut batch = Batch::default();
    let large = Bytes::from(vec![0xaa; COPY_BYTES_MAX + 1]);
    batch.writer.raw(b"head");
    batch.data(Data::Copied(large.clone()));
    batch.writer.raw(b"\0\0\0next");
    batch.data(Data::Copied(Bytes::from_static(b"small")));
    batch.writer.raw(b"\0\0\0");
    batch.record(large.clone());
    batch.record(Bytes::from_static(b"last"));
    let expected = [b"head", &large[..], b"\0\0\0next", b"small\0\0\0", &large[..], b"last"].concat();
    assert_eq!(batch.len(), expected.len());
    let mut output = Vec::new();
    batch.hand_out(&mut output);
    assert_eq!(flat(&output), expected);
    assert_eq!(output.len(), 5);
    assert_eq!(batch.len(), 0);
    let large_ones = output.iter().filter(|segment| match segment {
        Segment::Bytes(bytes) => large.as_ptr_range().contains(&bytes.as_ptr()),
        Segment::Lent(_) | Segment::Pages(_) => false,
    });
    assert_eq!(large_ones.count(), 2, "large data is not copied");
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn counts_what_the_world_holds_and_wakes_when_it_lets_go() {
    let mut batch = Batch::default();
    let outstanding = Arc::clone(batch.outstanding());
    let woken = Arc::new(Count::default());
    let mut output = Vec::new();
    batch.hand_out(&mut output);
    assert!(output.is_empty());
    batch.writer.raw(&[1; 100]);
    batch.data(Data::Copied(Bytes::from(vec![2; 8192])));
    batch.hand_out(&mut output);
    batch.writer.raw(&[3; 8]);
    batch.hand_out(&mut output);
    assert_eq!(outstanding.bytes(), 100 + 8192 + 8);
    outstanding.wake_when_fewer(&Waker::from(Arc::clone(&woken)));
    output.remove(0);
    assert_eq!(outstanding.bytes(), 100 + 8192 + 8, "the copied data behind the headers is not sent");
    output.remove(0);
    assert_eq!((outstanding.bytes(), woken.0.load(Ordering::Relaxed)), (8, 1));
    output.clear();
    assert_eq!((outstanding.bytes(), woken.0.load(Ordering::Relaxed)), (0, 1));
}

/// Output that notes its number of bytes at each end.
#[derive(Default)]
struct Ends {
    bytes: usize,
    ends: Vec<usize>,
}

impl Output for Ends {
    fn push(&mut self, segment: Segment) {
        self.bytes += segment.len();
    }

    fn end_reply(&mut self) {
        self.ends.push(self.bytes);
    }
}

#[test]
fn what_is_handed_out_ends_where_its_last_record_does() {
    let mut batch = Batch::default();
    let mut output = Ends::default();
    batch.hand_out(&mut output);
    assert!(output.ends.is_empty(), "nothing was handed out");
    batch.writer.raw(b"head");
    batch.data(Data::Copied(Bytes::from(vec![2; 8192])));
    batch.record(Bytes::from_static(b"last"));
    batch.hand_out(&mut output);
    batch.writer.raw(b"next");
    batch.hand_out(&mut output);
    assert_eq!(output.ends, [4 + 8192 + 4, 4 + 8192 + 4 + 4]);
}

#[test]
fn a_buffer_that_came_back_is_written_again_and_one_that_is_held_is_not() {
    let mut batch = Batch::default();
    let mut round = |byte: u8, output: &mut Vec<Segment>| {
        batch.begin();
        batch.writer.raw(&[byte; 8]);
        batch.hand_out(output);
        let Some(Segment::Lent(part)) = output.last() else { panic!("not lent") };
        part.as_ptr()
    };
    // The first batch has a small buffer, since the size of the next one is not known yet.
    round(0, &mut Vec::new());
    let (mut held, mut sent) = (Vec::new(), Vec::new());
    let first = round(1, &mut held);
    let second = round(2, &mut sent);
    assert_ne!(first, second);
    sent.clear();
    assert_eq!(round(3, &mut sent), second);
    assert_eq!(flat(&held), [1; 8]);
    // Both pooled buffers are in use; a third one is not pooled.
    round(4, &mut Vec::new());
    held.clear();
    sent.clear();
    assert!([first, second].contains(&round(5, &mut sent)));
}

#[test]
fn large_buffers_are_not_kept() {
    let mut batch = Batch::default();
    for bytes in [POOLED_BYTES_MAX + 4, 4] {
        batch.begin();
        batch.writer.raw(&vec![1; bytes]);
        batch.hand_out(&mut Vec::new());
        assert!(batch.pooled.iter().all(|pooled| pooled.buffer.capacity() <= POOLED_BYTES_MAX));
    }
}
