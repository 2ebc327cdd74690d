use super::*;

fn side(dirty: &[(f64, u64)]) -> Side {
    let looks = dirty.iter().map(|&(at_s, dirty_bytes)| Look { at_s, dirty_bytes, accepted_bytes: 0 });
    Side { jobs: Vec::new(), looks: looks.collect(), limit_bytes: 1000, disk_bytes: 0, delays: serde_json::json!({}) }
}

#[test]
fn dirty_bytes_are_compared_at_the_same_instants_whatever_the_looks() {
    let often = side(&[(0.0, 0), (0.5, 0), (1.0, 500), (1.5, 500), (2.0, 500)]);
    let seldom = side(&[(0.0, 0), (1.0, 500), (2.0, 500)]);
    assert_eq!(dirty_deviation(&often, &seldom), (0.0, 0.0));
    let later = side(&[(0.0, 0), (1.5, 500), (2.0, 500)]);
    let (mean, most) = dirty_deviation(&often, &later);
    // Half of the limit apart at 5 of 21 instants.
    assert!((mean - 0.5 * 5.0 / 21.0).abs() < 1e-9 && most == 0.5, "{mean} {most}");
}

#[test]
fn a_run_that_goes_on_longer_is_apart_for_that_long() {
    let long = side(&[(0.0, 1000), (2.0, 0)]);
    let short = side(&[(0.0, 1000), (1.0, 0)]);
    let (mean, most) = dirty_deviation(&long, &short);
    assert!(mean > 0.4 && mean < 0.6 && most == 1.0, "{mean} {most}");
}

#[test]
fn a_deviation_is_that_from_the_measured_figure() {
    assert!((deviation(110.0, 100.0) - 0.1).abs() < 1e-12);
    assert_eq!(deviation(1.0, 0.0), 0.0);
}
