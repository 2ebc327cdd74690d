//! Directories in which other bytes are the same name.

use std::path::Path;

use super::frozen::run;
use super::numbers::Mounts;
use super::*;

/// All names, as a kernel asks for them: after each piece for the next one, until one is empty.
fn names(world: &World, directory: &Object) -> Vec<String> {
    let (mut names, mut cookie) = (Vec::new(), 0);
    loop {
        let listing = world.run(world.volume.list(directory, cookie, 100, false)).unwrap();
        let Some(last) = listing.entries.last() else { break };
        cookie = last.cookie;
        names.extend(listing.entries.iter().map(|entry| String::from_utf8(entry.name.to_vec()).unwrap()));
    }
    names.retain(|name| name != "." && name != "..");
    names.sort();
    names
}

fn on_host(path: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Makes, renames and removes names by other spellings; the listing stays the host's.
fn compare(world: &World, path: &Path) {
    let (place, _) = world.lookup(&world.root(), "place").unwrap();
    assert_eq!(names(world, &place), on_host(path));
    assert!(world.volume.may_fold_names(&place));
    let is_same = || assert_eq!(names(world, &place), on_host(path));
    let (volume, change) = (&world.volume, AttributeChange::default());
    drop(world.create(&place, "Foo"));
    is_same();
    world.run(volume.remove(&place, b"foo")).result.unwrap();
    is_same();
    drop(world.make_directory(&place, "Dd"));
    is_same();
    world.run(volume.remove_directory(&place, b"dD")).result.unwrap();
    is_same();
    drop(world.run(volume.create(&place, b"One", CreateHow::Guarded(change))).result.unwrap());
    world.run(volume.rename(&place, b"ONE", &place, b"Two")).0.result.unwrap();
    is_same();
    assert!(world.lookup(&place, "one").is_err() && world.lookup(&place, "tWO").is_ok());
    world.run(volume.remove(&place, b"TWO")).result.unwrap();
    assert!(world.lookup(&place, "tWO").is_err());
    is_same();
}

/// Whether the server reports that a directory ignores case.
fn is_told(world: &World, name: &str) -> bool {
    let (object, _) = world.lookup(&world.root(), name).unwrap();
    world.run(world.volume.path_limits(&object)).unwrap().0.case_insensitive
}

fn place() -> Option<(Arc<Scratch>, PathBuf)> {
    if !is_root() {
        afflux_scratch::skipped!("only root mounts file systems");
        return None;
    }
    let scratch = Arc::new(Scratch::new());
    std::fs::create_dir(scratch.path().join("export")).unwrap();
    let place = scratch.path().join("export/place");
    Some((scratch, place))
}

#[test]
fn a_listing_of_a_file_system_that_ignores_case_has_no_phantoms() {
    let Some((scratch, place)) = place() else { return };
    let mut mounts = Mounts::default();
    let image = scratch.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
    if let Err(error) = run("mkntfs", &["-q".as_ref(), "-F".as_ref(), "-Q".as_ref(), &image]) {
        afflux_scratch::skipped!("{error}");
        return;
    }
    if mounts.mount(&place, &["-t", "lowntfs-3g", "-o", "ignore_case", image.to_str().unwrap()]) {
        compare(&World::on(Arc::clone(&scratch), HostOptions::default()), &place);
    }
}

#[test]
fn a_listing_of_an_xfs_that_ignores_case_has_no_phantoms() {
    let Some((scratch, place)) = place() else { return };
    let mut mounts = Mounts::default();
    if mounts.image(&place, 320 << 20, &["mkfs.xfs", "-q", "-n", "version=ci"]) {
        let world = World::on(Arc::clone(&scratch), HostOptions::default());
        compare(&world, &place);
        assert!(
            is_told(&world, "place") && !world.run(world.volume.path_limits(&world.root())).unwrap().0.case_insensitive
        );
    }
}

#[test]
fn a_listing_of_a_directory_with_the_flag_has_no_phantoms() {
    let Some((_below, place)) = place() else { return };
    let mut mounts = Mounts::default();
    if mounts.image(&place, 16 << 20, &["mkfs.ext4", "-q", "-F", "-O", "casefold"]) {
        let folded = place.join("place");
        std::fs::create_dir(&folded).unwrap();
        if let Err(error) = run("chattr", &["+F".as_ref(), &folded]) {
            afflux_scratch::skipped!("{error}");
            return;
        }
        let scratch = Arc::new(Scratch::new());
        std::os::unix::fs::symlink(&place, scratch.path().join("export")).unwrap();
        std::fs::write(place.join("file"), b"").unwrap();
        let world = World::on(scratch, HostOptions::default());
        compare(&world, &folded);
        assert!(is_told(&world, "place") && !is_told(&world, "file"));
    }
}

#[test]
fn usual_directories_fold_nothing() {
    let world = World::new();
    world.make_directory(&world.root(), "some");
    let (some, _) = world.lookup(&world.root(), "some").unwrap();
    drop(world.create(&some, "Name"));
    assert!(!world.volume.may_fold_names(&some));
}
