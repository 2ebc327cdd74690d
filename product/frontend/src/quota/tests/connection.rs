use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::super::super::Parties;
use super::super::*;
use crate::Party;

const BOUNDS: ByteBounds = ByteBounds { connection_bytes: 100, party_bytes: 150 };
const SHORT: u32 = 16;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_reply_is_cut_for_the_first_call_of_a_turn_and_for_a_call_that_is_alone() {
    let mut quota = ConnectionQuota::new(Parties::default().quota(Party::ROOT));
    let reply =
        |quota: &ConnectionQuota, held, is_first, is_alone| quota.reply_bytes(1000, SHORT, held, is_first, is_alone);
    assert_eq!(reply(&quota, 500, false, false), Some(1000), "a world without a bound");
    quota.set_world_bytes(1200);
    // Held, first of a poll, alone: the reply.
    for (held, is_first, is_alone, wanted) in [
        (200, false, false, Some(1000)),
        (201, false, false, None),
        (201, true, false, Some(999)),
        (1184, true, false, Some(SHORT)),
        (1185, true, false, None),
        (1185, false, true, Some(SHORT)),
        (5000, false, true, Some(SHORT)),
    ] {
        assert_eq!(reply(&quota, held, is_first, is_alone), wanted, "{held} {is_first} {is_alone}");
    }
    assert_eq!(quota.reply_bytes(10, SHORT, 5000, true, true), Some(10), "a short reply is never made longer");
}

#[test]
fn a_connection_waits_for_others_of_its_party_and_is_woken_by_them() {
    let parties = Parties::default();
    let [mut one, mut other] = [(); 2].map(|()| ConnectionQuota::new(parties.quota(Party::ROOT)));
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    assert!(one.may_hold_more(100, BOUNDS) && !one.may_hold_more(101, BOUNDS), "its own bound");
    other.publish(100, BOUNDS, &waker);
    assert!(one.may_hold_more(50, BOUNDS) && !one.may_hold_more(51, BOUNDS) && one.may_hold_more(0, BOUNDS));
    one.publish(60, BOUNDS, &waker);
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    other.publish(80, BOUNDS, &waker);
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert!(one.may_hold_more(60, BOUNDS));
}
