use super::*;

#[test]
fn a_point_whose_files_others_need_is_refused() {
    let cases = [
        ("/mnt", "/srv/data", true, None),
        ("/srv/data", "/srv/data", true, None),
        ("/srv/data/below", "/srv/data", true, None),
        ("/srv/data2", "/srv/data", false, None),
        ("/dev/shm/point", "/srv/data", true, None),
        ("/", "/srv/data", true, Some("all files")),
        ("/", "/", true, Some("all files")),
        ("/srv", "/srv/data", true, None),
        ("/proc", "/srv/data", true, Some("the kernel")),
        ("/sys/fs/cgroup", "/srv/data", true, Some("the kernel")),
        ("/dev", "/srv/data", true, Some("the kernel")),
        ("/dev/shm", "/srv/data", true, Some("the kernel")),
        ("/srv/data", "/srv/data", false, Some("only root")),
        ("/srv/data/below", "/srv/data", false, Some("only root")),
    ];
    for (point, directory, is_root, wanted) in cases {
        let said = mistake(Path::new(point), Some(Path::new(directory)), is_root);
        match (&said, wanted) {
            (Some(said), Some(wanted)) => assert!(said.contains(wanted) && said.contains(point), "{said}"),
            _ => assert_eq!(said.as_deref(), wanted, "{point} over {directory}"),
        }
    }
    assert_eq!(mistake(Path::new("/mnt"), None, false), None, "a store is nowhere on this host");
}
