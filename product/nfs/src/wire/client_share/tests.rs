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
    let clients = Clients::default();
    let (mut first, mut second, mut other) = (clients.share(user(1)), clients.share(user(1)), clients.share(user(2)));
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
    let clients = Clients::default();
    let (mut first, second) = (clients.share(user(1)), clients.share(user(1)));
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
fn clients_that_went_are_forgotten_when_the_next_comes() {
    let clients = Clients::default();
    for last in 0..100 {
        drop(clients.share(user(last)));
    }
    let _one = clients.share(user(200));
    assert_eq!(lock(&clients.0).len(), 1);
}
