use super::*;

fn directory() -> afflux_scratch::Scratch {
    afflux_scratch::Scratch::new(&std::env::temp_dir(), "own-place").unwrap()
}

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

fn own_directory(directory: &Path, exports: &[&str]) -> OwnDirectory {
    OwnDirectory::among(directory, &paths(exports), Missing::Make).ok().unwrap()
}

#[test]
fn each_server_finds_its_place_again_in_either_order() {
    let scratch = directory();
    let at = scratch.path();
    let (a, b) = (own_directory(at, &["/srv/a"]), own_directory(at, &["/srv/b"]));
    assert_eq!(a.path(), at);
    let place_of_b = b.path().to_path_buf();
    assert_eq!(place_of_b, at.join("servers/1"));
    drop((a, b));
    let (b, a) = (own_directory(at, &["/srv/b"]), own_directory(at, &["/srv/a"]));
    assert_eq!((a.path(), b.path()), (at, place_of_b.as_path()));
    drop((a, b));
    // One more directory is served: what clients have of the others stays known.
    assert_eq!(own_directory(at, &["/srv/c", "/srv/b"]).path(), place_of_b);
    assert_eq!(own_directory(at, &["/srv/c"]).path(), place_of_b);
    assert_eq!(own_directory(at, &["/srv/a", "/srv/d"]).path(), at);
    assert_eq!(own_directory(at, &["/srv/e"]).path(), at.join("servers/2"), "nobody takes another server's place");
}

#[test]
fn a_second_server_of_the_same_directories_has_a_place_of_its_own() {
    let scratch = directory();
    let first = own_directory(scratch.path(), &["/srv/a"]);
    let second = own_directory(scratch.path(), &["/srv/a"]);
    assert_ne!(first.path(), second.path());
}

#[test]
fn a_rehearsal_finds_the_place_of_a_start_and_leaves_everything_as_it_was() {
    let scratch = directory();
    let rehearsed =
        |at: &Path, exports: &[&str]| OwnDirectory::among(at, &paths(exports), Missing::Leave).ok().unwrap();
    let new = scratch.path().join("new");
    assert_eq!(rehearsed(&new, &["/srv/a"]).path(), new);
    assert!(!new.exists());
    let first = own_directory(scratch.path(), &["/srv/a"]);
    let second = rehearsed(scratch.path(), &["/srv/b"]);
    assert_eq!(second.path(), scratch.path().join("servers/1"));
    assert!(!second.path().exists() && !scratch.path().join("servers").exists());
    drop(first);
    let free = [rehearsed(scratch.path(), &["/srv/a"]), rehearsed(scratch.path(), &["/srv/a"])];
    assert!(free.iter().all(|directory| directory.path() == scratch.path()), "a rehearsal keeps no place");
}

#[test]
fn a_named_directory_has_one_server() {
    let scratch = directory();
    let first = OwnDirectory::whole(scratch.path(), Missing::Make).ok().unwrap();
    let refused = OwnDirectory::whole(scratch.path(), Missing::Make).err().unwrap().to_string();
    let said = format!("process {} keeps its state in {}", std::process::id(), scratch.path().display());
    assert!(refused.contains(&said) && refused.contains("name another with --state"), "{refused}");
    drop(first);
    assert!(OwnDirectory::whole(scratch.path(), Missing::Make).is_ok());
}

/// An error is no empty list: such a directory is nobody's, and another server's state stays where it is.
#[test]
fn a_list_that_cannot_be_read_makes_no_place_free() {
    let scratch = directory();
    fs::create_dir(scratch.path().join("exports")).unwrap();
    assert_eq!(own_directory(scratch.path(), &["/srv/a"]).path(), scratch.path().join("servers/1"));
}

#[test]
fn paths_of_any_bytes_are_told_apart() {
    let one = lines_of(&paths(&["/srv/a\n/srv/b"]));
    assert_eq!(one.len(), 1);
    assert_ne!(one, lines_of(&paths(&["/srv/a", "/srv/b"])));
    assert_eq!(list_of(&paths(&["/b", "/a"])), list_of(&paths(&["/a", "/b"])));
}

#[test]
fn the_number_of_places_has_a_bound() {
    let scratch = directory();
    let below = scratch.path().join("servers");
    (1..=DIRECTORIES_MAX).for_each(|number| fs::create_dir_all(below.join(number.to_string())).unwrap());
    for missing in [Missing::Make, Missing::Leave] {
        let refused = new_directory(&below, missing).err().unwrap().to_string();
        assert!(refused.contains("remove old ones"), "{refused}");
    }
}
