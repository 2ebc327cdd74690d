use std::collections::BTreeMap;

use super::*;
use crate::random::Random;

fn call() -> Due {
    Due::Call(Box::new(|| {}))
}

#[test]
fn entries_come_in_order_and_cancelled_ones_never() {
    // Compares with a sorted map, while slots are reused and the heap is cleared of cancelled entries.
    let mut random = Random::new(4);
    let (mut timers, mut model) = (Timers::default(), BTreeMap::new());
    let mut over = Vec::new();
    let mut now = 0;
    for _ in 0..20_000 {
        match random.below(10) {
            0..5 => {
                let (at, tie) = (now + random.below(1000), random.bits());
                model.insert((at, tie), timers.add(at, tie, call()));
            }
            5..7 => {
                let chosen = random.below(model.len() as u64 + 1) as usize;
                if let Some(entry) = model.keys().nth(chosen).copied() {
                    let key = model.remove(&entry).unwrap();
                    assert!(timers.remove(key).is_some());
                    over.push(key);
                }
            }
            7 => {
                if let Some(key) = model.values().next() {
                    assert!(matches!(timers.replace(*key, call()), Ok(Some(_))));
                }
            }
            8 => {
                if let Some(key) = over.last() {
                    assert!(timers.remove(*key).is_none() && timers.replace(*key, call()).is_err());
                }
            }
            _ => {
                now += random.below(300);
                assert_eq!(timers.first_ns(), model.keys().next().map(|entry| entry.0));
                while let Some(due) = timers.pop_due(now) {
                    drop(due);
                    let ((at, _), key) = model.pop_first().unwrap();
                    assert!(at <= now);
                    over.push(key);
                }
                assert!(model.keys().next().is_none_or(|entry| entry.0 > now));
            }
        }
        assert!(timers.heap.len() <= 2 * model.len() + CANCELLED_MAX + 1, "cancelled entries pile up");
    }
}

#[test]
fn equal_instants_come_in_the_order_of_their_draws() {
    let mut timers = Timers::default();
    for tie in [5, 1, 3] {
        timers.add(10, tie, Due::Task(crate::world::task::TaskRef::of(tie)));
    }
    let mut order = Vec::new();
    while let Some(Due::Task(task)) = timers.pop_due(10) {
        order.push(task.number);
    }
    assert_eq!(order, [1, 3, 5]);
}
