use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use afflux_scratch::Scratch;

use super::*;

/// A user other than the one who runs the tests.
const STRANGER: u32 = 65_534;

fn scratch() -> Scratch {
    Scratch::new(&std::env::temp_dir(), "private").unwrap()
}

fn directory(path: PathBuf, mode: u32) -> PathBuf {
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

fn is_unsafe(path: &Path) -> bool {
    let made = matches!(check(path, Missing::Make), Err(Refused::Unsafe(_)));
    assert_eq!(made, matches!(check(path, Missing::Leave), Err(Refused::Unsafe(_))), "{}", path.display());
    made
}

#[test]
fn a_missing_directory_is_made_for_this_user_alone_unless_it_is_left() {
    let scratch = scratch();
    let path = scratch.path().join("a/b/../b/c");
    assert_eq!(check(&path, Missing::Leave), Ok(()));
    assert!(!scratch.path().join("a").exists(), "nothing was made");
    assert_eq!(check(&path, Missing::Make), Ok(()));
    for made in ["a", "a/b", "a/b/c"] {
        assert_eq!(fs::metadata(scratch.path().join(made)).unwrap().mode() & 0o777, 0o700, "{made}");
    }
    fs::write(scratch.path().join("file"), "").unwrap();
    assert!(matches!(check(&scratch.path().join("file/x"), Missing::Make), Err(Refused::Closed(_))));
    symlink("loop", scratch.path().join("loop")).unwrap();
    assert!(matches!(check(&scratch.path().join("loop"), Missing::Make), Err(Refused::Closed(_))));
}

#[test]
fn a_part_of_the_path_that_others_can_change_is_refused() {
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    directory(at("group"), 0o775);
    assert!(is_unsafe(&at("group")), "others make files there");
    assert!(!is_unsafe(&at("group/own")));
    directory(at("all"), 0o777);
    assert!(is_unsafe(&at("all")) && is_unsafe(&at("all/own")));
    directory(at("sticky"), 0o1777);
    assert!(is_unsafe(&at("sticky")) && !is_unsafe(&at("sticky/own")));
    symlink("sticky/own", at("link")).unwrap();
    assert!(!is_unsafe(&at("link")), "a link of our own");
    if !geteuid().is_root() {
        afflux_scratch::skipped!("only root gives files to another user");
        return;
    }
    directory(at("theirs"), 0o700);
    directory(at("theirs/ours"), 0o700);
    chown(at("theirs"), Some(STRANGER), None).unwrap();
    assert!(is_unsafe(&at("theirs")) && is_unsafe(&at("theirs/ours")) && is_unsafe(&at("theirs/new")));
    assert!(!at("theirs/new").exists(), "nothing was made there");
    symlink("group", at("sticky/theirs")).unwrap();
    std::os::unix::fs::lchown(at("sticky/theirs"), Some(STRANGER), None).unwrap();
    assert!(is_unsafe(&at("sticky/theirs/own")), "a link of theirs");
}

#[test]
fn a_link_in_the_place_of_a_file_is_neither_written_nor_read() {
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    fs::write(at("victim"), "mine").unwrap();
    symlink(at("victim"), beside(&at("file"), "new")).unwrap();
    symlink(at("victim"), at("file")).unwrap();
    assert!(read(&at("file")).is_err());
    replace(&at("file"), "new").unwrap();
    assert_eq!(
        (read(&at("file")).unwrap().as_str(), fs::read_to_string(at("victim")).unwrap().as_str()),
        ("new\n", "mine")
    );
    assert!(!beside(&at("file"), "new").exists());
}
