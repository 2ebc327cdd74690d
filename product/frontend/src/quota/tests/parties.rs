use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use super::super::*;

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn user(uid: u32) -> Party {
    Party::User(uid)
}

#[test]
fn connections_of_one_party_are_added_up_and_those_of_others_are_not() {
    let parties = Parties::default();
    let (mut first, mut second, mut other) = (parties.quota(user(1)), parties.quota(user(1)), parties.quota(user(2)));
    first.hold(100);
    second.hold(30);
    other.hold(7);
    assert_eq!([first.others(), second.others(), other.others()], [30, 100, 0]);
    first.hold(60);
    assert_eq!(second.others(), 60);
    drop(first);
    assert_eq!(second.others(), 0, "what it held went with it");
}

#[test]
fn who_waits_is_woken_when_another_holds_less_and_not_when_it_holds_more() {
    let parties = Parties::default();
    let (mut first, second) = (parties.quota(user(1)), parties.quota(user(1)));
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    first.hold(100);
    second.wake_when_less(&waker);
    second.wake_when_less(&waker);
    first.hold(200);
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    first.hold(199);
    assert_eq!(count.0.load(Ordering::Relaxed), 1, "once");
    second.wake_when_less(&waker);
    drop(first);
    assert_eq!(count.0.load(Ordering::Relaxed), 2);
}

#[test]
fn parties_that_went_are_forgotten_when_the_next_comes() {
    let parties = Parties::default();
    for last in 0..100 {
        drop(parties.quota(user(last)));
    }
    let _one = parties.quota(user(200));
    assert_eq!(lock(&parties.of).len(), 1);
}

#[test]
fn calls_that_outlive_their_connections_count_until_they_end_and_leave_room_for_others() {
    let parties = Parties::default();
    let mut left: Vec<OutlivingBytes> = Vec::new();
    // Each connection of a party that begins no more than it may leaves calls behind.
    let mut leave = |uid| {
        let mut quota = parties.quota(user(uid));
        let may_begin = quota.may_begin(1000);
        if may_begin {
            left.push(quota.outlive(10));
        }
        may_begin
    };
    let of_one = (0..1000).take_while(|_| leave(1)).count();
    assert_eq!(of_one, 51, "half of all, and the call that was begun then");
    let of_others = (2..10).map(|uid| (0..1000).take_while(|_| leave(uid)).count());
    assert_eq!(of_others.collect::<Vec<_>>(), [25, 13, 6, 3, 2, 1, 1, 1]);
    let (of_first, of_new) = (parties.quota(user(1)), parties.quota(user(20)));
    assert_eq!((of_first.others(), of_first.may_begin(1000)), (510, false));
    assert!(of_new.may_begin(1000), "who has left nothing waits for nobody");
    let count = Arc::new(Count(AtomicUsize::new(0)));
    of_first.wake_when_less(&Waker::from(Arc::clone(&count)));
    left.truncate(50);
    assert!(count.0.load(Ordering::Relaxed) > 0 && of_first.may_begin(1000));
    left.clear();
    assert_eq!((of_first.others(), parties.outliving.get()), (0, 0));
}

#[test]
fn a_connection_waits_once_and_not_after_its_end() {
    let parties = Parties::default();
    let held = parties.quota(user(1)).outlive(100);
    for _ in 0..100 {
        let quota = parties.quota(user(1));
        (0..3).for_each(|_| quota.wake_when_less(Waker::noop()));
        assert_eq!(lock(&parties.outliving.waiting).len(), 1);
    }
    assert_eq!(lock(&parties.outliving.waiting).len(), 0);
    assert_eq!(lock(&held.quota.party.all.waiting).len(), 0);
}
