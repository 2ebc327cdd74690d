use super::super::*;

/// A device's law, given the time of a run and the latency in microseconds, and bytes a second.
fn window_sizes(run_us: u64, latency_us: u64, bytes_per_s: u64) -> WindowSizes {
    let mib_ns = (1 << 20) * 1_000_000_000 / bytes_per_s;
    WindowSizes::of(&ReadPrices { run_ns: run_us * 1000, latency_ns: latency_us * 1000, mib_ns }, 0)
}

#[test]
fn windows_by_device() {
    for (run_us, latency_us, bytes_per_s, most, first) in [
        (8000, 0, 120_000_000, 1856, 58),
        (1000, 0, 25_000_000, 288, 4),
        (8000, 0, 25_000_000, 384, 12),
        (0, 80, 500_000_000, 32, 4),
        (0, 80, 3_200_000_000, 256, 15),
        (0, 80_000, 1_250_000_000, 32_768, 64),
    ] {
        let window_sizes = window_sizes(run_us, latency_us, bytes_per_s);
        assert_eq!((window_sizes.most, window_sizes.first), (most, first), "{run_us}, {latency_us}, {bytes_per_s}");
    }
}

#[test]
fn gaps_that_a_disk_reads_through() {
    assert_eq!(window_sizes(8000, 0, 120_000_000).gap, 234);
    assert_eq!(window_sizes(0, 80, 3_200_000_000).gap, 0);
}

#[test]
fn no_price_is_out_of_bounds() {
    let window_sizes = WindowSizes::of(&ReadPrices { run_ns: u64::MAX / 2, latency_ns: u64::MAX / 4, mib_ns: 0 }, 0);
    assert_eq!((window_sizes.most, window_sizes.first), (32_768, 64));
}

#[test]
fn a_window_of_a_store_lasts_for_two_calls_up_to_32_mib() {
    let prices = ReadPrices { run_ns: 1000, latency_ns: 1000, mib_ns: 10_000_000 };
    let of = |call_mib| WindowSizes::of(&prices, call_mib);
    assert!(!of(0).early && of(1).early);
    assert_eq!([of(5).most, of(16).most, of(1000).most], [10 * 256, 32 * 256, 32 * 256]);
    let packed = SharedWindowSizes::new(of(5));
    assert_eq!(packed.get(), of(5));
    packed.set(of(0));
    assert_eq!(packed.get(), of(0));
}
