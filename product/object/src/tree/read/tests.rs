use super::*;

#[test]
fn neighbours_are_read_together_and_distant_numbers_apart() {
    let all = |numbers: &[u64]| runs(numbers).collect::<Vec<_>>();
    assert_eq!(all(&[]), []);
    assert_eq!(all(&[7]), [(7, 7)]);
    assert_eq!(all(&[7, 8, 8 + GAP, 9 + 2 * GAP]), [(7, 8 + GAP), (9 + 2 * GAP, 9 + 2 * GAP)]);
    let many: Vec<u64> = (0..3 * RUN).collect();
    assert_eq!(all(&many), [(0, RUN - 1), (RUN, 2 * RUN - 1), (2 * RUN, 3 * RUN - 1)]);
    assert_eq!(all(&[0, u64::MAX - 1, u64::MAX]), [(0, 0), (u64::MAX - 1, u64::MAX)]);
}
