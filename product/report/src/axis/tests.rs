mod scale;

use super::{Axis, Quantity};

fn ticks(axis: &Axis, low: f64, high: f64) -> (Vec<String>, String) {
    let scale = axis.scale(low, high, 5);
    let (ticks, text) = axis.ticks(&scale, 5);
    (ticks.into_iter().map(|tick| tick.text).collect(), text)
}

fn check(quantity: Quantity, high: f64, wanted: &[&str], label: &str) {
    let (ticks, text) = ticks(&Axis::new("X", quantity), 0.0, high);
    assert_eq!((ticks.iter().map(String::as_str).collect::<Vec<_>>(), text.as_str()), (wanted.to_vec(), label));
}

#[test]
fn the_unit_suits_the_range_and_is_said() {
    check(Quantity::DataRate, 23.7e6, &["0", "5", "10", "15", "20", "25"], "X (MB/s)");
    check(Quantity::Memory, f64::from(100 << 20), &["0", "32", "64", "96", "128"], "X (MiB)");
    check(Quantity::Time, 0.04, &["0", "10", "20", "30", "40"], "X (ms)");
    check(Quantity::Time, 1_500.0, &["0", "5", "10", "15", "20", "25"], "X (min)");
    check(Quantity::Fraction, 1.0, &["0", "20", "40", "60", "80", "100"], "X (%)");
    check(Quantity::Count, 4.0, &["0", "1", "2", "3", "4"], "X");
    check(Quantity::Count, 4_000_000.0, &["0", "1,000", "2,000", "3,000", "4,000"], "X (thousands)");
    check(Quantity::Data, 0.0, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"], "X (B)");
    check(Quantity::Plain("pages"), 0.3, &["0.0", "0.1", "0.2", "0.3"], "X (pages)");
}

#[test]
fn ticks_of_a_logarithmic_axis_carry_units() {
    let (ticks, text) = ticks(&Axis::new("Latency", Quantity::Time).log(), 2e-6, 0.5);
    assert_eq!(ticks, ["1 µs", "100 µs", "10 ms", "1 s"]);
    assert_eq!(text, "Latency");
}

#[test]
fn an_axis_may_begin_near_the_data() {
    let axis = Axis::new("Offset", Quantity::Data);
    assert_eq!(ticks(&axis, 9e9, 10e9).0[0], "0");
    assert_eq!(ticks(&axis.near_data(), 9e9, 10e9).0[0], "9.0");
}

#[test]
fn values_have_their_unit() {
    for (quantity, value, text) in [
        (Quantity::Time, 0.004_13, "4.13 ms"),
        (Quantity::Data, 21.4e6, "21.4 MB"),
        (Quantity::Memory, 1_048_576.0, "1.00 MiB"),
        (Quantity::DataRate, 24.8e6, "24.8 MB/s"),
        (Quantity::Count, 1204.0, "1,204"),
        (Quantity::Count, 128_799.5, "128,800"),
        (Quantity::Time, 0.0, "0 s"),
        (Quantity::Frequency, 1204.0, "1,204/s"),
        (Quantity::Fraction, 0.972, "97.2 %"),
        (Quantity::Plain("pages"), 2.5, "2.50 pages"),
        (Quantity::Plain(""), 0.001, "1.0e-3"),
        (Quantity::Time, f64::NAN, "-"),
    ] {
        assert_eq!(quantity.text(value), text);
    }
}
