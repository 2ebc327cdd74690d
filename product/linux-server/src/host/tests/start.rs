//! Which directories can be exported, and the key.

use std::os::unix::fs::PermissionsExt;

use super::super::{HostError, KeyOrigin, handle_key};
use super::*;

fn open(paths: &[PathBuf]) -> Result<Arc<HostTree>, HostError> {
    HostTree::open(paths, &WorkerPool::new("test-pool", 1, 8), &HostOptions::default())
}

#[test]
fn what_cannot_be_exported_is_named() {
    let scratch = Scratch::new();
    let path = |name: &str| scratch.path().join(name);
    for name in ["a", "a/inside", "b", "b/a"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    std::fs::write(path("file"), b"").unwrap();
    std::os::unix::fs::symlink(path("a"), path("link")).unwrap();
    let error = |paths: &[PathBuf]| open(paths).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error(&[]).contains("no directory"));
    assert!(error(&[path("gone")]).contains("gone"));
    assert!(error(&[path("file")]).contains("file is not a directory"));
    assert!(error(&[path("a"), path("b/a")]).contains("both be exported as /a"));
    assert!(error(&[path("a"), path("a/inside")]).contains("is inside"));
    assert!(error(&[path("a/inside"), path("link")]).contains("is inside"));
    assert!(error(&[path("a"), path("link")]).contains("is inside"));
    assert!(error(&[path("a"), "/".into()]).contains("serve"));
    let two = open(&[path("a"), path("b")]).unwrap();
    let exports: Vec<_> = afflux_volume::Directory::exports(&*two).iter().map(|export| export.path.clone()).collect();
    assert_eq!(exports, ["/a", "/b"]);
    if !is_root() {
        std::fs::set_permissions(path("b"), std::fs::Permissions::from_mode(0o0)).unwrap();
        assert!(error(&[path("b")]).contains("cannot be read by this user"));
        std::fs::set_permissions(path("b"), std::fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn several_exports_are_mounted_by_name() {
    let scratch = Scratch::new();
    let paths: Vec<_> = ["a", "b"].map(|name| scratch.path().join(name)).into();
    paths.iter().for_each(|path| std::fs::create_dir(path).unwrap());
    std::fs::create_dir(paths[1].join("below")).unwrap();
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let engine = Engine::new(
        Arc::new(platform.clone()),
        Settings::with([&afflux_volume::KNOBS]),
        Frames::new(32 << 20).unwrap(),
    );
    let devices = host_devices(&platform, Caching::Auto);
    let volume = Volume::new(engine, open(&paths).unwrap(), HandleKey::new(KEY), devices).unwrap();
    let mount = |path: &[u8]| platform.block_on(volume.mount(path));
    assert_eq!(volume.exports(), ["/a", "/b"]);
    assert_eq!(mount(b"").err(), Some(VolumeError::NotFound));
    assert_eq!(mount(b"/").err(), Some(VolumeError::NotFound));
    assert_eq!(mount(b"/c").err(), Some(VolumeError::NotFound));
    let (a, b) = (mount(b"/a").unwrap(), mount(b"b/").unwrap());
    assert!(!Arc::ptr_eq(&a, &b));
    assert_eq!(mount(b"/b/below").unwrap().kind(), Kind::Directory);
    assert_eq!(mount(b"/a/below").err(), Some(VolumeError::NotFound));
    assert!(Arc::ptr_eq(&mount(b"/a/../b").err().map_or_else(|| a.clone(), |_| a.clone()), &a));
    assert_eq!(mount(b"/a/../b").err(), Some(VolumeError::NotFound), "'..' stops at the export's root");
    assert_eq!(volume.engine().status().devices.len(), 1, "one file system, one device");
}

#[test]
fn the_key_is_kept_for_its_owner_alone() {
    let scratch = Scratch::new();
    let path = scratch.path().join("state/key");
    let (made, origin) = handle_key(Some(&path));
    assert_eq!(origin, KeyOrigin::Made(path.clone()));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let (stored, origin) = handle_key(Some(&path));
    assert_eq!(origin, KeyOrigin::Persisted(path.clone()));
    assert_eq!(stored.as_bytes(), made.as_bytes());
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing left beside it");
    let unkept = |path: Option<&std::path::Path>| match handle_key(path) {
        (key, KeyOrigin::Unkept { reason }) => (*key.as_bytes(), reason),
        (_, origin) => panic!("{origin:?}"),
    };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(unkept(Some(&path)).1.contains("0600"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, b"short").unwrap();
    assert!(unkept(Some(&path)).1.contains("5 bytes"));
    assert!(unkept(Some(scratch.path())).1.contains("regular file"));
    assert_ne!(unkept(None).0, unkept(None).0);
    assert!(!unkept(Some(&scratch.path().join("no/such/place"))).1.is_empty());
}
