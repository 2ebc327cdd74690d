use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;

use super::*;
use crate::status::NfsStatus;
use crate::steps::steps_of;

fn machine(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn cache() -> ReplyCache {
    ReplyCache::new([7; 16])
}

fn of_machine(last: u8, user: Option<u32>) -> CallOwner {
    CallOwner { party: Party::Machine(machine(last)), user }
}

fn done() -> BoxFuture<'static, CachedReply> {
    Box::pin(std::future::ready(kept("done")))
}

/// Makes a call, and has it answered. Returns whether it was known.
fn ask(cache: &ReplyCache, whose: CallOwner, xid: u32) -> bool {
    let (mut call, found) = cache.find_or_start(cache.key(machine(1), whose, xid, b""), done);
    assert!(poll(&mut call).is_ready());
    found
}

fn kept(word: &'static str) -> CachedReply {
    CachedReply { record: Bytes::from_static(word.as_bytes()), status: NfsStatus::Ok }
}

fn poll(call: &mut SharedCall) -> Poll<CachedReply> {
    Pin::new(call).poll(&mut Context::from_waker(std::task::Waker::noop()))
}

#[test]
fn a_call_sent_again_gets_the_first_reply() {
    let cache = cache();
    let runs = Arc::new(AtomicUsize::new(0));
    let start = || {
        let runs = Arc::clone(&runs);
        Box::pin(async move {
            runs.fetch_add(1, Ordering::Relaxed);
            kept("done")
        }) as BoxFuture<'static, CachedReply>
    };
    let key = cache.key(machine(1), of_machine(1, None), 7, b"remove a");
    let (mut first, found) = cache.find_or_start(key, start);
    assert!(!found);
    assert_eq!(poll(&mut first), Poll::Ready(kept("done")));
    let (mut again, found) = cache.find_or_start(key, start);
    assert!(found);
    assert_eq!(poll(&mut again), Poll::Ready(kept("done")));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    // A new client, a new number, and new bytes make a new call.
    for other in [
        cache.key(machine(2), of_machine(1, None), 7, b"remove a"),
        cache.key(machine(1), of_machine(2, None), 7, b"remove a"),
        cache.key(machine(1), of_machine(1, Some(1000)), 7, b"remove a"),
        cache.key(machine(1), of_machine(1, None), 8, b"remove a"),
        cache.key(machine(1), of_machine(1, None), 7, b"remove b"),
    ] {
        assert!(!cache.find_or_start(other, start).1);
    }
}

#[test]
fn a_call_sent_again_while_it_runs_waits_for_it_and_can_drive_it() {
    let cache = cache();
    let give = Arc::new(AtomicUsize::new(0));
    let take = Arc::clone(&give);
    let start = || {
        let take = Arc::clone(&take);
        let wait = futures_util::future::poll_fn(move |_| match take.load(Ordering::Relaxed) {
            0 => Poll::Pending,
            _ => Poll::Ready(kept("late")),
        });
        Box::pin(wait) as BoxFuture<'static, CachedReply>
    };
    let key = cache.key(machine(1), of_machine(1, None), 7, b"rename a b");
    let (mut first, _) = cache.find_or_start(key, start);
    assert_eq!(poll(&mut first), Poll::Pending);
    let (mut second, found) = cache.find_or_start(key, start);
    assert!(found);
    drop(first);
    give.store(1, Ordering::Relaxed);
    assert_eq!(poll(&mut second), Poll::Ready(kept("late")));
}

#[test]
fn keeps_a_bounded_number_of_each_user_and_running_calls_longest() {
    let cache = cache();
    let never = || Box::pin(std::future::pending()) as BoxFuture<'static, CachedReply>;
    let whose = of_machine(1, Some(1000));
    let key = |xid: u32| cache.key(machine(1), whose, xid, b"");
    let (_running, _) = cache.find_or_start(key(0), never);
    for xid in 1..USER_ENTRIES_MAX as u32 + 100 {
        assert!(!ask(&cache, whose, xid));
    }
    assert_eq!(cache.len(), USER_ENTRIES_MAX);
    assert!(cache.find_or_start(key(0), never).1, "the running call is still known");
    assert!(!ask(&cache, whose, 1), "the oldest answered one is not");
    assert!(ask(&cache, whose, USER_ENTRIES_MAX as u32));
    assert_eq!(cache.len(), USER_ENTRIES_MAX);
}

