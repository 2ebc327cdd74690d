//! File systems of every kind that the host has, mounted below one export: each object has one number.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::frozen::{Loop, run};
use super::*;

/// Mounts below an export, unmounted one by one. The loop devices are dropped after the mounts on them.
#[derive(Default)]
pub(super) struct Mounts {
    places: Vec<PathBuf>,
    loops: Vec<Loop>,
}

impl Drop for Mounts {
    fn drop(&mut self) {
        for place in self.places.drain(..).rev() {
            let _ = run("umount", &[Path::new("-l"), &place]);
        }
    }
}

impl Mounts {
    /// Makes a file system with `mkfs` on a loop device at `place`. Prints the reason if the host cannot.
    pub(super) fn image(&mut self, place: &Path, bytes: u64, mkfs: &[&str]) -> bool {
        let made = Loop::made(place, bytes, mkfs).map(|made| self.loops.push(made));
        made.map_err(|error| afflux_scratch::skipped!("{}: {error}", mkfs[0])).is_ok()
    }

    /// Mounts with these arguments of `mount` at `place`. Prints the reason if the host cannot.
    pub(super) fn mount(&mut self, place: &Path, arguments: &[&str]) -> bool {
        std::fs::create_dir(place).unwrap();
        let arguments: Vec<&Path> = arguments.iter().map(Path::new).chain([place]).collect();
        let mounted = run("mount", &arguments).map(|_| self.places.push(place.to_owned()));
        mounted.map_err(|error| afflux_scratch::skipped!("{error}")).is_ok()
    }
}

/// Directories, files and hard links. File systems of one kind give them the same numbers.
fn fill(directory: &Path) {
    for name in ["a", "b"] {
        let below = directory.join(name);
        std::fs::create_dir(&below).unwrap();
        for file in 0..4 {
            let path = below.join(format!("file{file}"));
            std::fs::write(&path, format!("{} {file}", below.display())).unwrap();
            std::fs::hard_link(&path, below.join(format!("link{file}"))).unwrap();
        }
    }
}

/// File systems of all kinds below `export`.
fn mounted(scratch: &Scratch, export: &Path) -> Mounts {
    let mut mounts = Mounts::default();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    fill(export);
    for ext4 in ["ext4", "ext4-too"] {
        let place = export.join(ext4);
        if mounts.image(&place, 16 << 20, &["mkfs.ext4", "-q", "-F"]) {
            fill(&place);
        }
    }
    // A copy has the same id of a file system.
    let (image, copy) = (export.join("ext4.image"), export.join("copy.image"));
    if image.exists() {
        std::fs::copy(&image, &copy).unwrap();
        mounts.loops.extend(Loop::mounted(copy, export.join("copy"), "rw").ok());
    }
    let xfs = export.join("xfs");
    if mounts.image(&xfs, 320 << 20, &["mkfs.xfs", "-q"]) {
        fill(&xfs);
    }
    let btrfs = export.join("btrfs");
    if mounts.image(&btrfs, 256 << 20, &["mkfs.btrfs", "-q"]) {
        fill(&btrfs);
        let volume = btrfs.join("subvolume");
        run("btrfs", &["subvolume".as_ref(), "create".as_ref(), &volume]).unwrap();
        fill(&volume);
        for snapshot in ["snapshot", "a/snapshot"] {
            run("btrfs", &["subvolume".as_ref(), "snapshot".as_ref(), &volume, &btrfs.join(snapshot)]).unwrap();
        }
    }
    for tmpfs in ["tmpfs", "tmpfs-too"] {
        if mounts.mount(&export.join(tmpfs), &["-t", "tmpfs", "tmpfs"]) {
            fill(&export.join(tmpfs));
        }
    }
    let squashed = scratch.path().join("squashed.image");
    match run("mksquashfs", &[&export.join("a"), &squashed, "-quiet".as_ref()]) {
        Ok(_) => mounts.loops.extend(Loop::mounted(squashed, export.join("squashfs"), "ro").ok()),
        Err(error) => afflux_scratch::skipped!("{error}"),
    }
    for (name, options) in [("overlay", "xino=off"), ("overlay-xino", "xino=on")] {
        // The layers are on different file systems.
        let upper = scratch.path().join(name);
        std::fs::create_dir_all(upper.join("upper")).unwrap();
        std::fs::create_dir_all(upper.join("work")).unwrap();
        let (lower, upper) = (text(&export.join("tmpfs")), text(&upper));
        let layers = format!("{options},lowerdir={lower},upperdir={upper}/upper,workdir={upper}/work");
        if mounts.mount(&export.join(name), &["-t", "overlay", "-o", &layers, "overlay"]) {
            std::fs::write(export.join(name).join("above"), "above").unwrap();
        }
    }
    let ntfs = scratch.path().join("ntfs.image");
    std::fs::File::create(&ntfs).unwrap().set_len(16 << 20).unwrap();
    match run("mkntfs", &["-q".as_ref(), "-F".as_ref(), "-Q".as_ref(), &ntfs]) {
        Ok(_) => {
            if mounts.mount(&export.join("ntfs"), &["-t", "ntfs-3g", &text(&ntfs)]) {
                fill(&export.join("ntfs"));
            }
        }
        Err(error) => afflux_scratch::skipped!("{error}"),
    }
    let bound = text(&export.join("b"));
    mounts.mount(&export.join("bound"), &["--bind", &bound]);
    mounts
}

