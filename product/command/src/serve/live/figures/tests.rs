use afflux_engine::WaitHistogram;
use afflux_metrics::Value;

use super::in_seconds;

#[test]
fn bounds_of_a_histogram_are_where_the_engine_counts() {
    let mut of = WaitHistogram { ns: 3_000_000_000, ..WaitHistogram::default() };
    (of.by_power[0], of.by_power[11], of.by_power[12], of.by_power[35], of.by_power[36], of.by_power[63]) =
        (1, 2, 4, 8, 16, 32);
    let Value::Histogram { buckets, sum } = in_seconds(&of) else { panic!() };
    assert_eq!((buckets.len(), sum), (26, 3.0));
    assert_eq!((buckets[0], buckets[1]), ((4.096e-6, 3), (8.192e-6, 4)));
    assert_eq!((buckets[24], buckets[25]), ((68.719_476_736, 8), (f64::INFINITY, 48)));
    assert!(buckets.is_sorted_by(|one, next| one.0 < next.0));
}