#[test]
fn who_asks_much_does_not_have_others_forgotten() {
    let cache = cache();
    let roots = CallOwner { party: Party::ROOT, user: Some(0) };
    let mounted = |uid| CallOwner { party: Party::ROOT, user: Some(uid) };
    let user = |uid| CallOwner { party: Party::User(uid), user: Some(uid) };
    let modest = [roots, mounted(1000), user(1000), of_machine(1, Some(1000)), of_machine(2, Some(0))];
    for xid in 0..100 {
        assert!(modest.iter().all(|&whose| !ask(&cache, whose, xid)));
    }
    // Many calls come from a user of this host by its own connection, from the same user through a mount of root's
    // kernel, from a machine that claims many users, and from many machines.
    for xid in 0..ENTRIES_MAX as u32 + 4_000 {
        let of_many = of_machine(100 + (xid % 50) as u8, Some(0));
        for whose in [user(1001), mounted(1001), of_machine(3, Some(1001)), of_machine(4, Some(xid % 5_000)), of_many] {
            assert!(!ask(&cache, whose, 1_000 + xid), "{whose:?}");
        }
    }
    assert_eq!(cache.len(), ENTRIES_MAX);
    for whose in modest {
        assert!((0..100).all(|xid| ask(&cache, whose, xid)), "{whose:?}");
    }
    assert!(ask(&cache, user(1001), 1_000 + ENTRIES_MAX as u32 + 3_999), "the last of one that asked much");
}

#[test]
fn what_this_hosts_root_asked_stays_whoever_comes() {
    let cache = cache();
    let roots = CallOwner { party: Party::ROOT, user: Some(0) };
    (0..ROOT_ENTRIES as u32).for_each(|xid| assert!(!ask(&cache, roots, xid)));
    // As many users as there are entries, each with one call.
    for uid in 1..2 * ENTRIES_MAX as u32 {
        assert!(!ask(&cache, CallOwner { party: Party::User(uid), user: Some(uid) }, 1));
    }
    assert_eq!(cache.len(), ENTRIES_MAX);
    assert!((0..ROOT_ENTRIES as u32).all(|xid| ask(&cache, roots, xid)));
}

#[test]
fn hashes_depend_on_a_key_that_clients_do_not_know() {
    let key = |hash_key| ReplyCache::new(hash_key).key(machine(1), of_machine(1, None), 7, b"remove a");
    assert_eq!(key([7; 16]).hash, key([7; 16]).hash, "every run of the simulator is the same");
    assert_ne!(key([7; 16]).hash, key([8; 16]).hash);
    let place = |hash_key| Keyed(hash_key).hash_one(key([7; 16]));
    assert_ne!(place([7; 16]), place([8; 16]));
}

// rule: a full reply cache, filled by one party or by many and with calls that run, takes a fixed number of steps for
// each call
#[test]
fn a_full_cache_takes_few_steps_for_a_call() {
    let never = || Box::pin(std::future::pending()) as BoxFuture<'static, CachedReply>;
    let of = |uid| CallOwner { party: Party::User(uid), user: Some(uid) };
    let roots = CallOwner { party: Party::ROOT, user: Some(0) };
    for parties in [1, 4, ENTRIES_MAX as u32] {
        let cache = cache();
        let begin = |whose: CallOwner, xid: u32| {
            let (steps, (_, found)) = steps_of(|| cache.find_or_start(cache.key(machine(1), whose, xid, b""), never));
            assert!(steps < 2 * EVICTION_TRIES as u64, "{parties} parties: {steps} steps");
            found
        };
        (0..ROOT_ENTRIES as u32).for_each(|xid| _ = begin(roots, xid));
        for xid in 0..ENTRIES_MAX as u32 {
            assert!(!begin(of(1 + xid % parties), 7 + xid));
        }
        for whose in [roots, of(1), of(2), of(u32::MAX)] {
            assert!(!begin(whose, u32::MAX) && begin(whose, u32::MAX));
        }
    }
}
