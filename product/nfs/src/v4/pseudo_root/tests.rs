use super::*;

#[test]
fn its_names_are_those_of_the_exports_and_none_has_a_number_of_another() {
    let tree = PseudoRoot::new(["/a", "/b"].map(str::to_owned).to_vec(), Timestamp { seconds: 9, nanos: 5 });
    assert_eq!(tree.find(b"a"), Some("/a"));
    for none in [&b"c"[..], b"", b"/a", b"/", b"a/b"] {
        assert_eq!(tree.find(none), None, "{none:?}");
    }
    let numbers = [tree.attributes().fileid, mounted_on(0), mounted_on(1)];
    assert!(!numbers.contains(&0) && numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
}
