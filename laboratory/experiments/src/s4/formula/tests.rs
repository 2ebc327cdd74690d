use super::*;

#[test]
fn the_seeds_figures_follow_with_nothing_chosen() {
    // 100 MB over 100 Mbit/s, of which 11.8 MB/s are data, to 25 MB/s; by hand. Published: 8.40, 8.74, 9.53 and 10.46.
    let by_hand = [(100.0, 8.016), (75.0, 8.715), (50.0, 9.547), (25.0, 10.555), (12.5, 11.143)];
    for (threshold, expected) in by_hand {
        assert!((rate(100.0, 11.8, 25.0, threshold) - expected).abs() < 0.001, "{threshold}");
    }
    // A gigabit link: 25 MB of 100 come before the disk begins, then it falls behind by 93 of each 118 MB.
    assert!((rate(100.0, 118.0, 25.0, 25.0) - 23.742).abs() < 0.001);
    assert!((rate(10.0, 47.2, 25.0, 100.0) - 16.343).abs() < 0.001, "the window is less than the threshold");
}
