use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use super::*;

fn peer(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn kept(word: &'static str) -> KeptReply {
    KeptReply { record: Bytes::from_static(word.as_bytes()), status: Status::Ok }
}

fn poll(call: &mut SharedCall) -> Poll<KeptReply> {
    call.poll_unpin(&mut Context::from_waker(std::task::Waker::noop()))
}

#[test]
fn a_call_sent_again_gets_the_first_reply() {
    let cache = ReplyCache::default();
    let runs = Arc::new(AtomicUsize::new(0));
    let start = || {
        let runs = Arc::clone(&runs);
        Box::pin(async move {
            runs.fetch_add(1, Ordering::Relaxed);
            kept("done")
        }) as Pin<Box<dyn Future<Output = KeptReply> + Send>>
    };
    let key = Key::new(peer(1), None, 7, b"remove a");
    let (mut first, found) = cache.find_or_start(key, start);
    assert!(!found);
    assert_eq!(poll(&mut first), Poll::Ready(kept("done")));
    let (mut again, found) = cache.find_or_start(key, start);
    assert!(found);
    assert_eq!(poll(&mut again), Poll::Ready(kept("done")));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    // Another client, another number, other bytes: other calls.
    for other in [
        Key::new(peer(2), None, 7, b"remove a"),
        Key::new(peer(1), Some(1000), 7, b"remove a"),
        Key::new(peer(1), None, 8, b"remove a"),
        Key::new(peer(1), None, 7, b"remove b"),
    ] {
        assert!(!cache.find_or_start(other, start).1);
    }
}

#[test]
fn a_call_sent_again_while_it_runs_waits_for_it_and_can_drive_it() {
    let cache = ReplyCache::default();
    let give = Arc::new(AtomicUsize::new(0));
    let take = Arc::clone(&give);
    let start = || {
        let take = Arc::clone(&take);
        let wait = futures_util::future::poll_fn(move |_| match take.load(Ordering::Relaxed) {
            0 => Poll::Pending,
            _ => Poll::Ready(kept("late")),
        });
        Box::pin(wait) as Pin<Box<dyn Future<Output = KeptReply> + Send>>
    };
    let key = Key::new(peer(1), None, 7, b"rename a b");
    let (mut first, _) = cache.find_or_start(key, start);
    assert_eq!(poll(&mut first), Poll::Pending);
    let (mut second, found) = cache.find_or_start(key, start);
    assert!(found);
    drop(first);
    give.store(1, Ordering::Relaxed);
    assert_eq!(poll(&mut second), Poll::Ready(kept("late")));
}

#[test]
fn keeps_a_bounded_number_and_running_calls_longest() {
    let cache = ReplyCache::default();
    let done = || Box::pin(std::future::ready(kept("done"))) as Pin<Box<dyn Future<Output = KeptReply> + Send>>;
    let never = || Box::pin(std::future::pending()) as Pin<Box<dyn Future<Output = KeptReply> + Send>>;
    let key = |xid: u32| Key::new(peer(1), None, xid, b"");
    let (_running, _) = cache.find_or_start(key(0), never);
    for xid in 1..ENTRIES_MAX as u32 + 100 {
        let (mut call, found) = cache.find_or_start(key(xid), done);
        assert!(!found && poll(&mut call).is_ready());
    }
    assert_eq!(cache.len(), ENTRIES_MAX);
    assert!(cache.find_or_start(key(0), never).1, "the running call is still known");
    assert!(!cache.find_or_start(key(1), done).1, "the oldest answered one is not");
    assert!(cache.find_or_start(key(ENTRIES_MAX as u32), done).1);
    assert_eq!(cache.len(), ENTRIES_MAX);
}

#[test]
fn a_client_that_asks_much_does_not_have_others_forgotten() {
    let cache = ReplyCache::default();
    let done = || Box::pin(std::future::ready(kept("done"))) as Pin<Box<dyn Future<Output = KeptReply> + Send>>;
    let ask = |last: u8, xid: u32| {
        let (mut call, found) = cache.find_or_start(Key::new(peer(last), None, xid, b""), done);
        assert!(poll(&mut call).is_ready());
        found
    };
    for xid in 0..100 {
        assert!(!ask(1, xid) && !ask(2, xid));
    }
    for xid in 0..4 * ENTRIES_MAX as u32 {
        assert!(!ask(3, xid));
    }
    assert!((0..100).all(|xid| ask(1, xid) && ask(2, xid)), "two that asked little");
    assert!(ask(3, 4 * ENTRIES_MAX as u32 - 1), "the last of the one that asked much");
    assert_eq!(cache.len(), ENTRIES_MAX);
}
