use super::super::*;

const PART: u64 = ONE / 2;
const MIB: u64 = 1 << 20;
const BYTES: DirectionPrices = DirectionPrices { run_ns: 1000, mib_ns: 80 * MILLISECOND };

/// Adds windows with one run each, of `mib` MiB, on a device whose runs cost `run_ms`.
fn windows(held: &mut HeldRunCost, count: u32, run_ms: u64, mib: u64) {
    for _ in 0..count {
        let work = DirectionWork { runs: 1, bytes: mib * MIB };
        held.add(work, (run_ms + 80 * mib) * MILLISECOND, &BYTES, PART);
    }
}

#[test]
fn nothing_is_held_before_some_seconds_of_work() {
    let mut held = HeldRunCost::default();
    windows(&mut held, 4, 400, 1);
    assert_eq!(held.run_ns(), 0);
    windows(&mut held, 20, 400, 1);
    assert!((380..=400).contains(&(held.run_ns() / MILLISECOND)), "{}", held.run_ns());
}

#[test]
fn long_runs_that_cost_nothing_let_it_fade_in_half_a_minute() {
    let mut held = HeldRunCost::default();
    windows(&mut held, 50, 400, 1);
    let before = held.run_ns();
    // Ten seconds, and a minute.
    windows(&mut held, 16, 0, 8);
    assert!((before / 2..before).contains(&held.run_ns()), "{before} became {}", held.run_ns());
    windows(&mut held, 94, 0, 8);
    assert!(held.run_ns() < before / 8, "{before} became {}", held.run_ns());
}

#[test]
fn what_the_price_of_bytes_may_be_wrong_by_is_no_runs() {
    let mut held = HeldRunCost::default();
    windows(&mut held, 100, 60, 1);
    assert_eq!(held.run_ns(), 0, "60 of 140 ms");
}

#[test]
fn runs_as_short_that_cost_less_take_it_down_in_two_seconds() {
    let mut held = HeldRunCost::default();
    let short = |held: &mut HeldRunCost, ns: u64, runs: u64| {
        held.add(DirectionWork { runs, bytes: runs << 12 }, ns, &BYTES, PART)
    };
    // Pages to a disk beside a flood, 2 in a window of 200 ms; then by itself, 500 in one of 50.
    (0..30).for_each(|_| short(&mut held, 200 * MILLISECOND, 2));
    assert!(held.run_ns() > 98 * MILLISECOND, "{}", held.run_ns());
    (0..40).for_each(|_| short(&mut held, 50 * MILLISECOND, 500));
    assert!(held.run_ns() < MILLISECOND / 5, "{}", held.run_ns());
}
