use super::*;

/// Hits in percent, in the order of the policies: fifo, lru, arc, two-list, s3-fifo, sieve, s3-window, belady.
fn cell(percent: [u64; 8]) -> Cell {
    let counts = percent.map(|hits| Counts { hits, touches: 100 }).to_vec();
    Cell { generator: "zipf-0.8", part: Part(1, 16), counts, looks: vec![None; 8] }
}

#[test]
fn misses_saved_are_of_the_larger_number_of_misses() {
    let cell = cell([40, 50, 70, 20, 40, 100, 55, 100]);
    let saved = ["lru", "arc", "two-list", "s3-fifo", "sieve"].map(|policy| cell.miss_reduction(policy));
    // 60 misses become 50, 30, 80, 60, none.
    for (found, expected) in saved.into_iter().zip([1.0 / 6.0, 0.5, -0.25, 0.0, 1.0]) {
        assert!((found - expected).abs() < 1e-9, "{saved:?}");
    }
    assert_eq!(self::cell([100; 8]).miss_reduction("lru"), 0.0, "nobody misses");
}

#[test]
fn a_gap_is_closed_from_lru_to_belady() {
    let cell = cell([10, 20, 30, 20, 50, 60, 15, 60]);
    let closed = ["lru", "arc", "s3-fifo", "belady", "s3-window"].map(|policy| cell.gap_closed(policy).unwrap());
    for (found, expected) in closed.into_iter().zip([0.0, 0.25, 0.75, 1.0, -0.125]) {
        assert!((found - expected).abs() < 1e-9, "{closed:?}");
    }
    assert_eq!(self::cell([50; 8]).gap_closed("arc"), None, "there is none");
}

#[test]
fn the_default_is_behind_from_more_than_a_point_on() {
    let behind = |own| cell([0, 0, 90, 40, 50, 45, own, 99]).shortfall();
    assert_eq!((behind(60), behind(50)), (None, None));
    let mut near = Cell { counts: vec![Counts { hits: 500, touches: 1000 }; 8], ..cell([0; 8]) };
    near.counts[6].hits = 495;
    assert_eq!(near.shortfall(), None, "half a point");
    assert!((behind(46).unwrap() - 0.04).abs() < 1e-9, "by four points to s3-fifo; arc does not count");
}

#[test]
fn misses_are_compared_with_the_best_that_knows_no_future() {
    assert!((cell([40, 50, 70, 20, 40, 60, 55, 99]).to_best() - 1.5).abs() < 1e-9, "45 misses, of arc's 30");
    assert_eq!(cell([100; 8]).to_best(), 0.0, "nobody misses");
}
