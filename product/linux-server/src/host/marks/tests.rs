use std::os::unix::fs::symlink;

use super::*;
use afflux_scratch::TestDirectory as Scratch;

/// Marks directories as a server of this process does. Marks of other calls belong to this process too, and a server
/// would not count them. So the tests read the marks found before that filter.
fn marked(path: &Path) -> (HostMarks, Option<&'static str>) {
    let mut marks = HostMarks::default();
    let root = open(CWD, path).unwrap();
    let found = [(SERVED, "it"), (ABOVE, "below")].into_iter().find(|(place, at)| find(&root, *place, at).is_some());
    let mut above = None;
    let mut at = open(&root, Path::new("..")).unwrap();
    loop {
        above = above.or_else(|| find(&at, SERVED, "above").map(|other| other.relation));
        let next = open(&at, Path::new("..")).unwrap();
        if is_same(&at, &next) {
            break;
        }
        at = next;
    }
    assert!(marks.add(path, &mut Vec::new()).is_none(), "it is this process");
    (marks, found.map(|(_, at)| at).or(above))
}

#[test]
fn a_served_directory_is_noticed_by_any_path() {
    let scratch = Scratch::new();
    let served = scratch.path().join("served");
    fs::create_dir_all(served.join("inner")).unwrap();
    fs::create_dir(scratch.path().join("beside")).unwrap();
    symlink(&served, scratch.path().join("link")).unwrap();
    let (marks, before) = marked(&served);
    assert_eq!(before, None);
    for (path, found) in [
        (served.clone(), Some("it")),
        (scratch.path().join("link"), Some("it")),
        (scratch.path().join("beside/../served"), Some("it")),
        (served.join("inner"), Some("above")),
        (scratch.path().to_owned(), Some("below")),
        (scratch.path().join("beside"), None),
    ] {
        assert_eq!(marked(&path).1, found, "{}", path.display());
    }
    drop(marks);
    assert_eq!(marked(&served).1, None, "a mark goes with its server");
}

#[test]
fn who_holds_a_mark_is_found() {
    let scratch = Scratch::new();
    let mut marks = HostMarks::default();
    assert!(marks.add(scratch.path(), &mut Vec::new()).is_none());
    let again = open(CWD, scratch.path()).unwrap();
    let found = find(&again, SERVED, "it").unwrap();
    assert_eq!(found.processes, [std::process::id()]);
}

#[test]
fn processes_are_named() {
    assert_eq!(listed(&[]), "a process that cannot be seen from here");
    assert_eq!((listed(&[7]), listed(&[7, 8])), ("process 7".to_owned(), "processes 7, 8".to_owned()));
}
