use super::*;

const MADE: Timestamp = Timestamp { seconds: 9, nanos: 5 };

fn places(list: &[(&str, &str)]) -> Vec<(Vec<u8>, String)> {
    list.iter().map(|(path, export)| (path.as_bytes().to_vec(), (*export).to_owned())).collect()
}

fn walk(tree: &PseudoRoot, path: &str) -> Option<Target> {
    let mut at = Target::Directory(0);
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let Target::Directory(node) = at else { return None };
        at = tree.find(node, name.as_bytes())?.clone();
    }
    Some(at)
}

#[test]
fn exports_have_one_root_and_are_found_by_their_paths_on_the_host() {
    let exports = ["/a".to_owned(), "/b".to_owned()];
    let tree =
        PseudoRoot::new(&exports, &places(&[("/srv/a", "/a"), ("/srv/deep/b", "/b"), ("/a/hidden", "/b")]), MADE);
    assert_eq!(tree.single(), None);
    assert_eq!(walk(&tree, "/a"), Some(Target::Export("/a".to_owned())));
    assert_eq!(walk(&tree, "/srv/a"), Some(Target::Export("/a".to_owned())));
    assert_eq!(walk(&tree, "/srv/deep/b"), Some(Target::Export("/b".to_owned())));
    assert_eq!(walk(&tree, "/a/hidden"), None, "an export's name wins over a path of the host");
    let listed: Vec<&[u8]> = tree.listed(0).map(|(_, name, _)| name).collect();
    assert_eq!(listed, [b"a", b"b"], "paths of the host are found and not listed");
    let Some(Target::Directory(srv)) = walk(&tree, "/srv") else { panic!("no directory") };
    assert_eq!((tree.parent(srv), tree.parent(0)), (Some(0), None));
}

#[test]
fn a_single_export_is_the_root_itself() {
    let tree = PseudoRoot::new(&["/".to_owned()], &places(&[("/srv/d", "/")]), MADE);
    assert_eq!(tree.single(), Some("/"));
    assert_eq!(walk(&tree, "/srv/d"), Some(Target::Export("/".to_owned())));
    assert_eq!(tree.listed(0).count(), 0);
}

#[test]
fn no_directory_has_the_number_0_and_forged_handles_lead_nowhere() {
    let tree = PseudoRoot::new(&["/a".to_owned(), "/b".to_owned()], &places(&[("/srv/a", "/a")]), MADE);
    for node in 0..2 {
        assert_ne!(tree.attributes(node).fileid, 0);
        assert_eq!(tree.resolve(&PseudoRoot::handle(node)), Some(node));
    }
    assert!(tree.listed(0).all(|(number, ..)| number != 0));
    assert_eq!(tree.resolve(&PseudoRoot::handle(2)), None);
    assert_eq!(tree.resolve(b"\0afx"), None);
    assert_eq!(tree.resolve(&[1; 40]), None);
}
