use super::*;

#[test]
fn points_are_thinned_evenly() {
    let mut statistics = Statistics::new();
    (0..100_000).for_each(|at| statistics.data(at, true, 1, Some(at)));
    let offsets = statistics.offsets();
    assert!(offsets.len() <= OFFSETS_MAX && offsets.len() > OFFSETS_MAX / 2);
    assert!(offsets.windows(2).all(|pair| pair[1].offset - pair[0].offset == statistics.every));
    assert_eq!(statistics.figures(0).requests, (0, 100_000));
}
