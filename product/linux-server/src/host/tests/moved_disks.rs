//! Disks that come back with other numbers: a handle leads to its own disk or nowhere.

use std::path::Path;
use std::time::Duration;

use super::frozen::run;
use super::*;
use crate::HostError;

/// Sizes of images: XFS has the largest least size.
const IMAGE_BYTES: u64 = 320 << 20;

/// Two disks with a file system each, on loop devices, below one export or as an export each.
struct Disks {
    devices: [String; 2],
    images: [PathBuf; 2],
    points: [PathBuf; 2],
}

impl Disks {
    /// None, with a message, if the host cannot have them.
    fn made(scratch: &Path, mkfs: &[&str]) -> Option<Self> {
        let paths = |kind: &str| ["a", "b"].map(|name| scratch.join(kind).join(name));
        let (images, points) = (paths("images"), paths("points"));
        images.iter().for_each(|image| std::fs::create_dir_all(image.parent().unwrap()).unwrap());
        points.iter().for_each(|point| std::fs::create_dir_all(point).unwrap());
        for image in &images {
            std::fs::File::create(image).unwrap().set_len(IMAGE_BYTES).unwrap();
            let arguments: Vec<&Path> = mkfs[1..].iter().map(Path::new).chain([image.as_path()]).collect();
            run(mkfs[0], &arguments).map_err(|error| afflux_scratch::skipped!("{error}")).ok()?;
        }
        Self::attached(images, points)
    }

    fn attached(images: [PathBuf; 2], points: [PathBuf; 2]) -> Option<Self> {
        let attach = |image: &PathBuf| run("losetup", &["-f".as_ref(), "--show".as_ref(), image]);
        let first = attach(&images[0]).map_err(|error| afflux_scratch::skipped!("{error}")).ok()?;
        let second = attach(&images[1]).unwrap();
        let disks = Self { devices: [first, second], images, points };
        let mounted = disks
            .devices
            .iter()
            .zip(&disks.points)
            .try_for_each(|(device, point)| run("mount", &[device.as_ref(), point]).map(drop));
        mounted.map_err(|error| afflux_scratch::skipped!("{error}")).ok()?;
        for (point, name) in disks.points.iter().zip(["a", "b"]) {
            std::fs::write(point.join("name"), name).unwrap();
        }
        Some(disks)
    }

    /// Each disk gets the other one's number, and is mounted where it was. False if somebody else took a number.
    fn change_numbers(&mut self) -> bool {
        for point in &self.points {
            let unmounted = || run("umount", &[point]).is_ok();
            assert!(afflux_scratch::within(Duration::from_secs(20), unmounted), "a server of before has ended");
        }
        self.devices.iter().for_each(|device| drop(run("losetup", &["-d".as_ref(), device.as_ref()]).unwrap()));
        self.devices.swap(0, 1);
        for (device, image) in self.devices.iter().zip(&self.images) {
            if let Err(error) = run("losetup", &[device.as_ref(), image]) {
                afflux_scratch::skipped!("another program has {device}: {error}");
                return false;
            }
        }
        for (device, point) in self.devices.iter().zip(&self.points) {
            run("mount", &[device.as_ref(), point]).unwrap();
        }
        true
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        self.points.iter().for_each(|point| drop(run("umount", &["-l".as_ref(), point])));
        for (device, image) in self.devices.iter().zip(&self.images) {
            // Somebody else may have the number by now.
            let behind = run("losetup", &["-n".as_ref(), "-O".as_ref(), "BACK-FILE".as_ref(), device.as_ref()]);
            if behind.is_ok_and(|behind| Path::new(&behind) == image) {
                let _ = run("losetup", &["-d".as_ref(), device.as_ref()]);
            }
        }
    }
}

/// A server of exports.
struct Served {
    tree: Arc<HostTree>,
    volume: Arc<Files>,
    platform: LinuxPlatform,
    _reactors: Reactors,
}

impl Served {
    fn start(exports: &[PathBuf]) -> Self {
        let reactors = Reactors::start(2, IoChoice::Auto).unwrap();
        let platform = reactors.platform();
        let tree = opened(exports).unwrap();
        let settings = Settings::with([&afflux_volume::KNOBS]);
        let engine = Engine::new(Arc::new(platform.clone()), settings, Frames::new(16 << 20).unwrap());
        let devices = host_devices(&platform, Caching::Auto);
        let volume = Volume::new(engine, Arc::clone(&tree) as _, HandleKey::new(KEY), devices).unwrap();
        Self { tree, volume, platform, _reactors: reactors }
    }

    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.platform.block_on(work)
    }

    /// The object at a path of names below an export's path.
    fn walk(&self, export: &str, names: &[&str]) -> Object {
        let mut at = self.run(self.volume.mount(export.as_bytes())).unwrap();
        for name in names {
            at = self.run(self.volume.lookup(&at, name.as_bytes())).unwrap().0;
        }
        at
    }

    fn handle(&self, object: &Object) -> Vec<u8> {
        self.volume.handle(object).as_bytes().to_vec()
    }

    fn contents(&self, handle: &[u8]) -> Result<Vec<u8>, VolumeError> {
        let file = self.run(self.volume.resolve(handle))?;
        Ok(bytes_of(&self.run(self.volume.read(&file, 0, 100)).unwrap().bytes))
    }
}

fn opened(exports: &[PathBuf]) -> Result<Arc<HostTree>, HostError> {
    HostTree::open(exports, &WorkerPool::new("test-pool", THREADS, 64), &HostOptions::default())
}

