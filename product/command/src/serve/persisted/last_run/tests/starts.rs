use super::super::*;

fn directory(identity: &str, below: &str, path: &str) -> RecordedDirectory {
    let stay = match &identity[..1] {
        "b" => "0:52",
        "-" => "8:1.3",
        _ => UNTOLD,
    };
    RecordedDirectory {
        identity: identity.to_owned(),
        stay: stay.to_owned(),
        below: below.to_owned(),
        path: path.to_owned(),
    }
}

fn start(run_id: u64, directory: &RecordedDirectory) -> RecordedStart {
    RecordedStart { run_id, directory: directory.clone() }
}

#[test]
fn places_overlap_under_any_path_and_name() {
    let srv = directory("a:1.1:01", "/srv", "/srv");
    let overlapping = [
        ("it", directory("a:1.1:01", "/srv", "/srv")),
        ("it, mounted elsewhere", directory("a:1.1:01", "/srv", "/mnt/bind")),
        ("it, renamed", directory("a:1.1:01", "/data", "/data")),
        ("one below", directory("a:1.1:02", "/srv/x", "/srv/x")),
        ("one below, mounted elsewhere", directory("a:1.1:02", "/srv/x", "/mnt/x")),
        ("one above", directory("a:1.1:03", "/", "/")),
        ("one above, mounted elsewhere", directory("a:1.1:03", "/", "/mnt/root")),
        ("a mount below", directory("c:1.1:01", "/", "/srv/disk")),
        ("a mount above", directory("c:1.1:01", "/", "/")),
        ("another directory of the name", directory("a:1.1:04", "/srv", "/mnt")),
    ];
    for (what, other) in overlapping {
        assert!(srv.is_overlapping(&other) && other.is_overlapping(&srv), "{what}");
    }
    let others = [
        ("one beside", directory("a:1.1:02", "/srv2", "/srv2")),
        ("another disk at the same path", directory("c:1.1:01", "/srv", "/srv")),
        ("a disk without a table of mounts", directory("a:1.1:02", UNTOLD, "/mnt")),
    ];
    for (what, other) in others {
        assert!(!srv.is_overlapping(&other) && !other.is_overlapping(&srv), "{what}");
    }
    let subvolume = |id, below| directory(id, below, &format!("/mnt{below}"));
    assert!(subvolume("b1:1.1:01", "/home").is_overlapping(&directory("b2:1.1:01", "/home/x", "/x")));
    assert!(!subvolume("b1:1.1:01", "/home").is_overlapping(&directory("b2:1.1:01", "/root", "/x")));
    let mounted = |below, path| directory(UNTOLD, below, path);
    let disk = RecordedDirectory { stay: "8:1.3".to_owned(), ..directory("c:1.1:01", "/x", "/mnt/x") };
    assert!(disk.is_overlapping(&mounted("/", "/srv/disk")) && mounted("/x/y", "/srv/y").is_overlapping(&disk));
    assert!(!disk.is_overlapping(&mounted("/y", "/srv/y")));
    let exchanged = RecordedDirectory { stay: "8:1.4".to_owned(), ..mounted("/", "/srv/disk") };
    assert!(!disk.is_overlapping(&exchanged));
}

#[test]
fn the_last_server_of_a_place_is_known() {
    let (a, b, above) =
        (directory("a:1.1:01", "/a", "/a"), directory("a:1.1:02", "/b", "/b"), directory("a:1.1:03", "/", "/"));
    let by = |path: &str| Standing::PassedOver { by: path.to_owned() };
    let ours = [a.clone()];
    let cases = [
        (vec![], Standing::Unknown),
        (vec![start(1, &a)], Standing::Last),
        (vec![start(1, &a), start(2, &b)], Standing::Last),
        (vec![start(2, &above), start(1, &a)], Standing::Last),
        (vec![start(1, &a), start(2, &above)], by("/")),
        (vec![start(2, &a)], by("/a")),
        (vec![start(2, &b)], Standing::Unknown),
        // The first server had two directories, and another server has served one of the two.
        (vec![start(1, &a), start(1, &b), start(2, &above)], by("/")),
        // Another server has served a directory that the first server had under another path.
        (vec![start(1, &b), start(2, &directory("a:1.1:04", "/b/c", "/b/c"))], by("/b/c")),
    ];
    for (starts, expected) in cases {
        assert_eq!(standing(&starts, &ours, Some(1)), expected, "{starts:?}");
    }
    assert_eq!(standing(&[start(1, &a)], &ours, None), by("/a"), "a server without a number");
}

#[test]
fn a_start_moves_its_places_to_the_end_and_the_oldest_lines_go() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "starts").unwrap();
    let path = scratch.path().join(STARTS);
    let (a, b) = (directory("a:1.1:01", "/a b\\x09", "/a"), directory("a:1.1:02", "/b", "/b"));
    noted(&path, std::slice::from_ref(&a), 1).unwrap();
    noted(&path, std::slice::from_ref(&b), 2).unwrap();
    noted(&path, std::slice::from_ref(&a), 3).unwrap();
    assert_eq!(read(&path).unwrap(), [start(2, &b), start(3, &a)]);
    for number in 0..LINES_MAX as u64 {
        let other = directory(&format!("d:1.1:{number:x}"), "/", "/d");
        noted(&path, &[other], 10 + number).unwrap();
    }
    let starts = read(&path).unwrap();
    assert_eq!((starts.len(), starts[0].run_id), (LINES_MAX, 10));
    assert_eq!(standing(&starts, &[a], Some(3)), Standing::Unknown);
}

#[test]
fn a_damaged_record_is_an_error_and_begins_anew() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "starts").unwrap();
    let path = scratch.path().join(STARTS);
    for text in ["1\ta:1.1:01", "x\ta\t-\t-\t/a", "1\ta\t-\t-\t/a\tb", "\n"] {
        fs::write(&path, text).unwrap();
        assert!(read(&path).is_err(), "{text:?}");
    }
    noted(&path, &[directory("a:1.1:01", "/a", "/a")], 1).unwrap();
    assert_eq!(read(&path).unwrap().len(), 1);
}
