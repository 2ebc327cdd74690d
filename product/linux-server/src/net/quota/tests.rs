use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Wake;

use super::*;

const MIB: u64 = 1 << 20;

/// Takes more, a step at a time, until nothing remains; returns the bytes held then.
fn take_all(quota: &SharedQuota, share: &ConnectionBytes, step: u64, max: u64) -> u64 {
    while quota.try_hold(share, share.held() + step, 0, max) {}
    share.held()
}

#[test]
fn each_gets_its_unit_and_nobody_more_than_is_left_free() {
    let (quota, max) = (SharedQuota::new(603), 64 * MIB);
    let (one, two) = (ConnectionBytes::new(), ConnectionBytes::new());
    // 64 MiB without 603 units are 26 MiB.
    assert!((12 * MIB..=13 * MIB).contains(&take_all(&quota, &one, MIB, max)), "half: {}", one.held());
    assert!((5 * MIB..=7 * MIB).contains(&take_all(&quota, &two, MIB, max)), "half of the rest: {}", two.held());
    // Taking all at once gives no more than taking it step by step.
    let three = ConnectionBytes::new();
    assert!(!quota.try_hold(&three, 5 * MIB, 0, max) && quota.try_hold(&three, 3 * MIB, 0, max));
    // Connections that come when much is taken have their units, and all together hold no more than the bound.
    let crowd: Vec<_> = (0..600).map(|_| ConnectionBytes::new()).collect();
    assert!(crowd.iter().all(|share| quota.try_hold(share, UNIT_BYTES, 0, max)));
    while crowd.iter().any(|share| quota.try_hold(share, share.held() + UNIT_BYTES, 0, max)) {}
    let held: u64 = crowd.iter().chain([&one, &two, &three]).map(ConnectionBytes::held).sum();
    assert!(held <= max, "{held} bytes are held");
    let before = crowd[0].held();
    assert!(quota.reserve(&crowd[0], MIB, max) < before + UNIT_BYTES);
    quota.settle(&crowd[0], before, before);
    quota.leave(1, &one);
    assert!(quota.try_hold(&crowd[0], 4 * MIB, 0, max), "what came back is there for others");
    assert!(!quota.try_hold(&crowd[599], MIB, 64 * MIB, max), "not what is to be left free");
    quota.settle(&crowd[0], 0, 4 * MIB);
    quota.leave(2, &two);
    quota.leave(3, &three);
    crowd.iter().enumerate().for_each(|(at, share)| quota.leave(4 + at as u64, share));
    assert_eq!(quota.taken(), 603 * UNIT_BYTES);
}

#[test]
fn those_that_want_much_get_equal_parts() {
    for (connections, max) in [(1, 64 * MIB), (3, 64 * MIB), (20, 64 * MIB), (200, 256 * MIB)] {
        let quota = SharedQuota::new(connections as usize);
        let shares: Vec<_> = (0..connections).map(|_| ConnectionBytes::new()).collect();
        // Alternately, as connections of the same speed would.
        let step = UNIT_BYTES;
        while shares.iter().filter(|share| quota.try_hold(share, share.held() + step, 0, max)).count() > 0 {}
        let part = (max - connections * UNIT_BYTES) / (connections + 1) + UNIT_BYTES;
        for share in &shares {
            assert!(share.held().abs_diff(part) <= 2 * step, "{} of {part} for {connections}", share.held());
        }
    }
}

#[test]
fn what_is_reserved_for_a_moment_comes_back() {
    let (quota, max) = (SharedQuota::new(1), 64 * MIB);
    let share = ConnectionBytes::new();
    assert!(quota.try_hold(&share, 2 * MIB, 0, max));
    assert_eq!(quota.reserve(&share, MIB, max), 3 * MIB);
    quota.settle(&share, 2 * MIB, 2 * MIB);
    assert_eq!(quota.taken.load(Ordering::SeqCst), 2 * MIB);
}

struct Flag(AtomicU64);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn those_that_wait_are_woken_in_turn() {
    let (quota, max) = (SharedQuota::new(1), 64 * MIB);
    let holder = ConnectionBytes::new();
    let flags: Vec<_> = (0..3 * WAKES_MAX).map(|_| Arc::new(Flag(AtomicU64::new(0)))).collect();
    for _ in 0..3 {
        // Connections that were woken in vain wait again, behind the others.
        for (number, flag) in flags.iter().enumerate() {
            quota.wait(number as u64 + 1, &Waker::from(Arc::clone(flag)));
        }
        assert!(quota.try_hold(&holder, 2 * MIB, 0, max));
        quota.settle(&holder, 0, 2 * MIB);
    }
    assert!(flags.iter().all(|flag| flag.0.load(Ordering::SeqCst) == 1), "one of three turns each");
    quota.forget(1);
    quota.wake_all();
    assert_eq!(quota.waiters(), 0);
}

/// Connections of several threads take, hold and give back at random. The bound holds at every moment, and once all
/// have gone nothing is taken.
#[test]
fn random_threads_never_take_more_than_the_bound() {
    let max = 16 * MIB;
    let quota = SharedQuota::new(4 * 8);
    let units = quota.taken();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let quota = &quota;
            scope.spawn(move || {
                let mut state = 0x9e37_79b9_7f4a_7c15 ^ (thread + 1);
                let mut random = move |below: u64| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state % below
                };
                let shares: Vec<_> = (0..8).map(|_| ConnectionBytes::new()).collect();
                for _ in 0..20_000 {
                    let share = &shares[random(8) as usize];
                    let before = share.taken();
                    match random(3) {
                        0 => _ = quota.try_hold(share, random(4 * MIB), random(2) * MIB, max),
                        1 => {
                            let may = quota.reserve(share, random(2 * MIB), max);
                            assert!(may >= UNIT_BYTES, "less than its unit");
                            quota.settle(share, random(may + 1), before);
                        }
                        _ => quota.settle(share, random(share.held() + 1), before),
                    }
                    let taken = quota.taken.load(Ordering::SeqCst);
                    assert!(taken <= max, "{taken} of {max}");
                }
                shares.iter().for_each(|share| quota.leave(thread, share));
            });
        }
    });
    assert_eq!(quota.taken(), units);
}
