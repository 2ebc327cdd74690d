#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use super::*;

fn below() -> Scratch {
    Scratch::new(&std::env::temp_dir(), "test").unwrap()
}

#[test]
fn it_is_new_private_and_inside_the_named_directory() {
    let top = below();
    let (one, other) = (Scratch::new(top.path(), "it").unwrap(), Scratch::guarded(top.path(), "it").unwrap());
    assert_ne!(one.path(), other.path());
    for scratch in [&one, &other] {
        assert_eq!(scratch.path().parent().unwrap(), top.path());
        let found = fs::symlink_metadata(scratch.path()).unwrap();
        assert_eq!((found.permissions().mode() & 0o7777, found.uid()), (0o700, geteuid().as_raw()));
    }
    drop((one, other));
    assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
    let error = Scratch::new(&top.path().join("absent"), "it").unwrap_err().to_string();
    assert!(error.contains("/absent/afflux-it-"), "{error}");
}

#[test]
fn a_name_that_exists_is_never_used() {
    let top = below();
    let (taken, target) = (top.path().join("taken"), top.path().join("target"));
    fs::create_dir(&target).unwrap();
    symlink(&target, &taken).unwrap();
    assert_eq!(make(&taken).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(make(&target).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn nothing_outside_goes_with_it() {
    let top = below();
    let outside = top.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
    let scratch = Scratch::new(top.path(), "it").unwrap();
    fs::create_dir_all(scratch.path().join("a/b/c")).unwrap();
    fs::write(scratch.path().join("a/b/file"), "").unwrap();
    symlink(&outside, scratch.path().join("a/link")).unwrap();
    let path = scratch.path().to_owned();
    drop(scratch);
    assert!(!path.exists());
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
    let kept = Scratch::guarded(top.path(), "it").unwrap().keep();
    assert!(kept.exists());
}

/// A bind mount has the same device number as the directory around it.
#[test]
fn what_is_mounted_in_it_stays() {
    let top = below();
    let outside = top.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
    let scratch = Scratch::new(top.path(), "it").unwrap();
    let (path, point) = (scratch.path().to_owned(), scratch.path().join("mounted"));
    fs::create_dir(&point).unwrap();
    let mount = Command::new("mount").arg("--bind").args([&outside, &point]).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        crate::skipped!("a bind mount needs root");
        return;
    }
    drop(scratch);
    let kept = fs::read_to_string(point.join("file")).ok();
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    assert_eq!(kept.as_deref(), Some("kept"));
    remove(&path).unwrap();
}
