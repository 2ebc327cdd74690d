//! File systems that store nothing, below an export and as one.

use std::path::Path;
use std::process::Command;

use afflux_volume::{Caller, SetTime, SpecialKind, Timestamp, XattrChange};

use super::super::HostError;
use super::*;

/// A mount point, until the drop.
struct Mounted(PathBuf);

impl Mounted {
    fn new(arguments: &[&str], place: &Path) -> Option<Self> {
        let output = Command::new("mount").args(arguments).arg(place).output();
        output.is_ok_and(|output| output.status.success()).then(|| Self(place.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// The kinds that are only interfaces of the kernel, as far as this kernel has them.
const VOID: [&str; 17] = [
    "proc",
    "sysfs",
    "cgroup2",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
    "bpf",
    "devpts",
    "mqueue",
    "pstore",
    "efivarfs",
    "binfmt_misc",
    "hugetlbfs",
    "fusectl",
    "selinuxfs",
    "rpc_pipefs",
];

/// Checks that a directory appears empty, and refuses every creation, access and change.
fn is_void(world: &World, root: &Object, name: &str) {
    let (place, attributes) = world.lookup(root, name).unwrap();
    assert_eq!(attributes.kind, Kind::Directory, "{name}");
    assert_eq!(world.names(&place, 8), [".", ".."], "{name}");
    for below in ["sys", "version", "kernel", "cgroup.procs", "register"] {
        assert_eq!(world.lookup(&place, below).err(), Some(VolumeError::NotFound), "{name}/{below}");
    }
    let refused = Err(VolumeError::ReadOnly);
    let change = AttributeChange::default();
    let made = world.run(world.volume.create(&place, b"new", CreateHow::Guarded(change))).result;
    assert_eq!(made.map(drop), refused, "{name}");
    let made = world.run(world.volume.make_directory(&place, b"new", change)).result;
    assert_eq!(made.map(drop), refused, "{name}");
    let made = world.run(world.volume.symlink(&place, b"new", b"target", change)).result;
    assert_eq!(made.map(drop), refused, "{name}");
    let made = world.run(world.volume.make_special(&place, b"new", SpecialKind::Fifo, change)).result;
    assert_eq!(made.map(drop), refused, "{name}");
    let file = world.lookup(root, "file").unwrap().0;
    assert_eq!(world.run(world.volume.link(&file, &place, b"new")).result.map(drop), refused, "{name}");
    let moved = world.run(world.volume.rename(root, b"file", &place, b"new")).0.result;
    assert!(matches!(moved, Err(VolumeError::ReadOnly | VolumeError::CrossDevice)), "{name}: {moved:?}");
    let removed = world.run(world.volume.remove(&place, b"version")).result;
    assert_eq!(removed.map(drop), Err(VolumeError::NotFound), "{name}");
    let time = SetTime::To(Timestamp { seconds: 1, nanos: 0 });
    for change in [
        AttributeChange { mode: Some(0o777), ..change },
        AttributeChange { uid: Some(4002), ..change },
        AttributeChange { mtime: time, ..change },
    ] {
        assert_eq!(world.set(&place, change).result.map(drop), refused, "{name}: {change:?}");
    }
    let own = Caller::SERVER;
    let set = XattrChange::Set(Bytes::from_static(b"x"));
    assert_eq!(world.run(world.volume.change_xattr_by(&own, &place, b"user.a", set)).result.map(drop), refused);
    assert_eq!(world.run(world.volume.xattrs_by(&own, &place)), Ok(Vec::new()), "{name}");
    world.sync(&place);
    assert!(Arc::ptr_eq(&world.lookup(&place, "..").unwrap().0, root), "{name}");
}

#[test]
fn a_mounted_interface_of_the_kernel_is_an_empty_directory() {
    let world = World::new();
    let root = world.root();
    world.create(&root, "file");
    let mut tried = 0;
    for kind in VOID {
        world.make_directory(&root, kind);
        // Most are mounted after the server has seen the mount point.
        let Some(mounted) = Mounted::new(&["-t", kind, kind], &world.host(kind)) else { continue };
        tried += 1;
        is_void(&world, &root, kind);
        drop(mounted);
        let (place, _) = world.lookup(&root, kind).unwrap();
        world.create(&place, "stored");
    }
    if tried == 0 {
        afflux_scratch::skipped!("nothing can be mounted here");
    }
}

#[test]
fn parts_of_proc_bound_below_an_export_are_not_served() {
    let world = World::new();
    let root = world.root();
    for name in ["file", "setting", "memory"] {
        world.create(&root, name);
    }
    world.make_directory(&root, "kernel");
    let bind = |from: &str, name: &str| Mounted::new(&["--bind", from], &world.host(name));
    let Some(_kernel) = bind("/proc/sys/kernel", "kernel") else {
        return afflux_scratch::skipped!("nothing can be mounted here");
    };
    is_void(&world, &root, "kernel");
    let _files =
        [bind("/proc/sys/kernel/hostname", "setting"), bind("/proc/self/ns/uts", "memory")].map(Option::unwrap);
    for name in ["setting", "memory"] {
        assert_eq!(world.lookup(&root, name).err(), Some(VolumeError::Denied), "{name}");
    }
}

#[test]
fn a_mounted_place_of_files_is_served_beside_and_after_an_interface() {
    let world = World::new();
    let root = world.root();
    world.create(&root, "file");
    world.make_directory(&root, "place");
    for kind in ["proc", "tmpfs", "sysfs", "ramfs"] {
        let Some(_mounted) = Mounted::new(&["-t", kind, kind], &world.host("place")) else {
            return afflux_scratch::skipped!("nothing can be mounted here");
        };
        if ["proc", "sysfs"].contains(&kind) {
            is_void(&world, &root, "place");
        } else {
            let (place, _) = world.lookup(&root, "place").unwrap();
            let file = world.create(&place, "new");
            world.write(&file, 0, b"bytes").result.unwrap();
            world.sync(&file);
            assert_eq!(std::fs::read(world.host("place/new")).unwrap(), b"bytes", "{kind}");
        }
    }
}

#[test]
fn an_interface_of_the_kernel_is_no_export() {
    let pool = WorkerPool::new("test-pool", 1, 8);
    for path in ["/proc", "/proc/sys/kernel", "/sys", "/sys/kernel"] {
        let error = HostTree::open(&[path.into()], &pool, &HostOptions::default()).err().unwrap();
        assert!(matches!(error, HostError::StoresNothing { .. }), "{error}");
        let kind = if path.starts_with("/proc") { "proc" } else { "sysfs" };
        assert!(error.to_string().starts_with(&format!("{path}: it is on {kind}, which stores no files")), "{error}");
    }
}
