use super::*;

fn queue(nr_requests: u64, batch: u64) -> RequestQueue {
    RequestQueue::new(QueueOptions { nr_requests, request_pages: 16, batch })
}

/// The counts at which congestion begins and ends.
fn marks(nr_requests: u64) -> (u64, u64) {
    let (mut queue, mut io) = (queue(nr_requests, 32), IoContext::default());
    while !queue.is_congested() {
        assert!(queue.get_request(&mut io, 0));
    }
    let on = queue.count;
    while queue.is_congested() {
        queue.freed_request();
    }
    (on, queue.count)
}

#[test]
fn congestion_begins_and_ends_where_the_kernels_does() {
    // Begins when this many are taken; ends below 103 and 1,663.
    assert_eq!(marks(128), (113, 102));
    assert_eq!(marks(2048), (1793, 1662));
    assert_eq!(marks(1), (1, 0));
}

#[test]
fn a_full_queue_stops_all_but_batchers() {
    let mut queue = queue(8, 4);
    let [mut first, mut second] = [IoContext::default(); 2];
    for _ in 0..7 {
        assert!(queue.get_request(&mut first, 0));
    }
    // The task that takes the eighth is a batcher: four requests, the eighth among them. Half as many again is 12.
    for taken in 8..=11 {
        assert!(queue.get_request(&mut first, 0), "{taken}");
    }
    assert!(!queue.get_request(&mut first, 0) && !queue.get_request(&mut second, 0));
    second.set_batching(4, 0);
    assert!(queue.get_request(&mut second, 0));
    assert!(!queue.get_request(&mut second, 0), "twelve are taken");
    for left in (8..12).rev() {
        assert_eq!(queue.freed_request(), Freed { cleared: false, wakes: false }, "{left}");
    }
    assert!(queue.freed_request().wakes);
}

#[test]
fn a_batch_ends_after_twenty_milliseconds_but_never_before_its_first_request() {
    let mut queue = queue(8, 4);
    let mut io = IoContext::default();
    (0..8).for_each(|_| assert!(queue.get_request(&mut io, 0)));
    assert!(queue.get_request(&mut io, 19));
    assert!(!queue.get_request(&mut io, 20));
    io.set_batching(4, 20);
    assert!(queue.get_request(&mut io, 1000), "the first, however late");
    assert!(!queue.get_request(&mut io, 1000));
}
