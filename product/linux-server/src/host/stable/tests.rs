use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

fn ended(round: &Arc<Round>) -> Option<Result<(), VolumeError>> {
    let mut waiting = pin!(Arc::clone(round).ended());
    match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

#[test]
fn what_is_changed_during_a_sync_shares_the_next_and_nothing_waits_for_company() {
    let group = Group::new();
    let (first, leads) = group.ask([1]);
    assert!(leads, "nobody else is at it");
    let (mut syncs, mut later) = (Vec::new(), Vec::new());
    group.lead(|changed| {
        if syncs.is_empty() {
            // During the first sync three more come; none of them has to lead, none ends with this sync.
            for change in [2, 3, 4] {
                let (round, leads) = group.ask([change]);
                assert!(!leads && ended(&round).is_none());
                later.push(round);
            }
            assert!(ended(&first).is_none(), "not before its sync has ended");
        } else {
            assert_eq!(ended(&first), Some(Ok(())), "it waited for nobody");
        }
        syncs.push(changed.to_vec());
        Ok(())
    });
    assert_eq!(syncs, [vec![1], vec![2, 3, 4]], "each change in a sync that began after it, in their order");
    assert!(later.iter().all(|round| ended(round) == Some(Ok(()))));
    assert!(group.ask([5]).1, "the leader has gone: the next one leads");
}

#[test]
fn a_failed_sync_is_told_to_those_who_shared_it_alone() {
    let group = Group::new();
    let (first, _) = group.ask(["first"]);
    let (second, mut syncs) = (Mutex::new(None), 0);
    group.lead(|_| {
        syncs += 1;
        if syncs == 1 {
            *lock(&second) = Some(group.ask(["second"]).0);
            return Err(VolumeError::Io { errno: 5 });
        }
        Ok(())
    });
    assert_eq!(ended(&first), Some(Err(VolumeError::Io { errno: 5 })));
    assert_eq!(ended(&lock(&second).clone().unwrap()), Some(Ok(())));
}

#[test]
fn everyone_who_waits_is_woken() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let group = Group::new();
    let (round, _) = group.ask([()]);
    let counts: Vec<_> = (0..3).map(|_| Arc::new(Count(AtomicUsize::new(0)))).collect();
    for count in &counts {
        let waker = Waker::from(Arc::clone(count));
        for _ in 0..2 {
            assert!(pin!(Arc::clone(&round).ended()).poll(&mut Context::from_waker(&waker)).is_pending());
        }
    }
    group.lead(|_| Ok(()));
    assert!(counts.iter().all(|count| count.0.load(Ordering::Relaxed) == 1), "once each");
}
