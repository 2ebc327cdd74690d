use std::cell::Cell;
use std::collections::VecDeque;

use super::{TAKEN_MAX, stream_events};

/// The events that a listener gets of a ring with events at these instants.
fn told_of(events: std::ops::Range<u64>, lasting_ns: u64) -> (Vec<u64>, u64) {
    let mut ring: VecDeque<u64> = events.collect();
    let clock = Cell::new(0);
    // Each reading of the clock advances it by 1 ms.
    let now = || clock.replace(clock.get() + 1_000_000);
    let (mut seen, mut lost_in_all) = (Vec::new(), 0);
    let mut take = |most: usize| (ring.drain(..most.min(ring.len())).collect(), 1);
    let mut tell = |events: Vec<u64>, lost| {
        seen.extend(events);
        lost_in_all += lost;
        Ok(())
    };
    stream_events(&now, Some(lasting_ns), &mut take, &|at| *at, &mut tell).unwrap();
    (seen, lost_in_all)
}

#[test]
fn what_is_left_when_the_time_is_over_is_told_to_its_last_event() {
    let count = 5 * TAKEN_MAX as u64 + 7;
    let (seen, lost) = told_of(0..count, count);
    assert_eq!(seen, (0..count).collect::<Vec<_>>());
    assert_eq!(lost, 6, "the losses of each look are reported");
}

#[test]
fn what_happens_later_is_not_told_and_keeps_nobody() {
    let (seen, lost) = told_of(0..1_000_000, 50);
    assert_eq!(seen, (0..=50).collect::<Vec<_>>());
    assert_eq!(lost, 1, "one look was enough");
}