// rule: a handle of an earlier server leads to its own disk, or nowhere, whatever device numbers the disks have now
// kept in: `product/linux-server/src/host/file_system_facts.rs`, `product/linux-server/src/host/filesystems.rs`
#[test]
fn handles_lead_to_their_own_disk_after_disks_have_changed_their_numbers() {
    if !is_root() {
        afflux_scratch::skipped!("only root mounts file systems");
        return;
    }
    // A file system of a process reports no UUID to the kernel. udev may know it.
    let kinds: [(&[&str], bool); 4] = [
        (&["mkfs.xfs", "-q"], true),
        (&["mkfs.ext4", "-q", "-F"], true),
        (&["mkfs.btrfs", "-q"], true),
        (&["mkntfs", "-q", "-F", "-Q"], false),
    ];
    for (mkfs, is_lasting) in kinds {
        let scratch = Scratch::new();
        let Some(mut disks) = Disks::made(scratch.path(), mkfs) else { continue };
        let exports = disks.points.clone();
        let names = |served: &Served| {
            ["a", "b"].map(|name| {
                let root = served.walk(&format!("/{name}"), &[]);
                [served.handle(&root), served.handle(&served.walk(&format!("/{name}"), &["name"]))]
            })
        };
        let served = Served::start(&exports);
        let handles = names(&served);
        let ids = served.tree.exports.iter().map(|export| export.root.identity.fsid()).collect::<Vec<_>>();
        drop(served);
        if !disks.change_numbers() {
            continue;
        }
        let served = Served::start(&exports);
        for ([root, file], name) in handles.iter().zip(["a", "b"]) {
            if !is_lasting && served.contents(file) == Err(VolumeError::Stale) {
                assert_eq!(served.run(served.volume.resolve(root)).err(), Some(VolumeError::Stale), "{mkfs:?}");
                continue;
            }
            assert_eq!(served.contents(file).unwrap(), name.as_bytes(), "{mkfs:?}");
            let root = served.run(served.volume.resolve(root)).unwrap();
            let how = CreateHow::Guarded(AttributeChange::default());
            served.run(served.volume.create(&root, format!("made on {name}").as_bytes(), how)).result.unwrap();
        }
        let again = served.tree.exports.iter().map(|export| export.root.identity.fsid()).collect::<Vec<_>>();
        if !is_lasting {
            continue;
        }
        assert_eq!(ids, again, "{mkfs:?}");
        for (point, name) in disks.points.iter().zip(["a", "b"]) {
            assert!(point.join(format!("made on {name}")).exists(), "{mkfs:?}");
        }
    }
}

/// The same below one export, whose root's file system stays.
#[test]
fn handles_below_an_export_lead_to_their_own_disk() {
    if !is_root() {
        afflux_scratch::skipped!("only root mounts file systems");
        return;
    }
    let scratch = Scratch::new();
    let Some(mut disks) = Disks::made(scratch.path(), &["mkfs.xfs", "-q"]) else { return };
    let exports = [scratch.path().join("points")];
    let served = Served::start(&exports);
    let handles = ["a", "b"].map(|name| served.handle(&served.walk("/", &[name, "name"])));
    drop(served);
    if !disks.change_numbers() {
        return;
    }
    let served = Served::start(&exports);
    for (handle, name) in handles.iter().zip(["a", "b"]) {
        assert_eq!(served.contents(handle).unwrap(), name.as_bytes());
    }
}

/// A disk goes, and another disk comes with the same number and at the same mount point.
#[test]
fn a_handle_of_a_disk_that_is_gone_is_stale() {
    if !is_root() {
        afflux_scratch::skipped!("only root mounts file systems");
        return;
    }
    let scratch = Scratch::new();
    let Some(mut disks) = Disks::made(scratch.path(), &["mkfs.xfs", "-q"]) else { return };
    let place = disks.points[0].clone();
    let served = Served::start(std::slice::from_ref(&place));
    let handle = served.handle(&served.walk("/", &["name"]));
    drop(served);
    if !disks.change_numbers() {
        return;
    }
    run("umount", &[&place]).unwrap();
    run("mount", &["--bind".as_ref(), &disks.points[1], &place]).unwrap();
    let served = Served::start(std::slice::from_ref(&place));
    assert_eq!(served.contents(&handle), Err(VolumeError::Stale));
}

#[test]
fn two_exports_on_copies_of_one_disk_are_refused_by_name() {
    if !is_root() {
        afflux_scratch::skipped!("only root mounts file systems");
        return;
    }
    let scratch = Scratch::new();
    let Some(disks) = Disks::made(scratch.path(), &["mkfs.ext4", "-q", "-F"]) else { return };
    run("umount", &[&disks.points[1]]).unwrap();
    run("umount", &[&disks.points[0]]).unwrap();
    run("losetup", &["-d".as_ref(), disks.devices[1].as_ref()]).unwrap();
    std::fs::copy(&disks.images[0], &disks.images[1]).unwrap();
    run("losetup", &["-d".as_ref(), disks.devices[0].as_ref()]).unwrap();
    let (images, points) = (disks.images.clone(), disks.points.clone());
    drop(disks);
    let Some(disks) = Disks::attached(images, points) else { return };
    for exports in [disks.points.clone(), [disks.points[1].clone(), disks.points[0].clone()]] {
        let refused = opened(&exports).err().unwrap().to_string();
        let said = format!("{} is on a copy of the file system of {}", exports[1].display(), exports[0].display());
        assert!(refused.starts_with(&said) && refused.contains("tune2fs -U random"), "{refused}");
        assert!(opened(&exports[..1]).is_ok());
    }
}
