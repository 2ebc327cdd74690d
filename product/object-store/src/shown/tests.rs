use super::*;

const MS: u64 = 1_000_000;

fn path(name: &str) -> Path {
    Path::from(format!("home/records/{name}"))
}

#[test]
fn what_a_list_has_shown_is_asked_for_again_and_believed_in_the_end() {
    let (shown, log) = (ShownNames::default(), path("wal/1.sst"));
    let absent = |at_ms: u64| shown.is_doubtful(&log, NameAnswer::Absent, at_ms * MS, 60 * MS);
    assert!(!absent(0), "the database looks for the next one");
    shown.show(&log, 10);
    assert!(absent(1) && absent(60) && !absent(61) && !absent(62));
    shown.trust(&log);
    assert!(absent(100), "an answer as expected starts anew");
    shown.forget(&log);
    assert!(!absent(101), "it was removed");
    let size = |bytes| shown.is_doubtful(&log, NameAnswer::Size(bytes), 0, 60 * MS);
    shown.show(&log, 10);
    assert!(!size(10) && size(0) && size(11));
}

#[test]
fn only_objects_that_never_change_are_doubted() {
    let shown = ShownNames::default();
    let doubts = |path: &Path, answer| shown.is_doubtful(path, answer, 0, 60 * MS);
    let (boundary, data, host) =
        (path("gc/manifest.boundary"), Path::from("home/data/01/x"), Path::from("home/holder"));
    for path in [&boundary, &host] {
        shown.show(path, 10);
        assert!(
            !doubts(path, NameAnswer::Absent) && !doubts(path, NameAnswer::Size(0)) && !doubts(path, NameAnswer::Wrong)
        );
    }
    assert!(doubts(&data, NameAnswer::Absent) && doubts(&data, NameAnswer::Wrong), "a record names it");
    assert!(doubts(&path("compacted/x.sst"), NameAnswer::Absent), "only the manifest names it");
    assert!(doubts(&path("manifest/1.manifest"), NameAnswer::Wrong));
    assert!(!shown.is_doubtful(&path("compacted/y.sst"), NameAnswer::Absent, 0, 0), "a directory is believed at once");
}

#[test]
fn the_newest_names_are_kept() {
    let shown = ShownNames::default();
    let name = |at: usize| path(&format!("wal/{at:020}.sst"));
    (0..=NAMES_MAX).for_each(|at| shown.show(&name(at), 1));
    let is_known = |at| shown.is_doubtful(&name(at), NameAnswer::Absent, 0, MS);
    assert!(!is_known(0) && is_known(1) && is_known(NAMES_MAX));
    assert!(shown.names().known.len() <= NAMES_MAX && shown.names().order.len() <= NAMES_MAX);
}