impl World {
    /// The number of each object below a directory, as listings and lookups report it.
    fn numbers_below(&self, directory: &Object, path: &Path, numbers: &mut BTreeMap<PathBuf, u64>) {
        let list = |with_attributes| {
            let listing = self.run(self.volume.list(directory, 0, 1_000, with_attributes)).unwrap();
            assert!(listing.end);
            listing.entries
        };
        let (bare, full) = (list(false), list(true));
        assert_eq!(bare.len(), full.len());
        for (bare, full) in bare.iter().zip(full) {
            let name = str::from_utf8(&bare.name).unwrap();
            let (found, attributes) = self.lookup(directory, name).unwrap();
            let path = path.join(name);
            let listed = [bare.fileid, full.fileid, full.object.unwrap().1.fileid];
            assert_eq!(listed, [attributes.fileid; 3], "{}", path.display());
            if [".", ".."].contains(&name) {
                continue;
            }
            if found.kind() == Kind::Directory {
                self.numbers_below(&found, &path, numbers);
            }
            numbers.insert(path, attributes.fileid);
        }
    }

    fn numbers(&self) -> BTreeMap<PathBuf, u64> {
        let mut numbers = BTreeMap::new();
        self.numbers_below(&self.root(), &self.host(""), &mut numbers);
        numbers
    }
}

// rule: each object below an export has one inode number of its own, in listings and in attributes, on every file
// system
#[test]
fn each_object_has_one_number_over_all_file_systems() {
    if !is_root() {
        afflux_scratch::skipped!("only root mounts file systems");
        return;
    }
    let scratch = Arc::new(Scratch::new());
    let export = scratch.path().join("export");
    std::fs::create_dir(&export).unwrap();
    let mounts = mounted(&scratch, &export);
    let world = World::on(Arc::clone(&scratch), HostOptions::default());
    let numbers = world.numbers();
    let mut objects = BTreeMap::new();
    let home = std::fs::metadata(&export).unwrap().dev();
    for (path, number) in &numbers {
        let host = std::fs::symlink_metadata(path).unwrap();
        let object = (host.dev(), host.ino());
        let other = *objects.entry(*number).or_insert(object);
        assert_eq!(other, object, "{} has another object's number {number}", path.display());
        if host.dev() == home {
            assert_eq!(*number, host.ino(), "{}", path.display());
        }
    }
    let distinct: BTreeMap<_, _> = objects.iter().map(|(number, object)| (*object, *number)).collect();
    assert_eq!(distinct.len(), objects.len(), "an object has two numbers");
    let world = world.restarted();
    assert_eq!(world.numbers(), numbers);
    drop(world);
    drop(mounts);
}

#[test]
fn a_file_system_that_comes_later_and_one_in_its_place_have_numbers_of_their_own() {
    if !is_root() {
        afflux_scratch::skipped!("only root mounts file systems");
        return;
    }
    let world = World::new();
    let place = world.host("place");
    let root = world.root();
    let mut known = BTreeMap::new();
    // The objects stay known: their inodes are held.
    let mut held = Vec::new();
    for round in 0..3 {
        let mut mounts = Mounts::default();
        if !mounts.mount(&place, &["-t", "tmpfs", "tmpfs"]) {
            return;
        }
        fill(&place);
        let (found, attributes) = world.lookup(&root, "place").unwrap();
        let listing = world.run(world.volume.list(&root, 0, 100, false)).unwrap();
        let listed = listing.entries.iter().find(|entry| entry.name == "place").unwrap();
        assert_eq!(listed.fileid, attributes.fileid);
        assert_eq!(known.insert(attributes.fileid, round), None);
        let mut numbers = BTreeMap::new();
        world.numbers_below(&found, &place, &mut numbers);
        for (path, number) in numbers.iter().filter(|(path, _)| !path.to_str().unwrap().contains("link")) {
            assert_eq!(known.insert(*number, round), None, "{}", path.display());
        }
        held.push(found);
        drop(mounts);
        let covered = world.lookup(&root, "place").unwrap().1.fileid;
        assert_eq!(covered, std::fs::metadata(&place).unwrap().ino());
        std::fs::remove_dir(&place).unwrap();
    }
}
