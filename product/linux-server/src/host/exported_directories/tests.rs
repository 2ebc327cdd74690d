use super::*;

#[test]
fn a_bind_mount_tells_its_place_on_the_file_system() {
    let line = b"40 35 0:52 /@home/a\\040b /srv/c\\134d rw shared:1 - btrfs x rw";
    let mount = ListedMount::of(line).unwrap();
    assert_eq!((mount.id, mount.point.as_path()), (40, Path::new("/srv/c\\d")));
    let place = |below: &str| Some(OnFileSystem { stay: Some("0:52".to_owned()), below: PathBuf::from(below) });
    assert_eq!(mount.on_file_system_of(Path::new("/srv/c\\d")), place("/@home/a b"));
    assert_eq!(mount.on_file_system_of(Path::new("/srv/c\\d/e")), place("/@home/a b/e"));
    assert_eq!(mount.on_file_system_of(Path::new("/srv")), None);
    assert_eq!(ListedMount::of(b"40 1"), None);
}
