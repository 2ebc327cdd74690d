use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use super::*;

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
    let (mut first, mut second, mut other) = (parties.share(user(1)), parties.share(user(1)), parties.share(user(2)));
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
    let (mut first, second) = (parties.share(user(1)), parties.share(user(1)));
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
        drop(parties.share(user(last)));
    }
    let _one = parties.share(user(200));
    assert_eq!(lock(&parties.0).len(), 1);
}
