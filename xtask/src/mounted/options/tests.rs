use super::*;

#[test]
fn words_have_their_meaning() {
    let plain = MountedOptions::parse(&[]).unwrap();
    assert!(plain.way == Way::Bridge && plain.place == Place::Directory && plain.names.is_empty() && !plain.keep);
    let words = ["fsx", "--kill-every", "15", "--store", "radosgw", "--operations", "7", "tar"];
    let stored = MountedOptions::parse(&words).unwrap();
    assert_eq!((stored.place, stored.operations), (Place::Radosgw(Some(Duration::from_secs(15))), 7));
    assert_eq!(stored.names, ["fsx", "tar"]);
    let mounted = MountedOptions::parse(&["--store", "file", "--fuse"]).unwrap();
    assert!(mounted.place == Place::FileStore && mounted.way == Way::Fuse);
}

#[test]
fn words_that_a_run_would_not_obey_are_refused() {
    for words in [
        &["--kill-every", "15"][..],
        &["--kill-every", "15", "--store", "file"],
        &["--kill-every", "0", "--store", "radosgw"],
        &["--store"],
        &["--store", "s3"],
        &["--operations", "many"],
        &["--fast"],
    ] {
        assert!(MountedOptions::parse(words).is_err(), "{words:?}");
    }
}
