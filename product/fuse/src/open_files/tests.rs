use super::*;

#[test]
fn a_key_counts_until_its_last_file_is_closed() {
    let mut counts = OpenCounts::default();
    for key in [Some((1, 1000)), Some((1, 1000)), Some((1, 1001)), None] {
        counts.add(key);
    }
    let known = |counts: &OpenCounts<(u64, u32)>| [(1, 1000), (1, 1001), (2, 1000)].map(|key| counts.has(&key));
    assert_eq!(known(&counts), [true, true, false]);
    for key in [Some((1, 1000)), Some((1, 1001)), Some((2, 1000)), None] {
        counts.remove(key);
    }
    assert_eq!(known(&counts), [true, false, false]);
    counts.remove(Some((1, 1000)));
    assert!(counts.0.is_empty());
}
