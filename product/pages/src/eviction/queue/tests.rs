use super::*;

/// The frames from tail to head.
fn order(queue: &Queue, pages: &PageTable) -> Vec<u32> {
    let mut found = Vec::new();
    let mut at = queue.tail();
    while let Some(frame) = at {
        found.push(frame.raw());
        at = Queue::newer(pages, frame);
    }
    found
}

#[test]
fn frames_come_at_either_end_and_leave_from_anywhere() {
    let (mut queue, pages) = (Queue::new(1), PageTable::new(5));
    (0..4).for_each(|number| queue.push_head(&pages, FrameId::new(number)));
    queue.push_tail(&pages, FrameId::new(4));
    assert_eq!((order(&queue, &pages), queue.count()), (vec![4, 0, 1, 2, 3], 5));
    for (gone, left) in [(1, vec![4, 0, 2, 3]), (4, vec![0, 2, 3]), (3, vec![0, 2]), (0, vec![2]), (2, vec![])] {
        queue.unlink(&pages, FrameId::new(gone), UNLISTED);
        assert_eq!((order(&queue, &pages), pages.list(FrameId::new(gone))), (left, UNLISTED));
    }
    assert_eq!(queue.count(), 0);
    queue.push_tail(&pages, FrameId::new(2));
    assert_eq!(order(&queue, &pages), [2]);
}
