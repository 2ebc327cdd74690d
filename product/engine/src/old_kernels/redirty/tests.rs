use super::*;

#[test]
fn a_file_that_is_put_back_counts_as_young_only_behind_a_younger_one() {
    let now = Nanos(100);
    for (own, youngest, since) in [(10, None, 10), (10, Some(5), 10), (10, Some(10), 10), (10, Some(11), 100)] {
        assert_eq!(redirtied_at(Nanos(own), youngest.map(Nanos), now), Nanos(since), "{own} behind {youngest:?}");
    }
}
