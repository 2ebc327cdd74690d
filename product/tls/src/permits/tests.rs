use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

fn machine(last: u32) -> Party {
    Party::Machine(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + last)))
}

fn begins(permits: &HandshakePermits, party: Party) -> bool {
    permits.try_begin(permits.enter(), party, Waker::noop()).is_some()
}

/// The number of handshakes that a party may begin.
fn begun(permits: &HandshakePermits, party: Party) -> usize {
    let tries = (0..10_000).map(|_| permits.enter());
    let begun = tries.take_while(|place| {
        let begins = permits.try_begin(*place, party, Waker::noop()).is_some();
        if !begins {
            permits.leave(*place);
        }
        begins
    });
    begun.count()
}

/// Measures handshakes of a party without time of its own, until the cost follows.
fn measure(permits: &HandshakePermits, ns: u64) {
    let permit = HandshakePermit { party: machine(0), charged_ns: u64::MAX };
    (0..100).for_each(|_| permits.took(permit, ns));
}

#[test]
fn a_party_has_its_part_of_a_second_and_takes_nothing_from_others() {
    let permits = HandshakePermits::default();
    assert_eq!(begun(&permits, machine(1)), 50, "1 ms each until one is measured");
    assert_eq!(begun(&permits, machine(1)), 0);
    let others: usize = (2..20).map(|last| begun(&permits, machine(last))).sum();
    assert_eq!(others, 9 * 50, "all together");
    permits.refill();
    assert_eq!(begun(&permits, machine(1)), 50);
    measure(&permits, 100_000);
    permits.refill();
    let cheap = begun(&permits, machine(1));
    assert!((450..=500).contains(&cheap), "{cheap}");
    measure(&permits, u64::MAX / 2);
    permits.refill();
    assert!(begun(&permits, machine(1)) >= 3, "however long one was delayed");
}

#[test]
fn the_bound_of_all_holds_for_any_number_of_parties() {
    let permits = HandshakePermits::default();
    for second in 0..5 {
        let begun = (0..4000).filter(|last| begins(&permits, machine(second * 4000 + last))).count();
        let given = permits.lock().given.len();
        assert_eq!(begun + given, if second == 0 { 500 } else { given }, "those that waited had turns");
        assert!(given <= 500 * second as usize);
        permits.refill();
        assert_eq!(permits.lock().given.len(), 500 * (second as usize + 1));
    }
}

#[test]
fn the_parties_are_bounded_and_new_ones_find_a_place_after_a_refill() {
    let permits = HandshakePermits::default();
    measure(&permits, 40_000);
    let begin_all = |from: u32| (from..from + 10_000).filter(|last| begins(&permits, machine(*last))).count();
    assert_eq!(begin_all(0), PARTIES_MAX);
    for from in (10_000..50_000).step_by(10_000) {
        permits.refill();
        assert!(permits.lock().of_parties.len() <= PARTIES_MAX);
        permits.lock().waiting.clear();
        permits.refill();
        assert!(begin_all(from) > 1000);
    }
}

#[test]
fn time_beyond_a_turn_is_missing_afterwards() {
    let permits = HandshakePermits::default();
    let permit = permits.try_begin(permits.enter(), machine(1), Waker::noop()).unwrap();
    // A cost that does not follow: the estimate stays low, and the bounds hold.
    (0..1000).for_each(|_| permits.took(permit, 10_000_000));
    permits.lock().cost_ns = FIRST_COST_NS;
    assert!(!begins(&permits, machine(1)) && !begins(&permits, machine(2)));
    permits.refill();
    assert!(!begins(&permits, machine(2)), "a second's worth is still missing");
    permits.refill();
    assert!(begins(&permits, machine(2)) && begins(&permits, machine(1)), "and nobody waits for longer");
}

#[test]
fn those_that_wait_take_turns_and_a_newcomer_overtakes_nobody() {
    let permits = HandshakePermits::default();
    // Ten parties take all, and each has more that wait.
    (0..10).for_each(|last| assert_eq!(begun(&permits, machine(last)), 50));
    let crowd: Vec<_> = (0..1000).map(|number| (permits.enter(), machine(number % 10))).collect();
    let (lone, late) = ((permits.enter(), machine(77)), (permits.enter(), machine(78)));
    let try_begin = |(place, party)| permits.try_begin(place, party, Waker::noop()).is_some();
    assert!(!crowd.iter().copied().chain([lone, late]).any(try_begin));
    permits.refill();
    assert!(!begins(&permits, machine(79)), "the time is given to those that waited");
    assert!(try_begin(lone) && try_begin(late), "who had none lately is first");
    assert_eq!(crowd.into_iter().filter(|it| try_begin(*it)).count(), 498);
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn those_that_wait_are_woken_once_by_the_refill_unless_they_have_left() {
    let (permits, woken) = (HandshakePermits::default(), Arc::new(Woken::default()));
    let waker = Waker::from(Arc::clone(&woken));
    begun(&permits, machine(1));
    let (waits, leaves) = (permits.enter(), permits.enter());
    for place in [waits, waits, leaves] {
        assert!(permits.try_begin(place, machine(1), &waker).is_none());
    }
    permits.leave(leaves);
    permits.refill();
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    permits.leave(waits);
    permits.refill();
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    let state = permits.lock();
    assert!(state.waiting.is_empty() && state.given.is_empty(), "who leaves takes its turn along");
}
