use super::super::{Scale, Steps, TICKS_MAX};

fn ticks(scale: &Scale, steps: Steps, wanted: usize) -> Vec<f64> {
    scale.ticks(steps, wanted).0
}

#[test]
fn linear_ticks_are_round_numbers() {
    assert_eq!(ticks(&Scale::linear(0.0, 60.0), Steps::Decimal, 6), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    assert_eq!(ticks(&Scale::linear(0.0, 25.0), Steps::Decimal, 5), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
    assert_eq!(ticks(&Scale::linear(0.0, 100.0), Steps::Binary, 5), [0.0, 32.0, 64.0, 96.0]);
    assert_eq!(ticks(&Scale::linear(-1.0, 1.0), Steps::Decimal, 4), [-1.0, -0.5, 0.0, 0.5, 1.0]);
}

#[test]
fn the_high_end_is_a_tick_after_rounding_up() {
    let scale = Scale::linear(0.0, 23.7).rounded_up(Steps::Decimal, 5);
    assert_eq!(scale.position(25.0), Some(1.0));
    assert_eq!(ticks(&scale, Steps::Decimal, 5).last(), Some(&25.0));
    // A value that is a tick already stays one.
    let scale = Scale::linear(0.0, 0.3).rounded_up(Steps::Decimal, 3);
    assert!((scale.position(0.3).unwrap() - 1.0).abs() < 1e-6);
}

#[test]
fn places_go_from_end_to_end_and_no_farther() {
    let scale = Scale::linear(10.0, 20.0);
    let places = [5.0, 10.0, 15.0, 20.0, 25.0].map(|value| scale.position(value).unwrap());
    assert_eq!(places, [0.0, 0.0, 0.5, 1.0, 1.0]);
    assert_eq!(scale.position(f64::NAN), None);
    assert_eq!(scale.position(f64::INFINITY), None);
}

#[test]
fn logarithmic_axes_have_decades() {
    let scale = Scale::log(1.5e-6, 0.8);
    assert_eq!(ticks(&scale, Steps::Decimal, 7).len(), 7);
    assert_eq!(scale.position(1e-6), Some(0.0));
    assert!((scale.position(1e-3).unwrap() - 0.5).abs() < 1e-9);
    // A value without a logarithm is at the low end.
    assert_eq!(scale.position(0.0), Some(0.0));
    assert_eq!(ticks(&Scale::log(1.0, 10.0), Steps::Decimal, 5), [1.0, 2.0, 5.0, 10.0]);
    assert_eq!(ticks(&Scale::log(1.0, 1e12), Steps::Decimal, 4).len(), 5);
}

#[test]
fn odd_ranges_have_few_ticks_and_no_nonsense() {
    for (low, high) in [(0.0, 0.0), (5.0, 5.0), (0.0, 1e300), (0.0, 1e-300), (1e15, 1e15 + 1.0)] {
        for steps in [Steps::Decimal, Steps::Binary] {
            let ticks = ticks(&Scale::linear(low, high).rounded_up(steps, 5), steps, 5);
            assert!(ticks.len() <= TICKS_MAX, "{low} {high}: {ticks:?}");
            assert!(ticks.iter().all(|tick| tick.is_finite()), "{low} {high}: {ticks:?}");
        }
    }
    assert!(Scale::log(0.0, 0.0).position(1.0).is_some());
    assert!(Scale::log(f64::NAN, 5.0).position(1.0).is_some());
}
