use super::*;

#[test]
fn a_period_is_two_to_four_limits() {
    for (limit, shift) in [(1, 2), (2, 2), (1024, 11), (1025, 12), (157_286, 19)] {
        assert_eq!(shift_for(limit), shift, "{limit}");
    }
}

#[test]
fn fractions_by_hand() {
    let (mut global, mut a, mut b) = (Global::default(), Local::default(), Local::default());
    let shift = 10;
    global.add(&mut a, 384, WHOLE, shift);
    global.add(&mut b, 128, WHOLE, shift);
    // Half a period has passed: the count modulo 512 restarts, and a's events are halved.
    let fraction = global.fraction(&mut a, shift);
    assert_eq!((fraction.numerator, fraction.denominator), (192, 512));
    global.add(&mut b, 512, WHOLE, shift);
    let of = |local: &mut Local| (global.fraction(local, shift).numerator, global.fraction(local, shift).denominator);
    assert_eq!(of(&mut a), (96, 512));
    assert_eq!(of(&mut b), ((64 + 512) / 2, 512));
}

#[test]
fn one_that_does_everything_has_all_of_it_in_the_long_run() {
    let (mut global, mut a) = (Global::default(), Local::default());
    for _ in 0..10_000 {
        global.add(&mut a, 7, WHOLE, 10);
    }
    let fraction = global.fraction(&mut a, 10);
    let share = fraction.numerator * 100 / fraction.denominator;
    assert!((95..=102).contains(&share), "{fraction:?}");
}

#[test]
fn a_largest_fraction_stops_the_count() {
    let (mut global, mut a, mut b) = (Global::default(), Local::default(), Local::default());
    for _ in 0..2000 {
        global.add(&mut a, 1, 102, 10);
        global.add(&mut b, 1, WHOLE, 10);
    }
    let fraction = global.fraction(&mut a, 10);
    // A tenth, and not less.
    assert!((9..=10).contains(&(fraction.numerator * 100 / fraction.denominator)), "{fraction:?}");
}
