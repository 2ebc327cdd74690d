use std::path::Path;

use super::ExportPaths;

#[test]
fn a_path_of_the_host_is_a_path_below_an_exports_name() {
    let places = ExportPaths::new([("/srv/d".into(), "/".into()), ("s3://bucket".into(), "/".into())]);
    let named = |path: &str| places.named(Path::new(path)).map(|path| path.to_str().unwrap().to_owned());
    for path in ["/srv/d", "/srv/d/", "//srv//d", "/srv/./d"] {
        assert_eq!(named(path).as_deref().map(|path| path.trim_end_matches('/')), Some(""), "{path}");
    }
    assert_eq!(named("/srv/d/a/b").as_deref(), Some("/a/b"));
    for path in ["/srv", "/srv/dd", "/", "", "srv/d", "/srv/d/../e", "/srv/d/..", "s3://bucket"] {
        assert_eq!(named(path), None, "{path}");
    }
    let several = ExportPaths::new([("/srv/a".into(), "/a".into()), ("/mnt/b".into(), "/b".into())]);
    assert_eq!(several.named(Path::new("/mnt/b/c")).unwrap(), Path::new("/b/c"));
}
