use afflux_workloads::simulation::{DeviceOutcome, DeviceSample};

use super::{PARTS, rate};

fn device(count: u64, every_ns: u64, bytes: impl Fn(u64) -> u64) -> DeviceOutcome {
    let sample =
        |at: u64| DeviceSample { at_ns: at * every_ns, moved_bytes: (0, bytes(at)), ..DeviceSample::default() };
    DeviceOutcome { samples: (1..=count).map(sample).collect(), ..DeviceOutcome::default() }
}

#[test]
fn a_rate_does_not_show_single_requests_and_loses_none() {
    // Samples are 10 ms apart, and every tenth finishes a request of 1 MB: 10 MB/s.
    let device = device(12_000, 10_000_000, |at| if at % 10 == 0 { 1_000_000 } else { 0 });
    let curve = rate(&device, |sample| sample.moved_bytes.1);
    assert!(curve.len() as u64 <= PARTS + 1, "{}", curve.len());
    for (at, rate) in &curve {
        assert!((rate - 10e6).abs() < 1e3, "{rate} at {at}");
    }
}

#[test]
fn few_samples_are_shown_each() {
    let device = device(3, 1_000_000_000, |at| at * 1_000_000);
    assert_eq!(rate(&device, |sample| sample.moved_bytes.1), [(0.5, 1e6), (1.5, 2e6), (2.5, 3e6)]);
    assert_eq!(rate(&DeviceOutcome::default(), |sample| sample.moved_bytes.1), []);
}

#[test]
fn the_rest_at_the_end_is_not_lost() {
    let device = device(250, 1_000_000_000, |_| 1_000_000);
    let curve = rate(&device, |sample| sample.moved_bytes.1);
    assert_eq!(curve.last().map(|point| point.1), Some(1e6));
}
