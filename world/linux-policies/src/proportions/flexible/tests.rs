use super::*;

const START: Nanos = Nanos(1);

fn pair(global: &Global, local: &mut Local) -> (u64, u64) {
    let Fraction { numerator, denominator } = global.fraction(local);
    (numerator, denominator)
}

fn periods(global: &mut Global, count: u32) -> u32 {
    (0..count).take_while(|_| global.try_new_period()).count() as u32
}

#[test]
fn two_devices_by_table() {
    let (mut global, mut a, mut b) = (Global::default(), Local::default(), Local::default());
    global.add(&mut a, 3000, WHOLE, START);
    global.add(&mut b, 1000, WHOLE, START);
    assert_eq!((pair(&global, &mut a), pair(&global, &mut b)), ((3000, 4001), (1000, 4001)));
    periods(&mut global, 1);
    assert_eq!((pair(&global, &mut a), pair(&global, &mut b)), ((1500, 2000), (500, 2000)));
    global.add(&mut b, 2000, WHOLE, START);
    assert_eq!((pair(&global, &mut a), pair(&global, &mut b)), ((1500, 4000), (2500, 4000)));
    periods(&mut global, 2);
    assert_eq!((pair(&global, &mut a), pair(&global, &mut b)), ((375, 1000), (625, 1000)));
    assert_eq!(periods(&mut global, 10), 9, "1000 is halved nine times, then the timer stops");
    assert_eq!(global.events, 1);
    assert_eq!(pair(&global, &mut a), (0, 1));
}

#[test]
fn a_swap_of_rates_is_forgotten_by_halves() {
    let (mut global, mut a, mut b) = (Global::default(), Local::default(), Local::default());
    // Enough steps at 3:1 for the counts to settle.
    for _ in 0..40 {
        global.add(&mut a, 3_000_000, WHOLE, START);
        global.add(&mut b, 1_000_000, WHOLE, START);
        periods(&mut global, 1);
    }
    for expected in [4999, 3749, 3124, 2812, 2655] {
        global.add(&mut a, 1_000_000, WHOLE, START);
        global.add(&mut b, 3_000_000, WHOLE, START);
        let (numerator, denominator) = pair(&global, &mut a);
        let share = numerator * 10_000 / denominator;
        assert!(share.abs_diff(expected) <= 1, "{share} for {expected}");
        periods(&mut global, 1);
    }
}

#[test]
fn a_largest_fraction_is_reached_and_not_passed() {
    for (others, largest, pages, added) in [(9000, 10, 100, 89), (1000, 512, 3000, 1001)] {
        let (mut global, mut a, mut b) = (Global::default(), Local::default(), Local::default());
        global.add(&mut b, others, WHOLE, START);
        global.add(&mut a, pages, largest, START);
        assert_eq!(pair(&global, &mut a), (added, others + 1 + added));
        global.add(&mut a, pages, largest, START);
        assert_eq!(pair(&global, &mut a).0, added, "nothing more");
    }
}

#[test]
fn periods_are_three_seconds_of_wall_time_and_missed_ones_count() {
    let (mut global, mut a) = (Global::default(), Local::default());
    global.add(&mut a, 999, WHOLE, Nanos(0));
    global.advance(Nanos(2_999_999_999));
    assert_eq!(pair(&global, &mut a), (999, 1000));
    global.advance(Nanos(3_000_000_000));
    assert_eq!(pair(&global, &mut a), (499, 500));
    global.advance(Nanos(10_000_000_000));
    assert_eq!(pair(&global, &mut a), (124, 125));
    global.advance(Nanos(u64::MAX));
    assert_eq!((pair(&global, &mut a), global.ends), ((1, 1), None));
}
