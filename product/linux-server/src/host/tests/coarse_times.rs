//! File systems whose times have a coarser unit than a nanosecond.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::frozen::run;
use super::numbers::Mounts;
use super::*;

/// The modification time in nanoseconds, as the host has it.
fn kept_ns(path: &Path) -> i128 {
    let host = std::fs::metadata(path).unwrap();
    i128::from(host.mtime()) * 1_000_000_000 + i128::from(host.mtime_nsec())
}

/// Writes files on the file system at "place" and compares the reported times with those after a restart.
fn compare(scratch: &Arc<Scratch>, unit_ns: Option<i128>) {
    let mut world = World::on(Arc::clone(scratch), HostOptions::default());
    for round in 0..3 {
        let (place, _) = world.lookup(&world.root(), "place").unwrap();
        let name = format!("file{round}");
        let file = world.create(&place, &name);
        world.write(&file, 0, b"some bytes").result.unwrap();
        world.sync(&file);
        let told = world.attributes(&file);
        if let Some(unit_ns) = unit_ns {
            assert_eq!(i128::from(file.time_unit_ns()), unit_ns);
            assert!([told.mtime, told.ctime].iter().all(|time| time.as_nanos() % unit_ns == 0), "{told:?}");
        }
        assert_eq!(world.run(world.volume.settle_all()), 0);
        let settled = world.attributes(&file);
        let kept_ns_before_now = kept_ns(&world.host("place").join(&name));
        // Not the server's clock, which ticks: a process behind the file system may have a finer one.
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i128;
        assert!(kept_ns_before_now <= now_ns, "the host has a time that is to come");
        if unit_ns.is_some() || round > 0 {
            assert_eq!(settled.mtime, told.mtime);
        }
        drop((file, place));
        world = world.restarted();
        let (place, _) = world.lookup(&world.root(), "place").unwrap();
        let (_, after) = world.lookup(&place, &name).unwrap();
        assert_eq!(after.mtime, settled.mtime);
        assert_eq!(after.mtime.as_nanos(), kept_ns(&world.host("place").join(&name)));
    }
}

fn export() -> Option<(Arc<Scratch>, PathBuf)> {
    if !is_root() {
        afflux_scratch::skipped!("only root mounts file systems");
        return None;
    }
    let scratch = Arc::new(Scratch::new());
    std::fs::create_dir(scratch.path().join("export")).unwrap();
    let place = scratch.path().join("export/place");
    Some((scratch, place))
}

// rule: after a restart a file has the times that clients got, on a file system with whole seconds, too
#[test]
fn a_file_system_with_whole_seconds_is_known_as_such() {
    let Some((scratch, place)) = export() else { return };
    let mut mounts = Mounts::default();
    if mounts.image(&place, 16 << 20, &["mkfs.ext4", "-q", "-F", "-I", "128"]) {
        compare(&scratch, Some(1_000_000_000));
    }
}

#[test]
fn the_unit_of_an_unknown_file_system_is_learnt() {
    let Some((scratch, place)) = export() else { return };
    let mut mounts = Mounts::default();
    let image = scratch.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
    if let Err(error) = run("mkntfs", &["-q".as_ref(), "-F".as_ref(), "-Q".as_ref(), &image]) {
        afflux_scratch::skipped!("{error}");
        return;
    }
    if mounts.mount(&place, &["-t", "ntfs-3g", image.to_str().unwrap()]) {
        compare(&scratch, None);
    }
}

#[test]
fn usual_file_systems_keep_nanoseconds() {
    let Some((scratch, place)) = export() else { return };
    let mut mounts = Mounts::default();
    if mounts.image(&place, 16 << 20, &["mkfs.ext4", "-q", "-F", "-I", "256"]) {
        compare(&scratch, Some(1));
    }
}
