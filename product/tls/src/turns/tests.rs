use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

fn machine(last: u32) -> Party {
    Party::Machine(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + last)))
}

/// The number of handshakes that a party may begin.
fn begun(turns: &HandshakeTurns, party: Party) -> usize {
    (0..10_000).take_while(|_| turns.may_begin(turns.enter(), party, Waker::noop())).count()
}

#[test]
fn a_party_has_its_part_of_a_second_and_takes_nothing_from_others() {
    let turns = HandshakeTurns::default();
    assert_eq!(begun(&turns, machine(1)), 50, "1 ms each until one is measured");
    assert_eq!(begun(&turns, machine(1)), 0);
    let others: usize = (2..20).map(|last| begun(&turns, machine(last))).sum();
    assert_eq!(others, 9 * 50 + 9, "all together, and the first of each of the rest");
    assert_eq!(begun(&turns, machine(20)), 1);
    turns.refill();
    assert_eq!(begun(&turns, machine(1)), 50);
    (0..100).for_each(|_| turns.took(100_000));
    turns.refill();
    let cheap = begun(&turns, machine(1));
    assert!((450..=500).contains(&cheap), "{cheap}");
    (0..100).for_each(|_| turns.took(u64::MAX / 2));
    turns.refill();
    assert!(begun(&turns, machine(1)) >= 4, "however long one was delayed");
}

#[test]
fn the_parties_are_bounded() {
    let turns = HandshakeTurns::default();
    let begun = (0..PARTIES_MAX as u32 + 10).filter(|last| turns.may_begin(0, machine(*last), Waker::noop()));
    assert_eq!(begun.count(), PARTIES_MAX);
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
    let (turns, woken) = (HandshakeTurns::default(), Arc::new(Woken::default()));
    let waker = Waker::from(Arc::clone(&woken));
    begun(&turns, machine(1));
    let (waits, leaves) = (turns.enter(), turns.enter());
    for place in [waits, waits, leaves] {
        assert!(!turns.may_begin(place, machine(1), &waker));
    }
    turns.leave(leaves);
    turns.refill();
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    turns.refill();
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
}
