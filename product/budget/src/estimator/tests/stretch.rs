use super::super::*;

const PRIOR: DirectionPrices = DirectionPrices { run_ns: 1, mib_ns: 1 };
const LEARNED: DirectionPrices = DirectionPrices { run_ns: 2, mib_ns: 2 };

fn passed(either_ms: u64, rested_ms: u64) -> Elapsed {
    let ns = either_ms * MILLISECOND;
    let rested_ns = rested_ms * MILLISECOND;
    Elapsed { own_ns: ns, both_ns: 0, either_ns: ns, held_up_ns: 0, calls_alone_ns: 0, rested_ns }
}

#[test]
fn a_cache_is_full_after_two_seconds_of_work() {
    let mut stretch = Stretch::new(PRIOR);
    (0..19).for_each(|_| stretch.advance(passed(100, 0), LEARNED));
    assert!(stretch.may_be_cached());
    stretch.advance(passed(100, 0), LEARNED);
    assert!(!stretch.may_be_cached());
}

#[test]
fn who_rests_a_quarter_of_the_time_is_never_found_out() {
    let mut stretch = Stretch::new(PRIOR);
    (0..1000).for_each(|_| stretch.advance(passed(30, 10), LEARNED));
    assert!(stretch.may_be_cached());
}

#[test]
fn what_is_known_is_what_was_learned_past_a_cache() {
    let mut stretch = Stretch::new(PRIOR);
    stretch.advance(passed(100, 0), LEARNED);
    stretch.advance(passed(100, 1000), LEARNED);
    assert_eq!(stretch.before(), PRIOR, "the first stretch was short");
    (0..20).for_each(|_| stretch.advance(passed(100, 0), LEARNED));
    stretch.advance(passed(100, 1000), LEARNED);
    assert_eq!((stretch.before(), stretch.may_be_cached()), (LEARNED, true));
}
