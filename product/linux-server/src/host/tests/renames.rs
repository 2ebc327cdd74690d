//! Renames that do not replace, and exchanges, on the host.

use std::fs;
use std::os::unix::fs::chown;

use afflux_volume::{Caller, Consistency, RenameHow};

use rustix::io::Errno;

use super::super::calls::error_of;
use super::super::entries::rename_refusal;
use super::*;

fn rename(
    world: &World,
    caller: &Caller,
    from: (&Object, &str),
    to: (&Object, &str),
    how: RenameHow,
) -> (Result<(), VolumeError>, Consistency) {
    let (from_name, to_name) = (from.1.as_bytes(), to.1.as_bytes());
    let renamed = world.volume.rename_how_by(caller, from.0, from_name, to.0, to_name, how);
    let (outcome, consistency) = world.run(renamed);
    (outcome.result, consistency)
}

#[test]
fn dirty_files_and_directories_are_exchanged_with_their_bytes_and_handles() {
    let world = World::new();
    let root = world.root();
    let below = world.make_directory(&root, "below");
    let (one, other) = (world.create(&root, "one"), world.create(&below, "other"));
    world.write(&one, 0, b"first").result.unwrap();
    world.write(&other, 0, b"second").result.unwrap();
    let own = &Caller::SERVER;
    rename(&world, own, (&root, "one"), (&below, "other"), RenameHow::Exchange).0.unwrap();
    assert!(Arc::ptr_eq(&world.lookup(&root, "one").unwrap().0, &other));
    assert!(Arc::ptr_eq(&world.resolve(&world.handle(&one)).unwrap(), &one));
    world.sync(&one);
    world.sync(&other);
    assert_eq!(fs::read(world.host("one")).unwrap(), b"second");
    assert_eq!(fs::read(world.host("below/other")).unwrap(), b"first");
    rename(&world, own, (&root, "one"), (&root, "below"), RenameHow::Exchange).0.unwrap();
    assert!(world.host("one").is_dir() && world.host("below").is_file());
    let handles = [&one, &other, &below].map(|object| world.handle(object));
    drop((one, other, below, root));
    let world = world.restarted();
    for (handle, path) in handles.iter().zip(["one/other", "below", "one"]) {
        let fileid = world.resolve(handle).unwrap().fileid();
        assert_eq!(fileid, std::os::unix::fs::MetadataExt::ino(&fs::metadata(world.host(path)).unwrap()), "{path}");
    }
}

#[test]
fn what_cannot_be_renamed_so_is_refused_and_stays() {
    let world = World::new();
    let root = world.root();
    let (above, _) = (world.make_directory(&root, "above"), world.create(&root, "file"));
    world.make_directory(&above, "below");
    let own = &Caller::SERVER;
    let refused = |from, to, how| rename(&world, own, from, to, how).0.unwrap_err();
    assert_eq!(refused((&root, "file"), (&root, "above"), RenameHow::NoReplace), VolumeError::Exists);
    assert_eq!(refused((&root, "file"), (&root, "file"), RenameHow::NoReplace), VolumeError::Exists);
    assert_eq!(refused((&root, "file"), (&root, "none"), RenameHow::Exchange), VolumeError::NotFound);
    assert_eq!(refused((&root, "none"), (&root, "file"), RenameHow::Exchange), VolumeError::NotFound);
    for (from, to) in [((&root, "above"), (&above, "below")), ((&above, "below"), (&root, "above"))] {
        let error = refused(from, to, RenameHow::Exchange);
        assert!(matches!(error, VolumeError::Invalid { .. } | VolumeError::NotEmpty), "{error}");
    }
    assert_eq!(world.names(&root, 10).len(), 4);
    rename(&world, own, (&root, "file"), (&above, "moved"), RenameHow::NoReplace).0.unwrap();
    assert!(world.host("above/moved").exists() && !world.host("file").exists());
}

