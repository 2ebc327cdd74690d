use super::*;

#[test]
fn a_policy_is_found_by_its_name_and_an_unknown_one_lists_them() {
    for kind in EvictionKind::ALL {
        assert_eq!(EvictionKind::from_name(kind.name()), Ok(kind));
        assert!(!kind.about().is_empty());
    }
    let error = EvictionKind::from_name("lru").expect_err("there is none");
    assert_eq!(error, "there is no eviction policy 'lru'; there are two-list and s3-window");
}
