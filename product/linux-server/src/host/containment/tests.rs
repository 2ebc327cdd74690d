use super::*;

#[test]
fn what_is_below_a_root_is_told_by_whole_names() {
    for (path, root, below) in [
        ("/srv/a", "/srv/a", true),
        ("/srv/a/b", "/srv/a", true),
        ("/srv/ab", "/srv/a", false),
        ("/srv", "/srv/a", false),
        ("/srv/b/a", "/srv/a", false),
        ("/anything", "/", true),
        ("/", "/", true),
    ] {
        assert_eq!(is_below(path.as_bytes(), root.as_bytes()), below, "{path} below {root}");
    }
    assert_eq!(last_name(b"/a/b (deleted)"), b"b (deleted)");
}