// rule: a rename with a whiteout leaves a character device 0/0 at the old name, which listings and lookups show
#[test]
fn a_whiteout_takes_the_old_name_of_a_dirty_file_and_hides_it() {
    let world = World::new();
    let root = world.root();
    let below = world.make_directory(&root, "below");
    let file = world.create(&root, "file");
    world.write(&file, 0, b"bytes").result.unwrap();
    let (own, whiteout) = (&Caller::SERVER, RenameHow::Whiteout { may_replace: true });
    assert_eq!(world.names(&root, 10).len(), 4, "the listing is known");
    match rename(&world, own, (&root, "file"), (&below, "moved"), whiteout).0 {
        // Some file systems of hosts make none.
        Err(VolumeError::Invalid { .. }) => return,
        renamed => renamed.unwrap(),
    }
    assert!(Arc::ptr_eq(&world.lookup(&below, "moved").unwrap().0, &file));
    let left = world.lookup(&root, "file").unwrap().1;
    assert_eq!((left.kind, left.device_major, left.device_minor), (Kind::CharDevice, 0, 0));
    assert_eq!(world.names(&root, 10).len(), 4, "the whiteout has the name");
    world.sync(&file);
    assert_eq!(fs::read(world.host("below/moved")).unwrap(), b"bytes");
    // The whiteout is an object as any other.
    let only_new = RenameHow::Whiteout { may_replace: false };
    let refused = rename(&world, own, (&below, "moved"), (&root, "file"), only_new).0;
    assert_eq!(refused, Err(VolumeError::Exists));
    rename(&world, own, (&below, "moved"), (&root, "file"), whiteout).0.unwrap();
    assert!(world.host("file").is_file() && !world.host("below/moved").is_file());
}

#[test]
fn a_host_that_says_exists_of_a_full_directory_means_not_empty() {
    let meaning = |how, is_over_directory| rename_refusal(Errno::EXIST, how, is_over_directory);
    assert_eq!(meaning(RenameHow::Replace, true), Some(VolumeError::NotEmpty));
    // Of a file, or of a name of the object itself, the caller gets the host's error.
    assert_eq!(meaning(RenameHow::Replace, false).unwrap_or(error_of(Errno::EXIST)), VolumeError::Exists);
    assert_eq!(meaning(RenameHow::NoReplace, true), Some(VolumeError::Exists));
}

#[test]
fn an_exchange_needs_its_users_rights_on_both_directories() {
    if !is_root() {
        afflux_scratch::skipped!("only root can act as others");
        return;
    }
    const USER: u32 = 4321;
    let world = World::new();
    let root = world.root();
    let (own, theirs) = (world.make_directory(&root, "own"), world.make_directory(&root, "theirs"));
    world.create(&own, "one");
    world.create(&theirs, "other");
    chown(world.host("own"), Some(USER), Some(USER)).unwrap();
    let user = world.volume.caller(USER, USER, &[]);
    let exchange = || rename(&world, &user, (&own, "one"), (&theirs, "other"), RenameHow::Exchange).0;
    assert_eq!(exchange(), Err(VolumeError::Denied));
    chown(world.host("theirs"), Some(USER), Some(USER)).unwrap();
    exchange().unwrap();
}

/// A directory that was moved out of the export takes no object out, and no object comes in from it.
#[test]
fn nothing_is_exchanged_with_a_directory_outside() {
    let world = World::new();
    let root = world.root();
    let (inside, moved) = (world.make_directory(&root, "inside"), world.make_directory(&root, "moved"));
    world.create(&inside, "one");
    world.create(&moved, "other");
    fs::rename(world.host("moved"), world.outside("moved")).unwrap();
    for (from, to) in [((&inside, "one"), (&moved, "other")), ((&moved, "other"), (&inside, "one"))] {
        let refused = rename(&world, &Caller::SERVER, from, to, RenameHow::Exchange).0;
        assert_eq!(refused, Err(VolumeError::Stale));
    }
}
