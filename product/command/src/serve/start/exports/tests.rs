use std::fs;
use std::path::PathBuf;

use super::open;

#[test]
fn what_cannot_be_served_is_said_with_the_reason() {
    let top = afflux_scratch::Scratch::new(&std::env::temp_dir(), "exports").unwrap().keep();
    fs::create_dir_all(top.join("a/data")).unwrap();
    fs::create_dir_all(top.join("b/data")).unwrap();
    fs::write(top.join("file"), "").unwrap();
    std::os::unix::fs::symlink(top.join("a"), top.join("link")).unwrap();
    let paths = |names: &[&str]| names.iter().map(|name| top.join(name)).collect::<Vec<PathBuf>>();
    let error = |names: &[&str]| open(&paths(names), false, true).err().unwrap().to_string();
    assert!(error(&["none"]).ends_with("none does not exist"));
    assert!(error(&["file"]).contains("file is not a directory"));
    assert!(error(&["file/x"]).contains("a part of the path is a file"));
    assert!(error(&["a", "link"]).contains("is named twice"));
    assert!(error(&["a", "a/data"]).contains("a/data is inside"));
    assert!(error(&["a/data", "a"]).contains("a/data is inside"));
    assert!(error(&["a/data", "b/data"]).contains("would both be exported as /data"));
    let (_, one) = open(&paths(&["link"]), false, true).unwrap();
    assert_eq!((one[0].path.as_str(), &one[0].given), ("/", &top.join("link")));
    assert!(one[0].directory.ends_with("a"));
    let (_, two) = open(&paths(&["link", "b"]), false, true).unwrap();
    assert_eq!((two[0].path.as_str(), two[1].path.as_str()), ("/a", "/b"));
    fs::remove_dir_all(&top).unwrap();
}
