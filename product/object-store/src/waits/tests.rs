use std::sync::atomic::AtomicU64;

use super::*;

thread_local! {
    static NOW: AtomicU64 = const { AtomicU64::new(0) };
}

fn now_ns() -> u64 {
    NOW.with(|now| now.load(Ordering::Relaxed))
}

fn at_s(at: u64) {
    NOW.with(|now| now.store(at * S, Ordering::Relaxed));
}

fn path(name: &str) -> Path {
    Path::from(name)
}

// rule: Each request to a store is counted while it waits, between its tries too.
#[test]
fn a_request_waits_from_its_first_try_to_its_answer() {
    let waiting = WaitingRequests::new(now_ns);
    let first = waiting.begin(WaitKind::Put, &path("wal/1"));
    assert_eq!(waiting.waits(), RequestWaits { requests: 1, oldest_ns: 0, why: None });
    at_s(3);
    first.fails("SlowDown".to_owned());
    drop(first);
    at_s(6);
    let other = waiting.begin(WaitKind::Get, &path("wal/1"));
    waiting.hears();
    other.ends();
    drop(other);
    let waits = RequestWaits { requests: 1, oldest_ns: 6 * S, why: Some("SlowDown".to_owned()) };
    assert_eq!((waiting.waits(), waiting.away_ns()), (waits, 6 * S), "answers to others end no wait");
    let second = waiting.begin(WaitKind::Put, &path("wal/1"));
    assert_eq!(second.waited_ns(), 6 * S);
    second.ends();
    drop(second);
    assert_eq!((waiting.waits(), waiting.trouble(), waiting.away_ns()), (RequestWaits::default(), None, 0));
}

#[test]
fn a_request_that_is_not_answered_at_all_counts_too() {
    let waiting = WaitingRequests::new(now_ns);
    let hangs = waiting.begin(WaitKind::Get, &path("data/1"));
    at_s(9);
    assert_eq!((waiting.waits().oldest_ns, waiting.away_ns()), (9 * S, 0));
    at_s(10);
    assert_eq!((waiting.away_ns(), waiting.trouble()), (10 * S, None));
    waiting.hears();
    assert_eq!(waiting.away_ns(), 0, "bytes come: it is large");
    drop(hangs);
    assert_eq!(waiting.waits(), RequestWaits::default());
}

#[test]
fn a_request_that_nobody_repeats_goes_and_the_list_is_bounded() {
    let waiting = WaitingRequests::new(now_ns);
    let sent: Vec<_> =
        (0..=WAITING_MAX).map(|at| waiting.begin(WaitKind::Get, &path(&format!("data/{at:05}")))).collect();
    assert_eq!(waiting.waits().requests, WAITING_MAX as u64);
    sent.iter().for_each(|sent| sent.fails("no".to_owned()));
    drop(sent);
    at_s(14);
    assert_eq!(waiting.waits().requests, WAITING_MAX as u64);
    at_s(15);
    assert_eq!((waiting.waits(), waiting.trouble()), (RequestWaits::default(), None));
}

// rule: The time without progress counts from the last object that the store took, whatever else it answers.
#[test]
fn a_store_that_refuses_objects_takes_none_though_it_answers() {
    let waiting = WaitingRequests::new(now_ns);
    let refused = |name: &str, why: &str| {
        let put = waiting.begin(WaitKind::Put, &path(name));
        put.note_refusal(why);
        put.fails(why.to_owned());
    };
    at_s(100);
    assert_eq!((waiting.untaken_ns(), waiting.refusal()), (0, None), "nothing is sent");
    refused("wal/1", "AccessDenied");
    at_s(103);
    refused("wal/1", "SlowDown");
    waiting.hears();
    let first = Trouble { since_ns: 100 * S, why: "AccessDenied".to_owned() };
    assert_eq!((waiting.untaken_ns(), waiting.refusal()), (3 * S, Some(first)));
    // One in flight may be taken.
    let sent = waiting.begin(WaitKind::Put, &path("data/1"));
    assert_eq!(waiting.untaken_ns(), 0);
    sent.succeeds();
    drop(sent);
    assert_eq!((waiting.untaken_ns(), waiting.refusal()), (0, None));
    at_s(105);
    refused("wal/1", "SlowDown");
    at_s(110);
    assert_eq!(waiting.untaken_ns(), 5 * S);
    at_s(120);
    assert_eq!(waiting.untaken_ns(), 0, "nobody tries any more");
    // Removals and reads are no progress, and no failure either.
    let removal = waiting.begin(WaitKind::Delete, &path("data/1"));
    removal.note_refusal("AccessDenied");
    assert_eq!(waiting.untaken_ns(), 0);
    let hangs = waiting.begin(WaitKind::Put, &path("data/2"));
    at_s(139);
    assert_eq!(waiting.untaken_ns(), 0, "a large one takes its time");
    at_s(140);
    waiting.hears();
    assert_eq!(waiting.untaken_ns(), 20 * S);
    drop(hangs);
}
